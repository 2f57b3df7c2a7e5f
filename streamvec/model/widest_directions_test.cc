#include "streamvec/model/widest_directions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "streamvec/core/random.h"
#include "streamvec/kernel/logistic_rows.h"

namespace streamvec {
namespace {

constexpr int32_t kDim = 20;

// Around a mean of 3 everywhere, `wide` times as far along the first two dimensions, and there further along their sum.
Matrix wide_rows(int64_t count, float wide) {
  Matrix rows = std::move(Matrix::make(count, kDim)).value();
  Random random(7);
  const auto draw = [&] { return static_cast<float>(random.uniform() - 0.5); };
  for (int64_t i = 0; i < count; ++i) {
    for (int32_t d = 0; d < kDim; ++d) rows.row(i)[d] = 3 + draw();
    const float sum = 2 * wide * draw(), difference = wide * draw();
    rows.row(i)[0] += sum + difference;
    rows.row(i)[1] += sum - difference;
  }
  return rows;
}

TEST(WidestDirections, AreThoseInWhichRowsSpreadMostTheWidestFirst) {
  const Matrix rows = wide_rows(5'000, 10);
  const Matrix found = std::move(widest_directions(rows.view(), 2)).value();
  const float half = std::sqrt(0.5f);
  EXPECT_NEAR(std::abs(found.row(0)[0] + found.row(0)[1]) * half, 1, 1e-3) << "their sum";
  EXPECT_NEAR(std::abs(found.row(1)[0] - found.row(1)[1]) * half, 1, 1e-3) << "their difference";
  EXPECT_NEAR(dot(found.row(0), found.row(0), kDim), 1, 1e-5);
  EXPECT_NEAR(dot(found.row(0), found.row(1), kDim), 0, 1e-5);
}

TEST(WidestDirections, AreZerosWhereRowsDoNotSpread) {
  Matrix rows = std::move(Matrix::make(100, kDim)).value();
  for (int64_t i = 0; i < rows.rows(); ++i) rows.row(i)[4] = static_cast<float>(i);
  const Matrix found = std::move(widest_directions(rows.view(), 2)).value();
  EXPECT_NEAR(std::abs(found.row(0)[4]), 1, 1e-6);
  EXPECT_EQ(dot(found.row(1), found.row(1), kDim), 0);
  rows.row(3)[0] = std::numeric_limits<float>::quiet_NaN();
  const Matrix none = std::move(widest_directions(rows.view(), 2)).value();
  EXPECT_EQ(dot(none.row(0), none.row(0), kDim), 0);
}

}  // namespace
}  // namespace streamvec
