#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "streamvec/kernel/pair_block.h"
#include "streamvec/model/block_step.h"
#include "streamvec/model/model.h"
#include "streamvec/model/testing.h"

namespace streamvec {
namespace {

using namespace streamvec::testing;  // NOLINT: the helpers of this folder

// One block, one pair after the other: the word beside a centre predicts it, against every shared negative with the
// weight negatives / shared, the centre itself excepted. Slopes at the old values, x and y.
void naive_block(const WindowPlan& plan, const WindowOptions& options, double lr, const Rows& x, const Rows& y,
                 Rows& input, Rows& output, Totals& totals) {
  const double share = static_cast<double>(options.negatives) / options.negatives_shared;
  for (const auto& [centre, begin, end] : plan.windows)
    for (int32_t j = begin; j < end; ++j) {
      if (j == centre) continue;
      const auto in = static_cast<size_t>(plan.columns[j]), out = static_cast<size_t>(plan.columns[centre]);
      const auto meet = [&](size_t word, double label, double weight) {
        const double z = dot(x[in], y[word]);
        totals.loss += weight * minus_log_sigma(label > 0 ? z : -z);
        add(lr * weight * (label - sigma(z)), y[word], input[in]);
        add(lr * weight * (label - sigma(z)), x[in], output[word]);
      };
      meet(out, 1, 1);
      for (const Slot negative : plan.negatives)
        if (static_cast<size_t>(negative) != out) meet(static_cast<size_t>(negative), 0, share);
      ++totals.pairs;
    }
}

// Blocks of text, the old values being those from before each `batch` of them.
void naive_blocks(const std::vector<WindowPlan>& plans, const WindowOptions& options, size_t batch, Rows& input,
                  Rows& output, Totals& totals) {
  Rows x, y;
  for (size_t i = 0; i < plans.size(); ++i) {
    if (i % batch == 0) x = input, y = output;
    naive_block(plans[i], options, 0.001f, x, y, input, output, totals);
  }
}

// A text, how it is cut, and how far a kernel may be from the naive calculation. Steps are short: 0.001.
struct Comparison {
  int32_t words, tokens;
  WindowOptions windows;
  std::string kernel = "reference";
  double error_max = 1e-6;
  int32_t blocks = 1;  // of a batch
};

void expect_naive(const Comparison& test) {
  constexpr float kRate = 0.001f;
  const SamplingTables tables(equal_words(test.words), 0);
  const Chunk chunk = random_chunk(test.words, test.tokens, 5);
  Parameters parameters = random_parameters(test.words, 23);
  Rows input = values_of(parameters.input.rows), output = values_of(parameters.output.rows);
  Totals totals;
  const WindowOptions windows = settled(test.windows);
  naive_blocks(plans_of(chunk, tables, windows, 9), windows, static_cast<size_t>(test.blocks), input, output, totals);
  Random random(9);
  ModelOptions options{"sgns", test.windows, test.kernel};
  if (test.blocks > 1) options.batch = test.blocks * windows.centres;
  const StepStats stats = std::move(make_model_worker(options, parameters)).value()->step(chunk, tables, kRate, random);
  EXPECT_EQ(stats.pairs, totals.pairs);
  EXPECT_EQ(stats.refused, 0);
  EXPECT_NEAR(stats.loss / totals.loss, 1, std::max(1e-6, test.error_max)) << "the true loss of the pairs";
  expect_near(values_of(parameters.input.rows), input, test.error_max);
  expect_near(values_of(parameters.output.rows), output, test.error_max);
}

TEST(Sgns, OneBlockEqualsTheNaiveCalculationPairByPair) {
  expect_naive({40, 16, {.window = 5, .negatives = 10, .centres = 16, .negatives_shared = 12}});
}

TEST(Sgns, ManyBlocksEqualTheNaiveCalculation) {
  expect_naive({300, 600, {}});
  expect_naive({300, 600, {.window = 1, .negatives = 3}});
  expect_naive({300, 600, {.window = 20, .negatives = 5}});
}

TEST(Sgns, TheBlocksOfABatchAllFindTheRowsAsItBegan) {
  expect_naive({300, 600, {}, "reference", 1e-6, 4});
  expect_naive({300, 600, {.window = 2, .negatives = 3}, "reference", 1e-6, 100});
  for (const std::string& kernel : pair_kernels_available())
    expect_naive({300, 600, {}, kernel, kernel == "reference" || kernel == "simd" ? 1e-6 : 1e-3, 7});
}

// Three words, one of them in every other place: however many blocks a batch has, a row's steps together are cut at
// kNamedOften times that of one; where eight threads train, at a quarter of that.
TEST(Sgns, ABatchThatNamesAWordOftenMovesItNoFurtherThanAFewBlocksWould) {
  const SamplingTables tables(equal_words(3), 0);
  std::vector<Slot> words;
  for (int32_t i = 0; i < 2'000; ++i) words.push_back(i % 2 == 0 ? 0 : 1 + i / 2 % 2);
  for (const std::string& kernel : pair_kernels_available())
    for (const auto& [threads, share] : {std::pair{1, 1.0f}, {2, 1.0f}, {8, 0.25f}}) {
      Parameters parameters = random_parameters(3, 20);
      const Rows before = values_of(parameters.input.rows);
      ModelOptions options{"sgns", {}, kernel};
      options.batch = 4'000;
      options.threads = threads;
      Random random(3);
      const StepStats stats =
          std::move(make_model_worker(options, parameters)).value()->step(chunk_of({words}), tables, 0.05f, random);
      EXPECT_EQ(stats.refused, 0);
      const float longest = kSgdStepMax * kNamedOften * 0.5f * share;  // output rows have values of up to 0.5
      const Rows after = values_of(parameters.input.rows);
      for (size_t row = 0; row < 3; ++row)
        for (size_t d = 0; d < 20; ++d) EXPECT_LE(std::abs(after[row][d] - before[row][d]), 1.02f * longest) << kernel;
    }
}

// Adam's first step is as long as the rate, whatever the slope.
TEST(Sgns, AnOptimizerTakesOneStepABatch) {
  const SamplingTables tables(equal_words(2), 0);
  const Chunk chunk = chunk_of({std::vector<Slot>(60, 0)});
  Parameters parameters = random_parameters(2, 8, OptimizerKind::kAdam);
  ModelOptions options{"sgns", {}, "reference"};
  options.batch = 100;
  Random random(3);
  const Rows before = values_of(parameters.input.rows);
  (void)std::move(make_model_worker(options, parameters)).value()->step(chunk, tables, 0.01f, random);
  const Rows after = values_of(parameters.input.rows);
  for (size_t d = 0; d < 8; ++d) EXPECT_NEAR(std::abs(after[0][d] - before[0][d]), 0.01, 1e-4);
}

TEST(Sgns, ANegativeThatIsACentreIsExcusedForThatCentreOnly) {
  // Few words: nearly every negative is some centre of its block, most of them several times.
  expect_naive({3, 200, {.window = 4, .negatives = 10}});
  expect_naive({8, 200, {.window = 2, .negatives = 5, .centres = 7, .negatives_shared = 30}});
}

TEST(Sgns, WordsThatTheCentreFilterTakesForEachOtherAreToldApart) {
  // Slots 1024 apart share a bit of CentreSet.
  const SamplingTables tables(equal_words(2'100), 0);
  Parameters parameters = random_parameters(2'100, 5);
  Rows input = values_of(parameters.input.rows), output = values_of(parameters.output.rows);
  const WindowOptions windows{.window = 3, .negatives = 5, .negatives_shared = 2'000};
  const Chunk chunk = random_chunk(2'100, 40, 6);
  Totals totals;
  naive_blocks(plans_of(chunk, tables, windows, 3), settled(windows), 1, input, output, totals);
  Random random(3);
  const StepStats stats = make_worker("sgns", "reference", windows, parameters)->step(chunk, tables, 0.001f, random);
  EXPECT_NEAR(stats.loss / totals.loss, 1, 1e-6);
  expect_near(values_of(parameters.output.rows), output, 1e-6);
}

TEST(Sgns, WithoutNegativesOnlyPairsAreLearnt) {
  const SamplingTables tables(equal_words(50), 0);
  Parameters parameters = random_parameters(50, 8);
  for (const std::string& kernel : pair_kernels_available()) {
    Random random(1);
    const StepStats stats = make_worker("sgns", kernel, {.negatives = 0}, parameters)
                                ->step(random_chunk(50, 300, 1), tables, 0.01f, random);
    EXPECT_GT(stats.pairs, 0) << kernel;
    EXPECT_EQ(stats.refused, 0) << kernel;
    EXPECT_NEAR(stats.loss / static_cast<double>(stats.pairs), std::log(2.0), 0.3) << kernel;
  }
}

// How far each row goes in one block.
std::vector<double> ways(OptimizerKind optimizer, const RowPace::Options& pace, bool of_output) {
  Parameters parameters = random_parameters(12, 16, optimizer);
  const Matrix& rows = of_output ? parameters.output.rows : parameters.input.rows;
  const Rows before = values_of(rows);
  const SamplingTables tables(rarer_and_rarer_words(12), 0, pace);
  const auto worker = make_worker("sgns", "reference", {}, parameters);
  Random random(3);
  worker->step(chunk_of({{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}), tables, 1e-3f, random);
  Rows moved = values_of(rows);
  std::vector<double> lengths;
  for (size_t i = 0; i < moved.size(); ++i) {
    add(-1, before[i], moved[i]);
    lengths.push_back(std::sqrt(dot(moved[i], moved[i])));
  }
  return lengths;
}

TEST(Sgns, RowsOfRareWordsTakeTheStepsOfTheirPace) {
  const SamplingTables tables(rarer_and_rarer_words(12), 0, {.pace_max = 8});
  for (const bool of_output : {false, true}) {
    const std::vector<double> alike = ways(OptimizerKind::kSgd, {}, of_output);
    const std::vector<double> paced = ways(OptimizerKind::kSgd, {.pace_max = 8}, of_output);
    for (size_t i = 0; i < alike.size(); ++i) {
      const auto slot = static_cast<Slot>(i);
      const double pace = of_output ? tables.pace.output(slot) : tables.pace.input(slot);
      EXPECT_NEAR(paced[i], pace * alike[i], 0.01 * paced[i]) << "row " << i << (of_output ? " of output" : "");
    }
    EXPECT_GT(paced.back(), 2 * alike.back());
  }
}

TEST(Sgns, OptimizersThatFindTheirRatesThemselvesTakeNoPace) {
  for (const OptimizerKind optimizer : {OptimizerKind::kAdagrad, OptimizerKind::kAdam})
    EXPECT_EQ(ways(optimizer, {.pace_max = 8}, false), ways(optimizer, {}, false));
}

TEST(Sgns, UntrainedLossPerPairIsOnePlusNegativesTimesLogTwo) {
  const SamplingTables tables(equal_words(2'000), 0);
  for (const int32_t negatives : {1, 5, 10}) {
    Parameters parameters = std::move(Parameters::make({.rows = 2'000, .dim = 20})).value();
    Random random(1);
    const StepStats stats = make_worker("sgns", "auto", {.negatives = negatives}, parameters)
                                ->step(random_chunk(2'000, 500, 1), tables, 0, random);
    EXPECT_NEAR(stats.loss / static_cast<double>(stats.pairs), (1 + negatives) * std::log(2.0), 0.01 * (1 + negatives));
  }
}

class SgnsKernels : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const Result<std::unique_ptr<PairKernel>> made = make_pair_kernel(GetParam());
    if (!made.ok()) GTEST_SKIP() << made.status().message();
  }
};
INSTANTIATE_TEST_SUITE_P(Kinds, SgnsKernels, ::testing::Values("reference", "simd", "bf16", "amx"),
                         [](const auto& test) { return test.param; });

TEST_P(SgnsKernels, EqualTheNaiveCalculation) {
  const double error_max = GetParam() == "reference" || GetParam() == "simd" ? 1e-6 : 1e-3;
  expect_naive({300, 600, {}, GetParam(), error_max});
  expect_naive({5, 100, {.window = 7}, GetParam(), error_max});
}

// Mean loss per pair of the first and of the last of some rounds over planted text.
std::pair<double, double> train_planted(ModelWorker& worker, float lr, int rounds) {
  const SamplingTables tables(equal_words(kPlantedWords), 0);
  double first = 0, last = 0;
  for (int round = 0; round < rounds; ++round) {
    Random random(static_cast<uint64_t>(round));
    const StepStats stats = worker.step(planted_chunk(static_cast<uint64_t>(round)), tables, lr, random);
    EXPECT_EQ(stats.refused, 0);
    last = stats.loss / static_cast<double>(stats.pairs);
    if (round == 0) first = last;
  }
  return {first, last};
}

TEST_P(SgnsKernels, BringPlantedClassesTogetherWithEveryOptimizer) {
  for (const OptimizerKind optimizer : kOptimizers) {
    Parameters parameters =
        std::move(Parameters::make({.rows = kPlantedWords, .dim = 20, .optimizer = optimizer})).value();
    const auto worker = make_worker("sgns", GetParam(), {.negatives = 5}, parameters);
    const float lr = optimizer == OptimizerKind::kAdam ? 0.01f : 0.05f;
    const auto [first, last] = train_planted(*worker, lr, 120);
    EXPECT_LT(last, first - 0.3) << optimizer_name(optimizer);
    EXPECT_GT(class_gap(parameters.input.rows), 0.4) << optimizer_name(optimizer);
  }
}

TEST_P(SgnsKernels, KeepARateFarTooHighWithinBounds) {
  // Without a cut of the summed steps this rate throws the few words about until a row overflows.
  Parameters parameters = std::move(Parameters::make({.rows = kPlantedWords, .dim = 20})).value();
  const auto worker = make_worker("sgns", GetParam(), {.negatives = 5}, parameters);
  const auto [first, last] = train_planted(*worker, 2.0f, 30);
  EXPECT_LT(last, 10 * first);
}

TEST_P(SgnsKernels, TextThatSaysFewWordsAgainAndAgainThrowsNoRowAbout) {
  expect_calm("sgns", GetParam());
}

std::vector<uint32_t> bits_of(const Parameters& parameters) {
  std::vector<uint32_t> bits;
  for (const Matrix* rows : {&parameters.input.rows, &parameters.output.rows})
    for (int64_t i = 0; i < rows->rows(); ++i)
      for (int64_t d = 0; d < rows->stride(); ++d) bits.push_back(std::bit_cast<uint32_t>(rows->row(i)[d]));
  return bits;
}

TEST_P(SgnsKernels, GiveTheSameBitsForTheSameSeedWhateverTheWorkerDidBefore) {
  const SamplingTables tables(equal_words(100), 1e-2);
  for (const OptimizerKind optimizer : kOptimizers) {
    const auto run = [&](bool used) {
      Parameters parameters = random_parameters(100, 37, optimizer);
      const auto worker = make_worker("sgns", GetParam(), {}, parameters);
      if (used) {  // on rows that are then put back
        Random other(77);
        (void)worker->step(random_chunk(100, 333, 8), tables, 0.05f, other);
        Parameters again = random_parameters(100, 37, optimizer);
        std::swap(parameters.input, again.input);
        std::swap(parameters.output, again.output);
      }
      Random random(4);
      const StepStats stats = worker->step(random_chunk(100, 500, 7), tables, 0.05f, random);
      return std::pair(stats.loss, bits_of(parameters));
    };
    const auto first = run(false);
    EXPECT_EQ(first, run(false)) << optimizer_name(optimizer);
    EXPECT_EQ(first, run(true)) << optimizer_name(optimizer);
  }
}

TEST_P(SgnsKernels, RefuseAndCountBlocksWithNanAndTrainTheOthers) {
  constexpr int32_t kWords = 400;
  constexpr int64_t kBadInput = 7, kBadOutput = 11;
  const SamplingTables tables(equal_words(kWords), 0);
  const Chunk chunk = random_chunk(kWords, 3'000, 10);
  for (const OptimizerKind optimizer : kOptimizers) {
    Parameters parameters = random_parameters(kWords, 21, optimizer);
    parameters.input.rows.row(kBadInput)[3] = std::numeric_limits<float>::quiet_NaN();
    parameters.output.rows.row(kBadOutput)[20] = std::numeric_limits<float>::infinity();
    const Rows input = values_of(parameters.input.rows), output = values_of(parameters.output.rows);
    Random random(2);
    const StepStats stats = make_worker("sgns", GetParam(), {}, parameters)->step(chunk, tables, 0.01f, random);
    EXPECT_GT(stats.refused, 5);
    EXPECT_GT(stats.pairs, 1'000);
    EXPECT_TRUE(std::isfinite(stats.loss));
    const Rows after_input = values_of(parameters.input.rows), after_output = values_of(parameters.output.rows);
    int64_t changed = 0;
    for (size_t i = 0; i < kWords; ++i) {
      changed += after_input[i] != input[i];
      for (size_t d = 0; d < 21; ++d) {
        ASSERT_EQ(std::isfinite(after_input[i][d]), !(i == kBadInput && d == 3)) << "input row " << i;
        ASSERT_EQ(std::isfinite(after_output[i][d]), !(i == kBadOutput && d == 20)) << "output row " << i;
      }
    }
    EXPECT_EQ(after_input[kBadInput][0], input[kBadInput][0]) << "the bad row's other values stay";
    EXPECT_EQ(after_output[kBadOutput], output[kBadOutput]);
    EXPECT_GT(changed, kWords / 2);
    for (Table* table : {&parameters.input, &parameters.output})
      for (const Optimizer::State& state : table->optimizer->states())
        for (const std::vector<double>& row : values_of(*state.values))
          for (const double value : row) ASSERT_TRUE(std::isfinite(value)) << state.name;
  }
}

TEST_P(SgnsKernels, WorkForEveryWindowUpToFifty) {
  const SamplingTables tables(equal_words(500), 0);
  std::vector<Slot> sentence(300);
  Random draw(1);
  for (Slot& slot : sentence) slot = draw_slot(draw, 0, 500);
  const Chunk chunk = chunk_of({sentence});
  for (int32_t window = 1; window <= 50; window += GetParam() == "reference" ? 16 : 1) {
    Parameters parameters = random_parameters(500, 10);
    Random random(3);
    const StepStats stats = make_worker("sgns", GetParam(), {.window = window, .negatives = 5}, parameters)
                                ->step(chunk, tables, 0.01f, random);
    EXPECT_EQ(stats.refused, 0) << window;
    EXPECT_GT(stats.pairs, 250 * window) << window;
    EXPECT_NEAR(stats.loss / static_cast<double>(stats.pairs), 6 * std::log(2.0), 1.0) << window;
  }
}

TEST(Sgns, TouchesOnlyRowsOfTheTextAndItsNegatives) {
  Vocabulary vocabulary = vocabulary_of({100, 100, 100, 0, 0});  // slots 3 and 4 are never drawn
  const SamplingTables tables(vocabulary, 0);
  for (const OptimizerKind optimizer : kOptimizers) {
    Parameters parameters = random_parameters(5, 20, optimizer);
    const Rows input = values_of(parameters.input.rows), output = values_of(parameters.output.rows);
    Random random(1);
    (void)make_worker("sgns", "auto", {}, parameters)->step(random_chunk(3, 200, 1), tables, 0.05f, random);
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(values_of(parameters.input.rows)[i] == input[i], i >= 3) << optimizer_name(optimizer) << " " << i;
      EXPECT_EQ(values_of(parameters.output.rows)[i] == output[i], i >= 3) << optimizer_name(optimizer) << " " << i;
    }
  }
}

TEST(Sgns, AChunkWithoutPairsChangesNothing) {
  const SamplingTables tables(equal_words(10), 0);
  Parameters parameters = random_parameters(10, 20);
  const auto before = bits_of(parameters);
  const auto worker = make_worker("sgns", "auto", {}, parameters);
  for (const Chunk& chunk : {Chunk{}, chunk_of({{}, {1}, {2}})}) {
    Random random(1);
    const StepStats stats = worker->step(chunk, tables, 0.05f, random);
    EXPECT_EQ(stats.pairs, 0);
    EXPECT_EQ(stats.loss, 0);
    EXPECT_EQ(stats.refused, 0);
  }
  EXPECT_EQ(bits_of(parameters), before);
}

}  // namespace
}  // namespace streamvec
