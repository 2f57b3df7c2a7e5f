#include "streamvec/optim/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/kernel/row_ops.h"

namespace streamvec {
namespace {

constexpr int64_t kRows = 5, kRowsMax = 40, kDim = 19;
constexpr OptimizerKind kKinds[] = {OptimizerKind::kSgd, OptimizerKind::kAdagrad, OptimizerKind::kAdam};

Matrix random_rows(int64_t rows, uint64_t seed) {
  Matrix matrix = std::move(Matrix::make(rows, kDim, kRowsMax)).value();
  Random random(seed);
  for (int64_t i = 0; i < rows; ++i)
    for (float& value : matrix.view().row_span(i)) value = random.uniform() - 0.5f;
  return matrix;
}

std::unique_ptr<Optimizer> make(OptimizerKind kind, int64_t rows = kRows) {
  return std::move(make_optimizer(kind, rows, kDim, kRowsMax)).value();
}

std::vector<double> row_values(const Matrix& matrix, int64_t i) {
  return {matrix.row(i), matrix.row(i) + matrix.cols()};
}

// The formulas in double, one row.
struct PlainRow {
  explicit PlainRow(const std::vector<double>& start) : row(start), m(start.size()), v(start.size()) {}

  void sgd(const std::vector<double>& g, double lr) {
    for (size_t d = 0; d < row.size(); ++d) row[d] += lr * g[d];
  }
  void adagrad(const std::vector<double>& g, double lr) {
    double mean = 0;
    for (double value : g) mean += value * value / static_cast<double>(g.size());
    sum += mean;
    for (size_t d = 0; d < row.size(); ++d) row[d] += lr * g[d] / std::sqrt(sum);
  }
  void adam(const std::vector<double>& g, double lr) {
    const double beta1 = AdamRates{}.beta1, beta2 = AdamRates{}.beta2;
    ++steps;
    for (size_t d = 0; d < row.size(); ++d) {
      m[d] = beta1 * m[d] + (1 - beta1) * g[d];
      v[d] = beta2 * v[d] + (1 - beta2) * g[d] * g[d];
      row[d] += lr * m[d] / (1 - std::pow(beta1, steps)) / (std::sqrt(v[d] / (1 - std::pow(beta2, steps))) + 1e-8);
    }
  }
  void step(OptimizerKind kind, const std::vector<double>& g, double lr) {
    if (kind == OptimizerKind::kSgd) return sgd(g, lr);
    return kind == OptimizerKind::kAdagrad ? adagrad(g, lr) : adam(g, lr);
  }

  std::vector<double> row, m, v;
  double sum = 0;
  int steps = 0;
};

class EveryOptimizer : public ::testing::TestWithParam<OptimizerKind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, EveryOptimizer, ::testing::ValuesIn(kKinds),
                         [](const auto& test) { return std::string(optimizer_name(test.param)); });

TEST_P(EveryOptimizer, FollowsItsFormulaRowByRow) {
  const auto optimizer = make(GetParam());
  Matrix table = random_rows(kRows, 1);
  std::vector<PlainRow> plain;
  for (int64_t i = 0; i < kRows; ++i) plain.emplace_back(row_values(table, i));
  Random random(2);
  for (uint64_t step = 0; step < 300; ++step) {
    const auto i = static_cast<int64_t>(random.below(kRows));  // each row has its own number of steps
    const Matrix gradient = random_rows(1, 100 + step);
    optimizer->step(i, gradient.row(0), 0.03f, table.row(i));
    plain[static_cast<size_t>(i)].step(GetParam(), row_values(gradient, 0), 0.03f);
  }
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t d = 0; d < kDim; ++d)
      EXPECT_NEAR(table.row(i)[d], plain[static_cast<size_t>(i)].row[static_cast<size_t>(d)], 2e-5) << "row " << i;
    for (int64_t d = kDim; d < table.stride(); ++d) EXPECT_EQ(table.row(i)[d], 0) << "padding";
  }
}

TEST_P(EveryOptimizer, LeavesOtherRowsAndTheirStateUntouched) {
  const auto optimizer = make(GetParam());
  Matrix table = random_rows(kRows, 3);
  const Matrix before = std::move(table.copy()).value(), gradient = random_rows(1, 4);
  for (int step = 0; step < 10; ++step) optimizer->step(2, gradient.row(0), 0.1f, table.row(2));
  for (int64_t i : {0, 1, 3, 4}) {
    EXPECT_EQ(row_values(table, i), row_values(before, i)) << "row " << i;
    for (const Optimizer::State& state : optimizer->states())
      EXPECT_THAT(row_values(*state.values, i), ::testing::Each(0.0)) << state.name << " of row " << i;
  }
  EXPECT_NE(row_values(table, 2), row_values(before, 2));
}

TEST_P(EveryOptimizer, StateSurvivesGrowth) {
  const auto grown = make(GetParam()), always_large = make(GetParam(), kRowsMax);
  Matrix table = random_rows(kRowsMax, 5);
  Matrix other = std::move(table.copy()).value();
  for (uint64_t step = 0; step < 20; ++step) {
    if (step == 10) grown->grow(kRowsMax);
    const Matrix gradient = random_rows(1, 200 + step);
    const int64_t i = step < 10 ? 1 : static_cast<int64_t>(step % 2 * (kRowsMax - 2) + 1);
    grown->step(i, gradient.row(0), 0.1f, table.row(i));
    always_large->step(i, gradient.row(0), 0.1f, other.row(i));
  }
  for (int64_t i : {int64_t{1}, kRowsMax - 1}) EXPECT_EQ(row_values(table, i), row_values(other, i)) << "row " << i;
}

TEST_P(EveryOptimizer, StatesRestoredElsewhereContinueTheSame) {
  const auto first = make(GetParam()), second = make(GetParam());
  Matrix table = random_rows(kRows, 6), other = random_rows(kRows, 6);
  const Matrix gradient = random_rows(1, 7);
  for (int step = 0; step < 5; ++step) first->step(0, gradient.row(0), 0.1f, table.row(0));
  std::copy_n(table.row(0), table.stride(), other.row(0));
  const auto from = first->states(), to = second->states();
  ASSERT_EQ(from.size(), to.size());
  for (size_t s = 0; s < from.size(); ++s) {
    EXPECT_EQ(from[s].name, to[s].name);
    for (int64_t i = 0; i < kRows; ++i)
      std::copy_n(from[s].values->row(i), from[s].values->stride(), to[s].values->row(i));
  }
  first->step(0, gradient.row(0), 0.1f, table.row(0));
  second->step(0, gradient.row(0), 0.1f, other.row(0));
  EXPECT_EQ(row_values(table, 0), row_values(other, 0));
}

TEST_P(EveryOptimizer, AZeroGradientMovesNothing) {
  const auto optimizer = make(GetParam());
  Matrix table = random_rows(1, 8);
  const Matrix zero = std::move(Matrix::make(1, kDim)).value(), gradient = random_rows(1, 9);
  for (int times : {0, 3}) {
    for (int i = 0; i < times; ++i) optimizer->step(0, gradient.row(0), 0.1f, table.row(0));
    const std::vector<double> before = row_values(table, 0);
    optimizer->step(0, zero.row(0), 0.1f, table.row(0));
    EXPECT_EQ(row_values(table, 0), before) << "after " << times << " others";
  }
}

TEST_P(EveryOptimizer, NameIsReadBack) {
  const auto kind = parse_optimizer(optimizer_name(GetParam()));
  ASSERT_TRUE(kind.ok());
  EXPECT_EQ(kind.value(), GetParam());
}

TEST(Optimizer, StatesHaveTheNamesThatCheckpointsKeep) {
  const auto names = [](OptimizerKind kind) {
    std::vector<std::string> all;
    for (const Optimizer::State& state : make(kind)->states()) all.push_back(state.name);
    return all;
  };
  EXPECT_THAT(names(OptimizerKind::kSgd), ::testing::IsEmpty());
  EXPECT_THAT(names(OptimizerKind::kAdagrad), ::testing::ElementsAre("adagrad"));
  EXPECT_THAT(names(OptimizerKind::kAdam), ::testing::ElementsAre("adam.mean", "adam.variance", "adam.steps"));
}

TEST(Optimizer, AnUnknownNameIsAnInvalidArgumentThatNamesTheKnownOnes) {
  const auto kind = parse_optimizer("adamw");
  ASSERT_FALSE(kind.ok());
  EXPECT_EQ(kind.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(kind.status().message(), ::testing::HasSubstr("sgd, adagrad, adam or muon"));
}

TEST(Optimizer, ATableLargerThanAnAddressSpaceIsResourceExhausted) {
  for (OptimizerKind kind : {OptimizerKind::kAdagrad, OptimizerKind::kAdam}) {
    const auto optimizer = make_optimizer(kind, 1, 200, int64_t{1} << 50);
    ASSERT_FALSE(optimizer.ok());
    EXPECT_EQ(optimizer.status().code(), Code::kResourceExhausted);
  }
}

}  // namespace
}  // namespace streamvec
