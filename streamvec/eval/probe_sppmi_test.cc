#include "streamvec/eval/probe_sppmi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "streamvec/eval/sppmi.h"
#include "streamvec/eval/test_text.h"

namespace streamvec {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::IsSubsetOf;
using testing::Not;
using testing::SizeIs;

constexpr int32_t kProbedWords = 60;

ProbeOptions exact_options() {
  ProbeOptions options;
  options.pairs.sample = 0;
  options.pairs.negatives = 1;
  options.chunks_every = 1;
  options.count_min = 1;
  options.dim = 8;
  return options;
}

// A few sentences a chunk.
std::vector<Chunk> chunks_of(const Sentences& text) {
  std::vector<Chunk> chunks;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i % 3 == 0) chunks.emplace_back();
    Chunk& chunk = chunks.back();
    chunk.slots.insert(chunk.slots.end(), text[i].begin(), text[i].end());
    chunk.sentence_ends.push_back(static_cast<int32_t>(chunk.slots.size()));
  }
  return chunks;
}

struct ProbedText {
  Sentences sentences = random_sentences(kProbedWords, 600, 12, 1);
  Vocabulary vocabulary = vocabulary_of(sentences, kProbedWords);
  std::vector<Chunk> chunks = chunks_of(sentences);
  Subsampling all{vocabulary, 0};
  std::vector<double> counts() const { return {vocabulary.counts().begin(), vocabulary.counts().end()}; }
  void add_to(ProbeSppmi& probe, double t = 0) const {
    for (const Chunk& chunk : chunks) probe.add(chunk, t, all);
  }
};

double pair(const ProbeCounts& counts, size_t i, size_t j) {
  double sum = 0;
  for (const auto& half : counts.halves) sum += half.pairs[ProbeCounts::pair_index(i, j)];
  return sum;
}
double marginal(const ProbeCounts& counts, size_t i) {
  return counts.halves[0].marginals[i] + counts.halves[1].marginals[i];
}

TEST(ProbeSppmi, CountsWhatCountPairsCounts) {
  const ProbedText text;
  ProbeSppmi probe(exact_options());
  probe.follow(text.counts());
  text.add_to(probe);
  PairCountOptions options;
  options.pairs = exact_options().pairs;
  const PairCounts counts = count_pairs(stream_of(text.sentences), text.vocabulary, options).value();
  const Eigen::MatrixXd expected = dense(counts);
  const std::vector<double> marginals = counts.marginals();
  ASSERT_EQ(probe.counts().size(), kProbedWords);
  for (size_t i = 0; i < kProbedWords; ++i) {
    EXPECT_NEAR(marginal(probe.counts(), i), marginals[i], 1e-6);
    for (size_t j = 0; j < kProbedWords; ++j)
      EXPECT_NEAR(pair(probe.counts(), i, j), expected(static_cast<int64_t>(i), static_cast<int64_t>(j)), 1e-6);
  }
}

TEST(ProbeSppmi, AFewWordsHaveTheCountsTheyHaveAmongAll) {
  const ProbedText text;
  ProbeOptions options = exact_options();
  ProbeSppmi all(options);
  options.words_max = 10;
  ProbeSppmi some(options);
  for (ProbeSppmi* probe : {&all, &some}) {
    probe->follow(text.counts());
    text.add_to(*probe);
  }
  ASSERT_EQ(some.counts().size(), 10);
  for (size_t i = 0; i < 10; ++i) {
    const auto slot_i = static_cast<size_t>(some.counts().slots[i]);
    EXPECT_EQ(marginal(some.counts(), i), marginal(all.counts(), slot_i));
    for (size_t j = 0; j < 10; ++j)
      EXPECT_EQ(pair(some.counts(), i, j), pair(all.counts(), slot_i, static_cast<size_t>(some.counts().slots[j])));
  }
  EXPECT_LT(some.memory_bytes(), 10'000);
}

TEST(ProbeSppmi, TextAHalfLifeOldWeighsHalf) {
  const ProbedText text;
  ProbeOptions options = exact_options();
  options.half_life = 10;
  const auto counted_at = [&](std::vector<double> times) {
    ProbeSppmi probe(options);
    probe.follow(text.counts());
    for (const double t : times) text.add_to(probe, t);
    return probe.counts();
  };
  const ProbeCounts once = counted_at({0}), twice = counted_at({0, 10}), long_after = counted_at({0, 10'000});
  EXPECT_NEAR(marginal(twice, 3) / marginal(once, 3), 1 + 2, 1e-9);  // the later text weighs twice the earlier
  EXPECT_NEAR(pair(twice, 3, 7) / pair(once, 3, 7), 3, 1e-9);
  // The landmark has moved on by whole half-lives: the later text weighs what the first did, and the first is gone.
  EXPECT_NEAR(marginal(long_after, 3), marginal(once, 3), 1e-6 * marginal(once, 3));
  EXPECT_NEAR(pair(long_after, 3, 7), pair(once, 3, 7), 1e-6 * pair(once, 3, 7));
}

TEST(ProbeSppmi, SamplingChunksLeavesTheRatiosAsTheyAre) {
  const ProbedText text;
  ProbeOptions options = exact_options();
  ProbeSppmi all(options);
  options.chunks_every = 4;
  ProbeSppmi quarter(options);
  for (ProbeSppmi* probe : {&all, &quarter}) {
    probe->follow(text.counts());
    for (int i = 0; i < 10; ++i) text.add_to(*probe);
  }
  EXPECT_NEAR(marginal(quarter.counts(), 0) / marginal(all.counts(), 0), 0.25, 0.03);
  EXPECT_NEAR(pair(quarter.counts(), 0, 4) / pair(all.counts(), 0, 4), 0.25, 0.04);
}

TEST(ProbeSppmi, ChoosesFrequentAndMiddleWordsAndKeepsThemWhileTheyLast) {
  std::vector<double> counts(1'000);
  for (size_t i = 0; i < counts.size(); ++i) counts[i] = 10'000.0 / (1.0 + static_cast<double>(i));
  ProbeOptions options;
  options.words_max = 40;
  ProbeSppmi probe(options);
  probe.follow(counts);
  const std::vector<Slot> first = probe.counts().slots;
  ASSERT_THAT(first, SizeIs(40));
  for (Slot slot = 0; slot < 20; ++slot) EXPECT_THAT(first, Contains(slot));
  EXPECT_GT(first.back(), 180);  // count 50 is at slot 199
  EXPECT_LT(first.back(), 200);
  counts[static_cast<size_t>(first.back())] = 30;  // rarer, but not yet gone
  probe.follow(counts);
  EXPECT_EQ(probe.counts().slots, first);
  counts[static_cast<size_t>(first.back())] = 10;
  counts[500] = 1e6;  // and a new word is everywhere
  probe.follow(counts);
  EXPECT_THAT(probe.counts().slots, SizeIs(40));
  EXPECT_THAT(probe.counts().slots, Contains(500));
  EXPECT_THAT(probe.counts().slots, Not(Contains(first.back())));
}

TEST(ProbeSppmi, WordsThatStayKeepTheirCountsWhenOthersChange) {
  const ProbedText text;
  ProbeSppmi probe(exact_options());
  probe.follow(text.counts());
  text.add_to(probe);
  const ProbeCounts before = probe.counts();
  const Slot gone[] = {0, 7};
  probe.forget(gone);
  ASSERT_EQ(probe.counts().size(), kProbedWords - 2);
  EXPECT_THAT(probe.counts().slots, Not(Contains(7)));
  // Slots 1 to 6 are words 0 to 5 now, slot 8 is word 6.
  EXPECT_EQ(pair(probe.counts(), 2, 6), pair(before, 3, 8));
  EXPECT_EQ(marginal(probe.counts(), 6), marginal(before, 8));
  probe.follow(text.counts());
  EXPECT_EQ(pair(probe.counts(), 7, 3), 0);  // who returns begins anew
  EXPECT_EQ(pair(probe.counts(), 3, 8), pair(before, 3, 8));
}

TEST(ProbeSppmi, UnknownSlotsAndHolesInChunksAreNoTrouble) {
  const ProbedText text;
  ProbeSppmi probe(exact_options());
  Chunk odd;
  odd.slots = {1, kNoSlot, 2, 5'000'000};
  odd.sentence_ends = {4};
  probe.add(odd, 0, text.all);  // before any word was chosen
  probe.follow(text.counts());
  probe.add(odd, 0, text.all);
  EXPECT_EQ(pair(probe.counts(), 1, 2), 1);
  EXPECT_NEAR(marginal(probe.counts(), 2), 2, 1e-9);  // two neighbours at distance one
}

TEST(ProbeSppmi, GoesOnFromItsSavedStateBitForBit) {
  const ProbedText text;
  ProbeOptions options = exact_options();
  options.half_life = 3;
  options.chunks_every = 2;
  options.pairs.sample = 1e-2;
  const Subsampling subsampling(text.vocabulary, options.pairs.sample);
  ProbeSppmi probe(options);
  probe.follow(text.counts());
  for (const Chunk& chunk : text.chunks) probe.add(chunk, 500, subsampling);
  ProbeSppmi other = ProbeSppmi::restore(options, probe.save(), kProbedWords).value();
  for (const Chunk& chunk : text.chunks) {
    probe.add(chunk, 501, subsampling);
    other.add(chunk, 501, subsampling);
  }
  EXPECT_EQ(probe.save(), other.save());
}

TEST(ProbeSppmi, DamagedStatesAreRefused) {
  const ProbedText text;
  ProbeSppmi probe(exact_options());
  probe.follow(text.counts());
  text.add_to(probe);
  const std::string saved = probe.save();
  const auto code = [&](std::string_view bytes, int64_t words = kProbedWords) {
    return ProbeSppmi::restore(exact_options(), bytes, words).status().code();
  };
  EXPECT_EQ(code(saved), Code::kOk);
  for (const size_t size : {size_t{0}, size_t{3}, size_t{25}, size_t{100}, saved.size() - 1})
    EXPECT_EQ(code(saved.substr(0, size)), Code::kDataLoss) << size;
  EXPECT_EQ(code(saved + "x"), Code::kDataLoss);
  EXPECT_EQ(code(saved, kProbedWords - 1), Code::kDataLoss);
  std::string huge = saved;
  huge.replace(24, 8, 8, '\x7f');  // the number of words
  EXPECT_EQ(code(huge), Code::kDataLoss);
  std::string negative = saved;
  negative.back() = '\xff';  // the sign of the last count
  EXPECT_EQ(code(negative), Code::kDataLoss);
}

TEST(ProbeOracle, IsThatOfTheWholeTextWhenAllWordsAreProbed) {
  const ProbedText text;
  ProbeSppmi probe(exact_options());
  probe.follow(text.counts());
  text.add_to(probe);
  OracleOptions options;
  options.counts.pairs = exact_options().pairs;
  options.dim = 8;
  const Oracle expected = make_oracle(stream_of(text.sentences), text.vocabulary, options).value();
  const Oracle found = make_oracle(probe.counts(), unigram_probabilities(text.vocabulary), exact_options()).value();
  ASSERT_EQ(found.vectors.rows(), expected.vectors.rows());
  for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(found.singular_values[i], expected.singular_values[i], 1e-3);
  EXPECT_NEAR(std::sqrt(squared_distance(found.sppmi_2018, expected.sppmi_2018)), 0, 1e-3);
  EXPECT_LT(compare(found.vectors, expected.vectors, expected.sppmi_2018, kProbedWords).value().relative, 0.01);
}

TEST(MeasureProbe, TellsTheOraclesOwnVectorsFromShuffledOnes) {
  const ProbedText text;
  ProbeOptions options = exact_options();
  options.words_max = 30;
  ProbeSppmi probe(options);
  probe.follow(text.counts());
  text.add_to(probe);
  std::vector<double> negatives;
  for (const Slot slot : probe.counts().slots)
    negatives.push_back(unigram_probabilities(text.vocabulary)[static_cast<size_t>(slot)]);
  const Oracle oracle = make_oracle(probe.counts(), negatives, options).value();
  Snapshot snapshot;
  snapshot.vocabulary = text.vocabulary;
  snapshot.input = random_matrix(kProbedWords, oracle.vectors.cols(), 9);
  for (int64_t i = 0; i < probe.counts().size(); ++i)
    std::copy_n(oracle.vectors.row(i), oracle.vectors.cols(),
                snapshot.input.row(probe.counts().slots[static_cast<size_t>(i)]));
  const PipReport report = measure_probe(probe.counts(), snapshot, options).value();
  EXPECT_NEAR(report.model.relative, 0, 1e-3);
  EXPECT_NEAR(report.model.cka, 1, 1e-3);
  EXPECT_NEAR(report.model.neighbour_overlap, 1, 1e-3);
  std::vector<std::string> names;
  for (const auto& [name, figures] : report.references) {
    names.push_back(name);
    EXPECT_GT(figures.relative, name == "split_half" ? 0.01 : 0.3) << name;
  }
  EXPECT_THAT(names, ElementsAre("zero", "permuted", "untrained", "split_half"));
}

TEST(MeasureProbe, SaysWhyItCannot) {
  const ProbedText text;
  ProbeSppmi probe(exact_options());
  Snapshot snapshot;
  snapshot.vocabulary = text.vocabulary;
  snapshot.input = random_matrix(kProbedWords, 4, 1);
  EXPECT_EQ(measure_probe(probe.counts(), snapshot, exact_options()).status().code(), Code::kInvalidArgument);
  probe.follow(text.counts());
  EXPECT_EQ(measure_probe(probe.counts(), snapshot, exact_options()).status().code(), Code::kInvalidArgument);
  text.add_to(probe);
  Snapshot older;
  older.vocabulary.add("w0", 1);
  older.input = random_matrix(1, 4, 1);
  EXPECT_EQ(measure_probe(probe.counts(), older, exact_options()).status().code(), Code::kFailedPrecondition);
}

}  // namespace
}  // namespace streamvec
