#include "streamvec/sync/table_pull.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

constexpr int64_t kPullRows = 400, kPullDim = 20;

Matrix zeros() {
  return std::move(Matrix::make(kPullRows, kPullDim)).value();
}

// Squares of 9 along (3, 4) / 5 in the first two columns, and of 0.01 in each column besides.
Matrix leaning() {
  Matrix rows = zeros();
  Random random(3);
  for (int64_t i = 0; i < kPullRows; ++i) {
    for (int64_t k = 0; k < kPullDim; ++k) rows.row(i)[k] = (random.next_u32() & 1) != 0 ? 0.1f : -0.1f;
    const float sign = i % 4 == 0 ? -3.0f : 3.0f;
    rows.row(i)[0] += sign * 0.6f;
    rows.row(i)[1] += sign * 0.8f;
  }
  return rows;
}

TEST(TablePull, FindsTheDirectionOfMostSquares) {
  const Matrix rows = leaning();
  TablePull pull(kPullDim);
  for (int i = 0; i < 5; ++i) pull.measure(rows, std::vector<float>(kPullRows, 0.5f), 1);
  EXPECT_NEAR(std::abs(pull.direction()[0] * 0.6 + pull.direction()[1] * 0.8), 1, 0.01);
  EXPECT_NEAR(pull.along(), 9, 0.2);
  EXPECT_NEAR(pull.across(), 0.01 * (kPullDim - 1), 0.02);
}

TEST(TablePull, CountsRowsByTheirWeights) {
  Matrix rows = leaning();
  std::vector<float> weights(2 * kPullRows, 0.0f);
  for (int64_t i = 0; i < kPullRows; i += 2) {
    std::fill_n(rows.row(i), kPullDim, 0.0f);
    rows.row(i)[5] = 2;
    weights[static_cast<size_t>(2 * i)] = 1;
  }
  TablePull pull(kPullDim);
  pull.measure(rows, weights, 2);
  EXPECT_NEAR(pull.direction()[5], 1, 1e-6);
  EXPECT_NEAR(pull.along(), 4, 1e-5);
  EXPECT_NEAR(pull.across(), 0, 1e-5);
}

TEST(TablePull, RowsThatHaveNotGrownPullNowhereAndFollowOnceTheyHave) {
  TablePull pull(kPullDim);
  pull.measure(zeros(), std::vector<float>(kPullRows, 1.0f), 1);
  EXPECT_EQ(pull.along() + pull.across(), 0);
  for (int64_t k = 0; k < kPullDim; ++k) EXPECT_EQ(pull.direction()[k], 0);
  for (int i = 0; i < 5; ++i) pull.measure(leaning(), std::vector<float>(kPullRows, 1.0f), 1);
  EXPECT_NEAR(pull.along(), 9, 0.2);
}

TEST(TablePull, NoWeightIsNoPull) {
  TablePull pull(kPullDim);
  pull.measure(leaning(), std::vector<float>(kPullRows, 0.0f), 1);
  EXPECT_EQ(pull.along() + pull.across(), 0);
}

}  // namespace
}  // namespace streamvec
