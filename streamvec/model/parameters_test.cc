#include "streamvec/model/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "streamvec/model/testing.h"

namespace streamvec {
namespace {

using testing::Rows;
using testing::values_of;

Parameters make(const Parameters::Options& options) {
  return std::move(Parameters::make(options)).value();
}

TEST(Parameters, InputIsUniformWithinHalfThroughDimAndOutputZero) {
  const Parameters parameters = make({.rows = 2'000, .dim = 50});
  double sum = 0, largest = 0;
  for (const std::vector<double>& row : values_of(parameters.input.rows))
    for (const double value : row) {
      sum += value;
      largest = std::max(largest, std::abs(value));
    }
  EXPECT_LE(largest, 0.5 / 50);
  EXPECT_GT(largest, 0.499 / 50);
  EXPECT_NEAR(sum / 100'000, 0, 1e-4);
  for (const std::vector<double>& row : values_of(parameters.output.rows)) EXPECT_THAT(row, ::testing::Each(0.0));
}

TEST(Parameters, EveryRowAndEverySeedStartsElsewhere) {
  const Rows first = values_of(make({.rows = 200, .dim = 5, .seed = 1}).input.rows);
  const Rows second = values_of(make({.rows = 200, .dim = 5, .seed = 2}).input.rows);
  std::set<std::vector<double>> rows(first.begin(), first.end());
  rows.insert(second.begin(), second.end());
  EXPECT_EQ(rows.size(), 400);
}

TEST(Parameters, ARowStartsTheSameWheneverItIsAdded) {
  const Rows at_once = values_of(make({.rows = 50, .dim = 17, .seed = 9}).input.rows);
  Parameters grown = make({.rows = 1, .rows_max = 50, .dim = 17, .seed = 9});
  for (const int64_t rows : {1, 2, 20, 50}) grown.grow(rows);
  EXPECT_EQ(values_of(grown.input.rows), at_once);
  EXPECT_EQ(grown.rows(), 50);
  EXPECT_EQ(grown.output.rows.rows(), 50);
}

TEST(Parameters, ManyRowsStartTheSameByHoweverManyThreads) {
  const Rows by_one = values_of(make({.rows = 30'001, .dim = 3, .seed = 9}).input.rows);
  EXPECT_EQ(values_of(make({.rows = 30'001, .dim = 3, .seed = 9, .threads = 4}).input.rows), by_one);
}

TEST(Parameters, GrowthKeepsRowsWhereTheyAre) {
  for (const OptimizerKind optimizer : {OptimizerKind::kSgd, OptimizerKind::kAdagrad, OptimizerKind::kAdam}) {
    Parameters parameters = make({.rows = 10, .rows_max = 1'000, .dim = 17, .optimizer = optimizer});
    const float* input = parameters.input.rows.row(3);
    const float* output = parameters.output.rows.row(3);
    std::fill_n(parameters.input.rows.row(3), 17, 2.0f);
    std::fill_n(parameters.output.rows.row(3), 17, 3.0f);
    parameters.grow(1'000);
    EXPECT_EQ(parameters.input.rows.row(3), input);
    EXPECT_EQ(parameters.output.rows.row(3), output);
    EXPECT_EQ(std::count(input, input + 17, 2.0f), 17);
    EXPECT_EQ(std::count(output, output + 17, 3.0f), 17);
    for (Table* table : {&parameters.input, &parameters.output})
      for (const Optimizer::State& state : table->optimizer->states()) EXPECT_EQ(state.values->rows(), 1'000);
  }
}

TEST(Parameters, PaddingIsZero) {
  const Parameters parameters = make({.rows = 20, .dim = 3});
  for (int64_t i = 0; i < 20; ++i) {
    const float* row = parameters.input.rows.row(i);
    EXPECT_EQ(std::count(row + 3, row + parameters.input.rows.stride(), 0.0f), parameters.input.rows.stride() - 3);
  }
}

TEST(Parameters, TooManyRowsAreResourceExhausted) {
  const Result<Parameters> parameters = Parameters::make({.rows = 1, .rows_max = int64_t{1} << 50, .dim = 200});
  ASSERT_FALSE(parameters.ok());
  EXPECT_EQ(parameters.status().code(), Code::kResourceExhausted);
}

TEST(Parameters, RowsThatDoNotFitInMemoryAreNamedWithBothFigures) {
  EXPECT_TRUE(Parameters::check_memory({.rows = 1'000, .dim = 200}).ok());
  const Status status = Parameters::check_memory({.rows = int64_t{1} << 31, .dim = 65'536});
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(status.message(),
              ::testing::HasSubstr("vectors of 2147483648 words and 65536 values: 1073741824 MB are"));
  EXPECT_THAT(status.message(), ::testing::HasSubstr("MB are free; try a smaller --dim"));
}

TEST(Parameters, ARestartedRowIsDrawnAnewAndItsOptimiserKnowsNothing) {
  for (const OptimizerKind optimizer : {OptimizerKind::kSgd, OptimizerKind::kAdagrad, OptimizerKind::kAdam}) {
    Parameters parameters = make({.rows = 4, .rows_max = 10, .dim = 17, .optimizer = optimizer});
    const Rows before = values_of(parameters.input.rows);
    alignas(64) float gradient[32];
    std::fill_n(gradient, 32, 1.0f);
    for (Table* table : {&parameters.input, &parameters.output})
      for (int64_t row = 0; row < 4; ++row) table->optimizer->step(row, gradient, 0.1f, table->rows.row(row));
    const Rows stepped = values_of(parameters.input.rows);
    parameters.restart(2, 77);
    const Rows after = values_of(parameters.input.rows);
    EXPECT_NE(after[2], stepped[2]);
    EXPECT_NE(after[2], before[2]);
    EXPECT_EQ(after[1], stepped[1]);
    EXPECT_THAT(values_of(parameters.output.rows)[2], ::testing::Each(0.0));
    EXPECT_THAT(values_of(parameters.output.rows)[1], ::testing::Not(::testing::Each(0.0)));
    for (const Optimizer::State& state : parameters.input.optimizer->states()) {
      EXPECT_THAT(values_of(*state.values)[2], ::testing::Each(0.0)) << state.name;
      EXPECT_THAT(values_of(*state.values)[1], ::testing::Not(::testing::Each(0.0))) << state.name;
    }
  }
}

TEST(Parameters, ARestartBeyondTheLastRowAddsIt) {
  Parameters parameters = make({.rows = 2, .rows_max = 10, .dim = 5});
  parameters.restart(4, 4);
  EXPECT_EQ(parameters.rows(), 5);
  EXPECT_EQ(values_of(parameters.input.rows), values_of(make({.rows = 5, .dim = 5}).input.rows));
}

}  // namespace
}  // namespace streamvec
