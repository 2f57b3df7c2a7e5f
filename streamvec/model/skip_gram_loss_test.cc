#include "streamvec/model/skip_gram_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

constexpr int32_t kLossDim = 21;

Matrix drawn(int64_t rows, uint64_t seed) {
  Matrix matrix = std::move(Matrix::make(rows, kLossDim)).value();
  Random random(seed);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < kLossDim; ++k) matrix.row(i)[k] = random.uniform() - 0.5f;
  return matrix;
}

Matrix zero_rows(int64_t rows) {
  return std::move(Matrix::make(rows, kLossDim)).value();
}

std::vector<VectorPair> some_pairs(int count, int32_t centres, int32_t outputs) {
  Random random(3);
  std::vector<VectorPair> pairs;
  for (int i = 0; i < count; ++i)
    pairs.push_back({static_cast<int32_t>(random.below(centres)), static_cast<int32_t>(random.below(outputs))});
  return pairs;
}

// -log sigma(sign * u . v), in double, with its slopes added `weight` times.
double plain_term(const Matrix& u, int32_t i, const Matrix& v, int32_t j, double sign, double weight,
                  std::vector<std::vector<double>>& du, std::vector<std::vector<double>>& dv) {
  double g = 0;
  for (int32_t k = 0; k < kLossDim; ++k) g += double{u.row(i)[k]} * v.row(j)[k];
  const double slope = weight * sign / (1 + std::exp(sign * g));
  for (int32_t k = 0; k < kLossDim; ++k) {
    du[i][k] += slope * v.row(j)[k];
    dv[j][k] += slope * u.row(i)[k];
  }
  return weight * std::log1p(std::exp(-sign * g));
}

using Slopes = std::vector<std::vector<double>>;

void expect_slopes(const Matrix& got, const Slopes& wanted) {
  for (int64_t i = 0; i < got.rows(); ++i) {
    for (int32_t k = 0; k < kLossDim; ++k) EXPECT_NEAR(got.row(i)[k], wanted[i][k], 2e-5) << i << " " << k;
    for (int64_t k = kLossDim; k < got.stride(); ++k) EXPECT_EQ(got.row(i)[k], 0) << "padding";
  }
}

TEST(SkipGramLoss, PairsGiveTheFormulasLossAndSlopes) {
  const Matrix u = drawn(7, 1), v = drawn(9, 2);
  const std::vector<VectorPair> pairs = some_pairs(50, 7, 9);
  for (const bool attract : {true, false}) {
    Matrix du = zero_rows(7), dv = zero_rows(9);
    Slopes wanted_u(7, std::vector<double>(kLossDim)), wanted_v(9, std::vector<double>(kLossDim));
    double wanted = 0;
    for (const VectorPair& pair : pairs)
      wanted += plain_term(u, pair.centre, v, pair.output, attract ? 1 : -1, 1, wanted_u, wanted_v);
    SkipGramLoss loss;
    EXPECT_NEAR(loss.climb_pairs(pairs, attract, u.view(), v.view(), du.view(), dv.view()), wanted, 1e-4);
    expect_slopes(du, wanted_u);
    expect_slopes(dv, wanted_v);
  }
}

TEST(SkipGramLoss, APoolIsEveryPairAgainstEveryNegativeButItsOwnOutput) {
  const Matrix u = drawn(7, 1), v = drawn(9, 2);
  const std::vector<VectorPair> pairs = some_pairs(50, 7, 9);
  const NegativePool pool{.outputs = {8, 0, 3}, .weights = {0.5f, 2.0f, 1.25f}};
  Slopes wanted_u(7, std::vector<double>(kLossDim)), wanted_v(9, std::vector<double>(kLossDim));
  double wanted = 0;
  for (const VectorPair& pair : pairs)
    for (size_t k = 0; k < pool.outputs.size(); ++k)
      if (pool.outputs[k] != pair.output)
        wanted += plain_term(u, pair.centre, v, pool.outputs[k], -1, pool.weights[k], wanted_u, wanted_v);
  SkipGramLoss loss;
  for (int repetition = 0; repetition < 2; ++repetition) {
    Matrix du = zero_rows(7), dv = zero_rows(9);
    EXPECT_NEAR(loss.climb_pool(pairs, pool, u.view(), v.view(), du.view(), dv.view()), wanted, 1e-3);
    expect_slopes(du, wanted_u);
    expect_slopes(dv, wanted_v);
  }
}

TEST(SkipGramLoss, AnEmptyPoolAndNoPairsHaveNoLoss) {
  const Matrix u = drawn(2, 1), v = drawn(2, 2);
  Matrix du = zero_rows(2), dv = zero_rows(2);
  SkipGramLoss loss;
  EXPECT_EQ(loss.climb_pairs({}, true, u.view(), v.view(), du.view(), dv.view()), 0);
  EXPECT_EQ(loss.climb_pool(some_pairs(4, 2, 2), {}, u.view(), v.view(), du.view(), dv.view()), 0);
  expect_slopes(du, Slopes(2, std::vector<double>(kLossDim)));
}

}  // namespace
}  // namespace streamvec
