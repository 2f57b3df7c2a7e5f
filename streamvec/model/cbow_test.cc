#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "streamvec/kernel/pair_block.h"
#include "streamvec/model/model.h"
#include "streamvec/model/testing.h"

namespace streamvec {
namespace {

using namespace streamvec::testing;  // NOLINT: the helpers of this folder

// The mean of the words around each centre predicts it, against the negatives that are not the centre.
Totals mean_of_context_loss(const WindowPlan& plan, const WindowOptions& options, const Rows& input,
                            const Rows& output) {
  Totals totals;
  const double share = static_cast<double>(options.negatives) / options.negatives_shared;
  for (const auto& [centre, begin, end] : plan.windows) {
    if (end - begin < 2) continue;
    std::vector<double> mean(input[0].size());
    for (int32_t j = begin; j < end; ++j)
      if (j != centre) add(1.0 / (end - begin - 1), input[static_cast<size_t>(plan.columns[j])], mean);
    const Slot word = plan.columns[centre];
    totals.loss += minus_log_sigma(dot(mean, output[static_cast<size_t>(word)]));
    for (const Slot negative : plan.negatives)
      if (negative != word) totals.loss += share * minus_log_sigma(-dot(mean, output[static_cast<size_t>(negative)]));
    ++totals.pairs;
  }
  return totals;
}

void expect_moved_by_slopes(const Rows& before, const Rows& after, double lr, Rows& varied,
                            const std::function<double()>& loss, const char* table) {
  constexpr double kStep = 1e-5;
  for (size_t i = 0; i < before.size(); ++i)
    for (size_t d = 0; d < before[i].size(); ++d) {
      varied[i][d] = before[i][d] + kStep;
      const double above = loss();
      varied[i][d] = before[i][d] - kStep;
      const double below = loss();
      varied[i][d] = before[i][d];
      EXPECT_NEAR((after[i][d] - before[i][d]) / lr, -(above - below) / (2 * kStep), 5e-4) << table << " row " << i;
    }
}

TEST(Cbow, StepIsTheSlopeOfTheMeanOfContextLossByFiniteDifferences) {
  constexpr float kRate = 0.001f;
  const WindowOptions windows = settled({.window = 3, .negatives = 4, .centres = 30, .negatives_shared = 6});
  const SamplingTables tables(equal_words(12), 0);
  const Chunk chunk = chunk_of({{0, 1, 2, 3, 0, 5}, {6}, {7, 8}, {9, 10, 9, 11, 1, 1, 4}});  // words come back
  Parameters parameters = random_parameters(12, 5);
  Rows input = values_of(parameters.input.rows), output = values_of(parameters.output.rows);
  const Rows input_before = input, output_before = output;
  const std::vector<WindowPlan> plans = plans_of(chunk, tables, windows, 21);
  ASSERT_EQ(plans.size(), 1);
  const Totals totals = mean_of_context_loss(plans[0], windows, input, output);
  Random random(21);
  const StepStats stats = make_worker("cbow", "reference", windows, parameters)->step(chunk, tables, kRate, random);
  EXPECT_EQ(stats.pairs, totals.pairs);
  EXPECT_EQ(stats.pairs, 15) << "one for each centre with a neighbour";
  EXPECT_NEAR(stats.loss, totals.loss, 1e-5);
  const auto loss = [&] { return mean_of_context_loss(plans[0], windows, input, output).loss; };
  expect_moved_by_slopes(input_before, values_of(parameters.input.rows), kRate, input, loss, "input");
  expect_moved_by_slopes(output_before, values_of(parameters.output.rows), kRate, output, loss, "output");
}

class CbowKernels : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const Result<std::unique_ptr<PairKernel>> made = make_pair_kernel(GetParam());
    if (!made.ok()) GTEST_SKIP() << made.status().message();
  }
};
INSTANTIATE_TEST_SUITE_P(Kinds, CbowKernels, ::testing::Values("reference", "simd", "bf16", "amx"),
                         [](const auto& test) { return test.param; });

TEST_P(CbowKernels, AgreeWithTheReference) {
  const SamplingTables tables(equal_words(60), 0);
  const Chunk chunk = random_chunk(60, 500, 3);
  const auto run = [&](const std::string& kernel) {
    Parameters parameters = random_parameters(60, 37);
    Random random(6);
    const StepStats stats = make_worker("cbow", kernel, {}, parameters)->step(chunk, tables, 0.01f, random);
    return std::tuple(stats.loss, stats.pairs, values_of(parameters.input.rows), values_of(parameters.output.rows));
  };
  const auto [wanted_loss, wanted_pairs, wanted_input, wanted_output] = run("reference");
  const auto [loss, pairs, input, output] = run(GetParam());
  const double error_max = GetParam() == "reference" || GetParam() == "simd" ? 1e-5 : 5e-3;
  EXPECT_EQ(pairs, wanted_pairs);
  EXPECT_NEAR(loss / wanted_loss, 1, error_max);
  for (size_t i = 0; i < input.size(); ++i)
    for (size_t d = 0; d < input[i].size(); ++d) {
      ASSERT_NEAR(input[i][d], wanted_input[i][d], error_max);
      ASSERT_NEAR(output[i][d], wanted_output[i][d], error_max);
    }
}

TEST_P(CbowKernels, BringPlantedClassesTogetherWithEveryOptimizer) {
  const SamplingTables tables(equal_words(kPlantedWords), 0);
  for (const OptimizerKind optimizer : kOptimizers) {
    Parameters parameters =
        std::move(Parameters::make({.rows = kPlantedWords, .dim = 20, .optimizer = optimizer})).value();
    const auto worker = make_worker("cbow", GetParam(), {.negatives = 5}, parameters);
    double first = 0, last = 0;
    for (uint64_t round = 0; round < 150; ++round) {
      Random random(round);
      const float lr = optimizer == OptimizerKind::kAdam ? 0.01f : 0.1f;
      const StepStats stats = worker->step(planted_chunk(round), tables, lr, random);
      ASSERT_EQ(stats.refused, 0);
      last = stats.loss / static_cast<double>(stats.pairs);
      if (round == 0) first = last;
    }
    EXPECT_LT(last, first - 0.3) << optimizer_name(optimizer);
    EXPECT_GT(class_gap(parameters.input.rows), 0.4) << optimizer_name(optimizer);
  }
}

TEST_P(CbowKernels, TextThatSaysFewWordsAgainAndAgainThrowsNoRowAbout) {
  expect_calm("cbow", GetParam());
}

TEST_P(CbowKernels, GiveTheSameBitsForTheSameSeed) {
  const SamplingTables tables(equal_words(100), 1e-2);
  const auto run = [&] {
    Parameters parameters = random_parameters(100, 37);
    Random random(4);
    const StepStats stats =
        make_worker("cbow", GetParam(), {}, parameters)->step(random_chunk(100, 500, 7), tables, 0.05f, random);
    return std::tuple(stats.loss, values_of(parameters.input.rows), values_of(parameters.output.rows));
  };
  EXPECT_EQ(run(), run());
}

TEST_P(CbowKernels, RefuseAndCountBlocksWithNanAndTrainTheOthers) {
  constexpr int32_t kWords = 400;
  const SamplingTables tables(equal_words(kWords), 0);
  Parameters parameters = random_parameters(kWords, 21);
  parameters.input.rows.row(7)[3] = std::numeric_limits<float>::quiet_NaN();
  parameters.output.rows.row(11)[20] = std::numeric_limits<float>::infinity();
  const Rows before = values_of(parameters.input.rows);
  Random random(2);
  const StepStats stats =
      make_worker("cbow", GetParam(), {}, parameters)->step(random_chunk(kWords, 3'000, 10), tables, 0.01f, random);
  EXPECT_GT(stats.refused, 5);
  EXPECT_GT(stats.pairs, 500);
  EXPECT_TRUE(std::isfinite(stats.loss));
  const Rows input = values_of(parameters.input.rows), output = values_of(parameters.output.rows);
  int64_t changed = 0;
  for (size_t i = 0; i < kWords; ++i) {
    changed += input[i] != before[i];
    for (size_t d = 0; d < 21; ++d) {
      ASSERT_EQ(std::isfinite(input[i][d]), !(i == 7 && d == 3)) << "input row " << i;
      ASSERT_EQ(std::isfinite(output[i][d]), !(i == 11 && d == 20)) << "output row " << i;
    }
  }
  EXPECT_GT(changed, kWords / 2);
}

}  // namespace
}  // namespace streamvec
