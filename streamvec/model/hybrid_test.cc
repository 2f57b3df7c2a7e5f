#include "streamvec/model/hybrid.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "streamvec/model/hybrid_testing.h"
#include "streamvec/model/hybrid_vectors.h"
#include "streamvec/model/model.h"
#include "streamvec/model/parameters.h"
#include "streamvec/model/testing.h"

namespace streamvec {
namespace {

using testing::distance, testing::made_of, testing::place_of_largest;

constexpr int32_t kHybridDim = 16;
constexpr int32_t kStems = 8, kEndings = 8, kHybridWords = kStems * kEndings;
const char* const kStem[kStems] = {"boat", "ship", "lamp", "tree", "frog", "milk", "wind", "song"};
const char* const kEnding[kEndings] = {"", "s", "ing", "ed", "er", "ers", "less", "ful"};

std::string word_of(Slot slot) {
  return std::string(kStem[slot / kEndings]) + kEnding[slot % kEndings];
}

// Rows are a mean that all share, and what the stem means.
Parameters planted(float noise = 0) {
  Parameters parameters =
      std::move(Parameters::make({.rows = kHybridWords, .rows_max = 2 * kHybridWords, .dim = kHybridDim})).value();
  Random random(5);
  for (Slot slot = 0; slot < kHybridWords; ++slot) {
    float* row = parameters.input.rows.row(slot);
    for (int32_t d = 0; d < kHybridDim; ++d) row[d] = 1 + noise * (random.uniform() - 0.5f);
    row[slot / kEndings] += 2;
  }
  parameters.hybrid = std::move(Hybrid::make({.dim = kHybridDim, .words_max = 2 * kHybridWords})).value();
  for (Slot slot = 0; slot < kHybridWords; ++slot) parameters.hybrid->set_word(slot, word_of(slot));
  return parameters;
}

Chunk each_word(int32_t times, Slot without = kNoSlot) {
  std::vector<std::vector<Slot>> sentences(1);
  for (int32_t i = 0; i < times; ++i)
    for (Slot slot = 0; slot < kHybridWords; ++slot)
      if (slot != without) sentences[0].push_back(slot);
  return testing::chunk_of(sentences);
}

void learn(Parameters& parameters, const Chunk& chunk, int rounds) {
  for (int i = 0; i < rounds; ++i) parameters.hybrid->learn(chunk, parameters);
}

TEST(Hybrid, GivesUnseenWordsTheMeaningOfTheirStem) {
  Parameters parameters = planted();
  learn(parameters, each_word(20), 20);
  for (int32_t stem = 0; stem < kStems; ++stem) {
    const std::vector<float> made = made_of(*parameters.hybrid, std::string(kStem[stem]) + "ist");
    EXPECT_EQ(place_of_largest(made), stem) << kStem[stem];
  }
}

TEST(Hybrid, LengthensRowsThatWereHardlyTrained) {
  Parameters parameters = planted();
  const Slot faint = 3;
  const auto mean = [&](int32_t d) {
    double sum = 0;
    for (Slot slot = 0; slot < kHybridWords; ++slot) sum += parameters.input.rows.row(slot)[d];
    return static_cast<float>(sum / kHybridWords);
  };
  std::vector<float> middle(kHybridDim);
  for (int32_t d = 0; d < kHybridDim; ++d) middle[static_cast<size_t>(d)] = mean(d);
  const double well_known = distance(parameters.input.rows.view().row_span(faint), middle);
  float* row = parameters.input.rows.row(faint);
  for (int32_t d = 0; d < kHybridDim; ++d)
    row[d] = middle[static_cast<size_t>(d)] + (row[d] - middle[static_cast<size_t>(d)]) / 16;
  learn(parameters, each_word(1'000), 5);
  const Matrix served = std::move(parameters.hybrid->served_rows(parameters, kHybridWords)).value();
  EXPECT_NEAR(distance(served.view().row_span(faint), middle), well_known / 4, 0.1 * well_known);
  EXPECT_NEAR(distance(served.view().row_span(0), middle), well_known, 0.1 * well_known);
}

TEST(Hybrid, BlendsByHowOftenAWordWasMet) {
  Parameters parameters = planted();
  const Slot odd = 3;  // "boated", whose own row says that it is a ship
  const auto say_ship = [&] {
    std::copy_n(parameters.input.rows.row(kEndings + 3), kHybridDim, parameters.input.rows.row(odd));
  };
  std::vector<double> away;
  for (const int rounds : {1, 3, 200}) {
    learn(parameters, each_word(20, odd), 20);
    for (int i = 0; i < rounds; ++i)
      parameters.hybrid->learn(testing::chunk_of({{odd, odd, odd, odd, odd}}), parameters);
    say_ship();
    const Matrix served = std::move(parameters.hybrid->served_rows(parameters, kHybridWords)).value();
    away.push_back(distance(served.view().row_span(odd), parameters.input.rows.view().row_span(odd)));
  }
  EXPECT_GT(away[0], 1.0);
  EXPECT_GT(away[0], away[1]);
  EXPECT_GT(away[1], away[2]);
  EXPECT_LT(away[2], 0.15);
}

// What one walk does to the row of "boated", which says that it is a ship, after it was met so often.
struct Walk {
  double way;                   // that it goes, of the one to what the spelling says
  std::vector<int64_t> marked;  // rows that the others of a cluster lack then
};
Walk walk_over_odd_row(int32_t met, int32_t nodes) {
  Parameters parameters = planted();
  const Slot odd = 3;
  learn(parameters, each_word(2'000, odd), 5);
  parameters.hybrid->learn(testing::chunk_of({std::vector<Slot>(static_cast<size_t>(met), odd)}), parameters);
  std::copy_n(parameters.input.rows.row(kEndings + 3), kHybridDim, parameters.input.rows.row(odd));
  const std::vector<float> before(parameters.input.rows.row(odd), parameters.input.rows.row(odd) + kHybridDim);
  const std::vector<float> often(parameters.input.rows.row(8), parameters.input.rows.row(8) + kHybridDim);
  const std::vector<float> spelled = made_of(*parameters.hybrid, word_of(odd));
  parameters.hybrid->set_distilling_nodes(nodes);
  parameters.changed = std::make_unique<RowMarks>(4 * kHybridWords);
  const int64_t work = 1'400;  // in rows of n-grams: about one walk
  parameters.hybrid->learn(testing::chunk_of({std::vector<Slot>(static_cast<size_t>(work / 0.3), 0)}), parameters);
  EXPECT_EQ(distance(parameters.input.rows.view().row_span(8), often), 0) << "a word met 10,000 times";
  Walk walk{distance(parameters.input.rows.view().row_span(odd), before) / distance(spelled, before), {}};
  const std::vector<uint64_t> all(4 * kHybridWords / 64, ~uint64_t{0});
  parameters.changed->take(std::span(all), walk.marked);
  return walk;
}

TEST(Hybrid, BlendsWhatTheirSpellingSaysIntoTheRowsOfRareWords) {
  EXPECT_NEAR(walk_over_odd_row(0, 1).way, 0.5, 0.1);
  EXPECT_NEAR(walk_over_odd_row(36, 1).way, 0.125, 0.04);
  EXPECT_EQ(walk_over_odd_row(1'000, 1).way, 0);
}

TEST(Hybrid, SeveralNodesEachBlendTheirShareIntoARow) {
  EXPECT_NEAR(walk_over_odd_row(0, 4).way, 0.125, 0.03);
}

TEST(Hybrid, ARowThatWasBlendedIntoIsOneThatTheOthersOfAClusterLack) {
  EXPECT_EQ(walk_over_odd_row(0, 1).marked, std::vector<int64_t>{2 * 3});
  EXPECT_TRUE(walk_over_odd_row(1'000, 1).marked.empty());
}

TEST(Hybrid, LeavesTheRowsAloneWhenItFinishes) {
  Parameters parameters = planted(0.2f);
  learn(parameters, each_word(20), 20);
  const testing::Rows before = testing::values_of(parameters.input.rows);
  parameters.hybrid->finish(parameters);
  EXPECT_EQ(testing::values_of(parameters.input.rows), before);
}

TEST(Hybrid, StartsANewWordOfASlotFromItsSpelling) {
  Parameters parameters = planted();
  learn(parameters, each_word(20), 20);
  parameters.restart(9, 77);
  parameters.set_word(9, "lampist");
  EXPECT_EQ(place_of_largest(parameters.input.rows.view().row_span(9)), 2);
  parameters.restart(kHybridWords, 78);  // a slot that is new altogether
  parameters.set_word(kHybridWords, "frogist");
  EXPECT_EQ(place_of_largest(parameters.input.rows.view().row_span(kHybridWords)), 4);
}

TEST(Hybrid, WordsStartAsTheyAreDrawnWhileManyAreNew) {
  Parameters parameters = planted();
  const auto starts = [&](Slot slot) {
    parameters.restart(slot, 77);
    parameters.set_word(slot, "lampist");
    return place_of_largest(parameters.input.rows.view().row_span(slot)) == 2 && parameters.input.rows.row(slot)[2] > 1;
  };
  learn(parameters, each_word(20), 20);
  for (const Slot slot : {9, 10, 11}) EXPECT_TRUE(starts(slot)) << slot;
  EXPECT_FALSE(starts(12)) << "more than a twentieth";
  learn(parameters, each_word(20), 20);
  EXPECT_TRUE(starts(13)) << "those before are old by now";
}

TEST(Hybrid, ARowThatStartsFromItsSpellingIsOneThatTheOthersOfAClusterLack) {
  Parameters parameters = planted();
  learn(parameters, each_word(20), 20);
  parameters.changed = std::make_unique<RowMarks>(4 * kHybridWords);
  parameters.restart(9, 77);
  parameters.set_word(9, "lampist");
  const std::vector<uint64_t> all(4 * kHybridWords / 64, ~uint64_t{0});
  std::vector<int64_t> marked;
  parameters.changed->take(std::span(all), marked);
  EXPECT_EQ(marked, std::vector<int64_t>{2 * 9});
}

TEST(Hybrid, OneThatOnlyCountsKnowsNothingOfSpellingsUntilItIsToDistil) {
  Parameters parameters = planted();
  learn(parameters, each_word(20), 20);
  Hybrid& hybrid = *parameters.hybrid;
  ASSERT_TRUE(hybrid.only_count().ok());
  EXPECT_FALSE(hybrid.has_learnt());
  EXPECT_EQ(hybrid.met(5), 400) << "what it has counted stays";
  learn(parameters, each_word(20), 20);
  hybrid.finish(parameters);
  EXPECT_EQ(hybrid.met(5), 800);
  EXPECT_EQ(hybrid.met_here(), 800 * kHybridWords);
  const std::vector<std::vector<double>> before = testing::values_of(parameters.input.rows);
  for (const Slot slot : {9, 10}) parameters.set_word(slot, "lampist");
  EXPECT_EQ(testing::values_of(parameters.input.rows), before);
  EXPECT_EQ(hybrid.met(9), 0);
  EXPECT_EQ(hybrid.bag().rows().rows(), 0);
  parameters.set_word(10, word_of(10));
  for (Slot slot = 0; slot < kHybridWords; ++slot) hybrid.restore_word(slot, slot == 9 ? "lampist" : word_of(slot));
  hybrid.begin_to_distil();
  hybrid.finish(parameters);
  EXPECT_EQ(hybrid.met(5), 800);
  for (int32_t stem = 0; stem < kStems; ++stem)
    EXPECT_EQ(place_of_largest(made_of(hybrid, std::string(kStem[stem]) + "ist")), stem) << kStem[stem];
}

// It has begun with what a checkpoint says, and the others know of less.
TEST(Hybrid, OneThatJoinsTakesTheOthersCountsAlsoWhereTheyAreLess) {
  Parameters parameters = planted();
  Hybrid& hybrid = *parameters.hybrid;
  for (const Slot slot : {0, 1}) hybrid.add_met(slot, 10);
  hybrid.add_met(std::vector<float>{-3, 4, 5});
  for (const auto& [slot, met] : {std::pair<Slot, int64_t>{0, 7}, {1, 14}, {2, 5}}) EXPECT_EQ(hybrid.met(slot), met);
}

TEST(Hybrid, WhatOnlyOtherNodesMeetIsDistilledToo) {
  Parameters parameters = planted();
  Hybrid& hybrid = *parameters.hybrid;
  for (Slot slot = 0; slot < kHybridWords; ++slot) hybrid.add_met(slot, 10'000);
  EXPECT_EQ(hybrid.met_here(), 0);
  for (int i = 0; i < 100; ++i) hybrid.distil_for_others(parameters);
  for (int32_t stem = 0; stem < kStems; ++stem)
    EXPECT_EQ(place_of_largest(made_of(hybrid, std::string(kStem[stem]) + "ist")), stem) << kStem[stem];
  const std::vector<float> made = made_of(hybrid, "boatist");
  hybrid.distil_for_others(parameters);
  EXPECT_EQ(made_of(hybrid, "boatist"), made) << "there is nothing left to do";
}

TEST(Hybrid, CountsOfAnEndlessStreamDoNotBeginAnew) {
  Parameters parameters = planted();
  for (int i = 0; i < 2; ++i) parameters.hybrid->add_met(0, int64_t{1} << 31);
  parameters.hybrid->learn(testing::chunk_of({{0, 0, 1}}), parameters);
  EXPECT_EQ(parameters.hybrid->met(0), int64_t{1} << 31);
  EXPECT_EQ(parameters.hybrid->met(1), 1);
}

TEST(Hybrid, LeavesRowsAloneWhileItKnowsNothing) {
  Parameters parameters = planted();
  const std::vector<std::vector<double>> before = testing::values_of(parameters.input.rows);
  parameters.set_word(3, "lampist");
  EXPECT_EQ(testing::values_of(parameters.input.rows), before);
  const Matrix served = std::move(parameters.hybrid->served_rows(parameters, kHybridWords)).value();
  EXPECT_EQ(testing::values_of(served), before);
  for (const float value : made_of(*parameters.hybrid, "boatist")) EXPECT_EQ(value, 0);
}

TEST(Hybrid, RowsThatAreNotFiniteTeachNothing) {
  Parameters parameters = planted();
  learn(parameters, each_word(20), 20);
  parameters.input.rows.row(5)[0] = std::nanf("");
  learn(parameters, each_word(20), 3);
  for (const float value : made_of(*parameters.hybrid, "boatist")) EXPECT_TRUE(std::isfinite(value));
}

TEST(Hybrid, GoesOnBitForBitAfterItWasRestored) {
  Parameters parameters = planted(0.5f);
  learn(parameters, each_word(3), 7);
  Parameters again = planted(0.5f);
  {
    const Hybrid::Saved saved = parameters.hybrid->save();
    again.hybrid = std::move(Hybrid::restore(saved.state, "x", 2 * kHybridWords, saved.rows, saved.duals)).value();
  }
  for (Slot slot = 0; slot < kHybridWords; ++slot) again.hybrid->restore_word(slot, word_of(slot));
  EXPECT_EQ(again.hybrid->save().state, parameters.hybrid->save().state);
  for (Parameters* each : {&parameters, &again}) learn(*each, each_word(3), 5);
  EXPECT_EQ(again.hybrid->save().state, parameters.hybrid->save().state);
  for (const char* word : {"boatist", "windy", "x"})
    EXPECT_EQ(made_of(*again.hybrid, word), made_of(*parameters.hybrid, word));
  EXPECT_EQ(testing::values_of(std::move(again.hybrid->served_rows(again, kHybridWords)).value()),
            testing::values_of(std::move(parameters.hybrid->served_rows(parameters, kHybridWords)).value()));
}

TEST(Hybrid, NothingIsDistilledWhileItIsSaved) {
  Parameters parameters = planted(0.5f);
  learn(parameters, each_word(3), 7);
  const auto rows = [&] { return testing::values_of(parameters.hybrid->bag().rows()); };
  const auto learn_elsewhere = [&] { std::thread(learn, std::ref(parameters), each_word(3), 5).join(); };
  const auto before = rows();
  {
    const Hybrid::Saved saved = parameters.hybrid->save();
    learn_elsewhere();
    EXPECT_EQ(rows(), before);
  }
  learn_elsewhere();
  EXPECT_NE(rows(), before);
}

TEST(SlotWalk, MeetsEverySlotOnce) {
  for (const int64_t slots : {1, 2, 3, 8, 97, 1'000}) {
    const SlotWalk walk(slots);
    std::set<Slot> met;
    for (int64_t place = 0; place < slots; ++place) met.insert(walk.at(place));
    EXPECT_EQ(static_cast<int64_t>(met.size()), slots);
    EXPECT_EQ(*met.begin(), 0);
    EXPECT_EQ(*met.rbegin(), slots - 1);
  }
}

TEST(SlotWalk, GoesByTheOrderThatItIsGivenAndBeginsAgain) {
  const SlotWalk walk(std::vector<Slot>{2, 0, 1});
  EXPECT_EQ(walk.slots(), 3);
  std::vector<Slot> met;
  for (int64_t place = 0; place < 5; ++place) met.push_back(walk.at(place));
  EXPECT_EQ(met, (std::vector<Slot>{2, 0, 1, 2, 0}));
}

TEST(Hybrid, TheEndOfARunBringsItNearToItsSolution) {
  Parameters parameters = planted(0.5f), solved = planted(0.5f);
  learn(parameters, each_word(3), 5);  // its walk is somewhere in the middle
  learn(solved, each_word(3), 5);
  for (Parameters* each : {&parameters, &solved}) each->hybrid->finish(*each);
  for (int i = 0; i < 50; ++i) solved.hybrid->finish(solved);
  for (const char* word : {"boatist", "windy", "lampless"}) {
    const std::vector<float> made = made_of(*parameters.hybrid, word), best = made_of(*solved.hybrid, word);
    EXPECT_LT(distance(made, best), 0.02 * distance(best, solved.hybrid->mean())) << word;
  }
}

TEST(Hybrid, EveryStateThatIsCutShortOrTooLongIsRefused) {
  Parameters parameters = planted();
  learn(parameters, each_word(3), 7);
  const Hybrid::Saved saved = parameters.hybrid->save();
  const std::string& state = saved.state;
  const auto code_of = [&](std::string_view bytes) {
    return Hybrid::restore(bytes, "x", 2 * kHybridWords, saved.rows, saved.duals).status().code();
  };
  EXPECT_EQ(code_of(state), Code::kOk);
  for (size_t size = 0; size < state.size(); size += size < 100 ? 1 : 97)
    EXPECT_EQ(code_of(std::string_view(state).substr(0, size)), Code::kDataLoss) << size;
  EXPECT_EQ(code_of(state + "x"), Code::kDataLoss);
  for (size_t at = 0; at < 45; ++at) {
    std::string flipped = state;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x80);
    code_of(flipped);  // whatever it says, it says
  }
}

TEST(Hybrid, UntilSpellingsAreKnownTheTablesAreThoseOfSkipGram) {
  const Vocabulary vocabulary = testing::equal_words(testing::kPlantedWords);
  const SamplingTables tables(vocabulary, 0);
  Parameters plain = std::move(Parameters::make({.rows = testing::kPlantedWords, .dim = kHybridDim})).value();
  Parameters hybrid = std::move(Parameters::make({.rows = testing::kPlantedWords, .dim = kHybridDim})).value();
  hybrid.hybrid = std::move(Hybrid::make({.dim = kHybridDim, .words_max = testing::kPlantedWords})).value();
  for (Slot slot = 0; slot < vocabulary.size(); ++slot) hybrid.hybrid->set_word(slot, vocabulary.word(slot));
  for (auto [parameters, model] : {std::pair{&plain, "sgns"}, std::pair{&hybrid, "hybrid"}}) {
    ModelOptions options;
    options.model = model;
    auto worker = std::move(make_model_worker(options, *parameters)).value();
    Random random(3);
    for (uint64_t i = 0; i < 5; ++i) worker->step(testing::planted_chunk(i, 6), tables, 0.05f, random);
  }
  EXPECT_TRUE(hybrid.hybrid->has_learnt()) << "once over all words";
  EXPECT_NE(made_of(*hybrid.hybrid, "w1"), made_of(*hybrid.hybrid, "q"));
  EXPECT_EQ(testing::values_of(hybrid.input.rows), testing::values_of(plain.input.rows));
}

TEST(HybridVectors, SayThatNothingWasLearntYet) {
  Parameters parameters = planted();
  std::vector<float> out(kHybridDim, 7);
  const HybridVectors early(std::move(parameters.hybrid->copy_spellings()).value());
  const Status status = early.generate("boating", out);
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_NE(status.message().find("boating"), std::string::npos);
  EXPECT_NE(status.message().find("has not learnt yet"), std::string::npos);
  learn(parameters, each_word(2), 20);
  EXPECT_TRUE(HybridVectors(std::move(parameters.hybrid->copy_spellings()).value()).generate("boating", out).ok());
}

TEST(HybridVectors, HaveInCommonWhatASpellingThatSaysNothingGets) {
  Parameters parameters = planted();
  learn(parameters, each_word(20), 20);
  const HybridVectors vectors(std::move(parameters.hybrid->copy_spellings()).value());
  std::vector<float> out(kHybridDim);
  ASSERT_TRUE(vectors.generate("zzz", out).ok());
  EXPECT_TRUE(std::equal(out.begin(), out.end(), vectors.common_part().begin(), vectors.common_part().end()));
  EXPECT_NEAR(out[kHybridDim - 1], 1, 1e-4);  // no stem means anything there
}

TEST(Hybrid, MoreWordsThanThereIsMemoryForAreResourceExhausted) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer takes most addresses for itself";
#endif
  const Status status = Hybrid::make({.dim = 1, .words_max = int64_t{1} << 38}).status();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_NE(status.message().find("try a smaller --vocab-max"), std::string::npos) << status.message();
}

TEST(HybridVectors, HaveAnAnswerForEverySpellingButTheEmptyOne) {
  Parameters parameters = planted();
  learn(parameters, each_word(20), 20);
  const HybridVectors vectors(std::move(parameters.hybrid));
  std::vector<float> out(kHybridDim);
  EXPECT_EQ(vectors.generate("", out).code(), Code::kInvalidArgument);
  const std::string spellings[] = {"boats", "\xff\xfe", "\xed\x95\x9c\xea\xb5\xad", "zzz", std::string(1000, 'q')};
  for (const std::string& word : spellings) {
    ASSERT_TRUE(vectors.generate(word, out).ok());
    EXPECT_GT(distance(out, std::vector<float>(kHybridDim)), 0.1) << word;
  }
}

}  // namespace
}  // namespace streamvec
