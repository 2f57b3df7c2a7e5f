#include "streamvec/sync/low_rank.h"

#include <gtest/gtest.h>

#include <cmath>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

constexpr int64_t kLowRankRows = 12, kLowRankCols = 9;
using Values = std::vector<float>;

Values drawn_values(uint64_t seed, size_t size = kLowRankRows * kLowRankCols) {
  Random random(seed);
  Values values(size);
  for (float& value : values) value = random.uniform() - 0.5f;
  return values;
}

// A matrix of that rank.
Values of_rank(int64_t rank, uint64_t seed) {
  const Values left = drawn_values(seed, static_cast<size_t>(kLowRankRows * rank)),
               right = drawn_values(seed + 1, static_cast<size_t>(kLowRankCols * rank));
  Values product(kLowRankRows * kLowRankCols);
  for (int64_t i = 0; i < kLowRankRows; ++i)
    for (int64_t j = 0; j < kLowRankCols; ++j)
      for (int64_t r = 0; r < rank; ++r)
        product[static_cast<size_t>(i * kLowRankCols + j)] +=
            left[static_cast<size_t>(i * rank + r)] * right[static_cast<size_t>(j * rank + r)];
  return product;
}

// One node alone: what of the change is said in a round.
Values said(LowRank& low, const Values& change) {
  Values left(static_cast<size_t>(low.left_size())), right(static_cast<size_t>(low.right_size())), all(change.size());
  low.project(change, left);
  low.span_space(left);
  low.project_back(change, right);
  low.expand(right, all);
  low.keep(right);
  return all;
}

double distance(const Values& a, const Values& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
  return std::sqrt(sum);
}

TEST(LowRank, SaysAllOfAMatrixOfItsRank) {
  for (const int64_t rank : {1, 2, 4}) {
    LowRank low(kLowRankRows, kLowRankCols, rank, 7);
    const Values change = of_rank(rank, 3);
    EXPECT_NEAR(distance(said(low, change), change), 0, 1e-4) << rank;
  }
}

TEST(LowRank, WhatIsSaidIsTheChangesProjectionOnASpaceOfAllNodes) {
  LowRank low(kLowRankRows, kLowRankCols, 2, 7);
  const Values change = drawn_values(5), once = said(low, change);
  Values rest(change.size());
  double dot = 0;
  for (size_t i = 0; i < change.size(); ++i) {
    rest[i] = change[i] - once[i];
    dot += double{rest[i]} * once[i];
  }
  EXPECT_NEAR(dot, 0, 1e-4);  // at right angles to what is kept back
  EXPECT_LT(distance(rest, Values(rest.size())), distance(change, Values(change.size())));
}

TEST(LowRank, RoundsOnTheSameChangeComeToItsLargestPart) {
  Values change = of_rank(1, 3);
  const Values small = drawn_values(9);
  for (size_t i = 0; i < change.size(); ++i) change[i] += 0.02f * small[i];
  LowRank low(kLowRankRows, kLowRankCols, 1, 1);
  said(low, change);
  const double rest = distance(said(low, change), change);
  EXPECT_LT(rest, 0.02 * distance(small, Values(small.size())));
}

TEST(LowRank, NoChangeAndRanksThatAreTooLargeGiveNothingThatIsNotFinite) {
  LowRank low(kLowRankRows, kLowRankCols, 100, 1);
  EXPECT_EQ(said(low, Values(kLowRankRows * kLowRankCols)), Values(kLowRankRows * kLowRankCols));
  const Values change = drawn_values(4);
  EXPECT_NEAR(distance(said(low, change), change), 0, 1e-4);  // after a round of zeros, too
}

}  // namespace
}  // namespace streamvec
