#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "streamvec/kernel/pair_block.h"
#include "streamvec/model/model.h"
#include "streamvec/model/subword_vectors.h"
#include "streamvec/model/testing.h"

namespace streamvec {
namespace {

using namespace streamvec::testing;  // NOLINT: the helpers of this folder

Vocabulary vocabulary_of_words(const std::vector<std::string>& words) {
  Vocabulary vocabulary;
  for (const std::string& word : words) vocabulary.add(word, 100);
  return vocabulary;
}

void add_subwords(const Vocabulary& vocabulary, const NgramOptions& ngrams, Parameters& parameters) {
  SubwordTable::Options options;
  options.ngrams = ngrams;
  options.dim = parameters.dim();
  options.optimizer = parameters.options.optimizer;
  options.words_max = vocabulary.size();
  parameters.subwords.emplace(std::move(SubwordTable::make(options)).value());
  for (Slot slot = 0; slot < vocabulary.size(); ++slot) parameters.subwords->set_word(slot, vocabulary.word(slot));
}

// Every row of every table uniform in +-0.5.
Parameters random_subword_parameters(const Vocabulary& vocabulary, int64_t dim, const NgramOptions& ngrams = {},
                                     OptimizerKind optimizer = OptimizerKind::kSgd) {
  Parameters parameters = random_parameters(vocabulary.size(), dim, optimizer);
  add_subwords(vocabulary, ngrams, parameters);
  Random random(17);
  Matrix& rows = parameters.subwords->table.rows;
  for (int64_t i = 0; i < rows.rows(); ++i)
    for (float& value : rows.view().row_span(i)) value = random.uniform() - 0.5f;
  return parameters;
}

// Where a training starts.
Parameters new_parameters(const Vocabulary& vocabulary, int64_t dim, OptimizerKind optimizer) {
  Parameters parameters =
      std::move(Parameters::make({.rows = vocabulary.size(), .dim = dim, .optimizer = optimizer})).value();
  add_subwords(vocabulary, {}, parameters);
  return parameters;
}

Rows composed(Parameters& parameters) {
  return values_of(std::move(composed_rows(parameters, parameters.rows())).value());
}

// The skip-gram loss of a plan whose inputs are the given means.
double loss_of(const WindowPlan& plan, const WindowOptions& options, const Rows& means, const Rows& output) {
  double loss = 0;
  const double share = static_cast<double>(options.negatives) / options.negatives_shared;
  for (const auto& [centre, begin, end] : plan.windows)
    for (int32_t j = begin; j < end; ++j) {
      if (j == centre) continue;
      const auto& input = means[static_cast<size_t>(plan.columns[j])];
      loss += minus_log_sigma(dot(input, output[static_cast<size_t>(plan.columns[centre])]));
      for (const Slot negative : plan.negatives)
        if (negative != plan.columns[centre])
          loss += share * minus_log_sigma(-dot(input, output[static_cast<size_t>(negative)]));
    }
  return loss;
}

// Minus the slope of `loss` in each value of `varied`, by central differences.
template <typename Loss>
Rows falling_slopes(Rows& varied, Loss loss) {
  constexpr double kStep = 1e-5;
  Rows slopes = varied;
  for (size_t i = 0; i < varied.size(); ++i)
    for (size_t d = 0; d < varied[i].size(); ++d) {
      const double before = varied[i][d];
      varied[i][d] = before + kStep;
      const double above = loss();
      varied[i][d] = before - kStep;
      slopes[i][d] = -(above - loss()) / (2 * kStep);
      varied[i][d] = before;
    }
  return slopes;
}

void expect_moved(const Rows& before, const Rows& after, const Rows& slopes, double lr, const char* table) {
  for (size_t i = 0; i < before.size(); ++i)
    for (size_t d = 0; d < before[i].size(); ++d)
      EXPECT_NEAR((after[i][d] - before[i][d]) / lr, slopes[i][d], 2e-3) << table << " row " << i;
}

TEST(Subword, EveryRowTakesTheSlopeAtTheMeansItIsPartOfByFiniteDifferences) {
  constexpr float kRate = 0.001f;
  const WindowOptions windows = settled({.window = 3, .negatives = 4, .centres = 30, .negatives_shared = 6});
  // Few buckets: words share rows, and "aaaa" has one of them twice.
  const Vocabulary words = vocabulary_of_words({"ab", "abc", "bc", "aaaa", "cab", "b", "abcd", "dab"});
  const SamplingTables tables(words, 0);
  const Chunk chunk = chunk_of({{0, 1, 2, 3, 0, 5}, {6}, {7, 4}, {3, 1, 1, 4}});
  Parameters parameters = random_subword_parameters(words, 5, {2, 4, 11});
  const std::vector<WindowPlan> plans = plans_of(chunk, tables, windows, 21);
  ASSERT_EQ(plans.size(), 1);
  Rows means = composed(parameters), output = values_of(parameters.output.rows);
  const Rows own_before = values_of(parameters.input.rows), output_before = output;
  const Rows ngrams_before = values_of(parameters.subwords->table.rows);
  const auto loss = [&] { return loss_of(plans[0], windows, means, output); };
  const Rows mean_slopes = falling_slopes(means, loss), output_slopes = falling_slopes(output, loss);
  Rows ngram_slopes(ngrams_before.size(), std::vector<double>(5));
  for (Slot slot = 0; slot < words.size(); ++slot)
    for (const uint32_t row : parameters.subwords->rows_of(slot))
      add(1, mean_slopes[static_cast<size_t>(slot)], ngram_slopes[row]);
  Random random(21);
  const StepStats stats = make_worker("subword", "reference", windows, parameters)->step(chunk, tables, kRate, random);
  EXPECT_EQ(stats.pairs, plans[0].pairs);
  EXPECT_NEAR(stats.loss, loss(), 1e-4);
  expect_moved(own_before, values_of(parameters.input.rows), mean_slopes, kRate, "words");
  expect_moved(ngrams_before, values_of(parameters.subwords->table.rows), ngram_slopes, kRate, "n-grams");
  expect_moved(output_before, values_of(parameters.output.rows), output_slopes, kRate, "output");
}

// Words that share no n-grams: nothing that one of them learns is known to another.
Vocabulary words_apart() {
  Vocabulary words;
  for (const char first : {'a', 'A'})
    for (int i = 0; i < 26; ++i) words.add(std::string(2, static_cast<char>(first + i)), 100);
  return words;
}

// What skip-gram makes of rows that begin at the words' vectors, with the same text and the same draws.
Rows trained_as_rows(Parameters& parameters, const Chunk& chunk, const SamplingTables& tables, float lr) {
  Parameters rows = random_parameters(parameters.rows(), parameters.dim());
  const Matrix means = std::move(composed_rows(parameters, parameters.rows())).value();
  for (int64_t i = 0; i < rows.rows(); ++i) {
    std::copy_n(means.row(i), means.cols(), rows.input.rows.row(i));
    std::copy_n(parameters.output.rows.row(i), means.cols(), rows.output.rows.row(i));
  }
  Random random(21);
  make_worker("sgns", "reference", {}, rows)->step(chunk, tables, lr, random);
  return values_of(rows.input.rows);
}

TEST(Subword, WordsThatShareNothingTrainAsRowsWould) {
  const Vocabulary words = words_apart();
  const SamplingTables tables(words, 0);
  // A third of the words are in every block, others come and go.
  Chunk chunk = random_chunk(words.size(), 2'000, 3);
  for (size_t i = 0; i < chunk.slots.size(); i += 2) chunk.slots[i] %= 17;
  Parameters parameters = random_subword_parameters(words, 9, {3, 3, 2'000'000});
  ASSERT_EQ(parameters.subwords->buckets().size(), 2 * static_cast<size_t>(words.size()));
  const Rows before = composed(parameters), wanted = trained_as_rows(parameters, chunk, tables, 0.05f);
  Random random(21);
  make_worker("subword", "reference", {}, parameters)->step(chunk, tables, 0.05f, random);
  expect_near(composed(parameters), wanted, 1e-4);
  for (size_t i = 0; i < before.size(); ++i) EXPECT_NE(before[i], wanted[i]) << "word " << i;
}

TEST(Subword, AWordWithoutNgramsTrainsAsItsRowWould) {
  const Vocabulary words = words_apart();
  const SamplingTables tables(words, 0);
  const Chunk chunk = random_chunk(words.size(), 500, 3);
  Parameters parameters = random_parameters(words.size(), 9);
  SubwordTable::Options options;
  options.dim = 9;
  options.words_max = words.size();
  parameters.subwords.emplace(std::move(SubwordTable::make(options)).value());
  const Rows wanted = trained_as_rows(parameters, chunk, tables, 0.05f);
  Random random(21);
  make_worker("subword", "reference", {}, parameters)->step(chunk, tables, 0.05f, random);
  EXPECT_EQ(values_of(parameters.input.rows), wanted);
}

class SubwordKernels : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const Result<std::unique_ptr<PairKernel>> made = make_pair_kernel(GetParam());
    if (!made.ok()) GTEST_SKIP() << made.status().message();
  }
};
INSTANTIATE_TEST_SUITE_P(Kinds, SubwordKernels, ::testing::Values("reference", "simd", "bf16", "amx"),
                         [](const auto& test) { return test.param; });

struct Trained {
  double loss = 0;
  int64_t pairs = 0;
  Rows words, ngrams, output;
  bool operator==(const Trained&) const = default;
};

Trained train_once(const std::string& kernel, OptimizerKind optimizer) {
  const Vocabulary words = equal_words(60);
  const SamplingTables tables(words, 0);
  Parameters parameters = random_subword_parameters(words, 37, {2, 4, 50}, optimizer);
  Random random(6);
  const StepStats stats =
      make_worker("subword", kernel, {}, parameters)->step(random_chunk(60, 500, 3), tables, 0.005f, random);
  return {stats.loss, stats.pairs, values_of(parameters.input.rows), values_of(parameters.subwords->table.rows),
          values_of(parameters.output.rows)};
}

TEST_P(SubwordKernels, AgreeWithTheReference) {
  const Trained wanted = train_once("reference", OptimizerKind::kSgd);
  const Trained found = train_once(GetParam(), OptimizerKind::kSgd);
  const double error_max = GetParam() == "reference" || GetParam() == "simd" ? 1e-4 : 2e-2;
  EXPECT_EQ(found.pairs, wanted.pairs);
  EXPECT_NEAR(found.loss / wanted.loss, 1, error_max);
  for (size_t i = 0; i < wanted.ngrams.size(); ++i)
    for (size_t d = 0; d < wanted.ngrams[i].size(); ++d)
      ASSERT_NEAR(found.ngrams[i][d], wanted.ngrams[i][d], error_max) << "row " << i;
}

TEST_P(SubwordKernels, GiveTheSameBitsForTheSameSeed) {
  for (const OptimizerKind optimizer : kOptimizers)
    EXPECT_EQ(train_once(GetParam(), optimizer), train_once(GetParam(), optimizer)) << optimizer_name(optimizer);
}

TEST_P(SubwordKernels, BringPlantedClassesTogetherWithEveryOptimizer) {
  const Vocabulary words = equal_words(kPlantedWords);
  const SamplingTables tables(words, 0);
  for (const OptimizerKind optimizer : kOptimizers) {
    Parameters parameters = new_parameters(words, 20, optimizer);
    const auto worker = make_worker("subword", GetParam(), {.negatives = 5}, parameters);
    double first = 0, last = 0;
    for (uint64_t round = 0; round < 150; ++round) {
      Random random(round);
      const float lr = optimizer == OptimizerKind::kAdam ? 0.005f : 0.05f;
      const StepStats stats = worker->step(planted_chunk(round), tables, lr, random);
      ASSERT_EQ(stats.refused, 0);
      last = stats.loss / static_cast<double>(stats.pairs);
      if (round == 0) first = last;
    }
    EXPECT_LT(last, first - 0.3) << optimizer_name(optimizer);
    EXPECT_GT(class_gap(std::move(composed_rows(parameters, parameters.rows())).value()), 0.4)
        << optimizer_name(optimizer);
  }
}

TEST_P(SubwordKernels, KeepNanToTheRowsThatHadIt) {
  const Vocabulary words = equal_words(400);
  const SamplingTables tables(words, 0);
  Parameters parameters = random_subword_parameters(words, 21);
  const uint32_t bad = parameters.subwords->rows_of(7)[0];
  parameters.subwords->table.rows.row(bad)[3] = std::numeric_limits<float>::quiet_NaN();
  Random random(2);
  const StepStats stats =
      make_worker("subword", GetParam(), {}, parameters)->step(random_chunk(400, 3'000, 10), tables, 0.001f, random);
  EXPECT_GT(stats.refused, 2);
  EXPECT_GT(stats.pairs, 500);
  EXPECT_TRUE(std::isfinite(stats.loss));
  const Rows ngrams = values_of(parameters.subwords->table.rows), own = values_of(parameters.input.rows);
  for (size_t i = 0; i < ngrams.size(); ++i)
    for (size_t d = 0; d < 21; ++d) ASSERT_EQ(std::isfinite(ngrams[i][d]), !(i == bad && d == 3)) << "row " << i;
  for (const auto& row : own)
    for (const double value : row) ASSERT_TRUE(std::isfinite(value));
}

// Words of the same ending come together; stems say nothing.
class SubwordMorphology : public ::testing::Test {
 protected:
  static constexpr int32_t kStems = 40;
  static inline const std::vector<std::string> kEndings = {"ation", "less", "wards"};

  static std::string stem(int32_t number) {
    Random random(mix(99, static_cast<uint64_t>(number)));
    std::string letters;
    for (int i = 0; i < 5; ++i) letters += static_cast<char>('a' + random.below(26));
    return letters;
  }

  void SetUp() override {
    for (const std::string& ending : kEndings)
      for (int32_t i = 0; i < kStems; ++i) words_.add(stem(i) + ending, 100);
    parameters_ = new_parameters(words_, 24, OptimizerKind::kSgd);
    const SamplingTables tables(words_, 0);
    const auto worker = make_worker("subword", "auto", {.negatives = 5}, parameters_);
    for (uint64_t round = 0; round < 60; ++round) {
      Random random(round);
      std::vector<std::vector<Slot>> sentences(60, std::vector<Slot>(10));
      for (std::vector<Slot>& sentence : sentences) {
        const Slot first = draw_slot(random, 0, 3) * kStems;
        for (Slot& slot : sentence) slot = draw_slot(random, first, first + kStems);
      }
      worker->step(chunk_of(sentences), tables, 0.05f, random);
    }
  }

  std::shared_ptr<const SubwordVectors> vectors() {
    const SubwordTable& subwords = *parameters_.subwords;
    return std::move(SubwordVectors::make(
                         {subwords.options().ngrams, false, {subwords.buckets().begin(), subwords.buckets().end()}},
                         std::move(subwords.table.rows.copy()).value(), Matrix()))
        .value();
  }

  Vocabulary words_;
  Parameters parameters_;
};

TEST_F(SubwordMorphology, UnseenWordsLieAmongThoseOfTheirEnding) {
  const auto subwords = vectors();
  const Rows seen = composed(parameters_);
  for (size_t ending = 0; ending < kEndings.size(); ++ending)
    for (int32_t i = 1000; i < 1010; ++i) {
      std::vector<float> made(24);
      ASSERT_TRUE(subwords->generate(stem(i) + kEndings[ending], made).ok());
      const std::vector<double> vector(made.begin(), made.end());
      std::multimap<double, size_t, std::greater<>> nearest;
      for (size_t slot = 0; slot < seen.size(); ++slot)
        nearest.emplace(dot(vector, seen[slot]) / std::sqrt(dot(seen[slot], seen[slot])), slot / kStems);
      int right = 0, asked = 0;
      for (auto found = nearest.begin(); asked < 10; ++found, ++asked) right += found->second == ending ? 1 : 0;
      EXPECT_GE(right, 9) << stem(i) + kEndings[ending];
    }
}

TEST_F(SubwordMorphology, AnySpellingHasAVectorAndTheEmptyOneAnError) {
  const auto subwords = vectors();
  std::vector<float> made(24);
  for (const std::string& word : {std::string("a"), std::string("ㅋㅋ"), std::string("\xff\0\x80", 3),
                                  std::string(100'000, 'x'), std::string("</s>")}) {
    EXPECT_TRUE(subwords->generate(word, made).ok());
    for (const float value : made) EXPECT_TRUE(std::isfinite(value));
  }
  EXPECT_EQ(subwords->generate("", made).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace streamvec
