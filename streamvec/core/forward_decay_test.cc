#include "streamvec/core/forward_decay.h"

#include <gtest/gtest.h>

#include <vector>

namespace streamvec {
namespace {

TEST(ForwardDecay, AnOccurrenceIsWorthHalfAfterAHalfLife) {
  const ForwardDecay decay(1'000);
  const double sum = decay.weight(500);
  EXPECT_DOUBLE_EQ(sum / decay.weight(1'500), 0.5);
  EXPECT_DOUBLE_EQ(sum / decay.weight(2'500), 0.25);
}

TEST(ForwardDecay, WithoutAHalfLifeEveryOccurrenceWeighsExactlyOne) {
  ForwardDecay decay;
  for (const double t : {0.0, 1.0, 1e9, 1e300, -5.0}) {
    EXPECT_EQ(decay.advance(t), 0);
    EXPECT_EQ(decay.weight(t), 1.0);
  }
}

TEST(ForwardDecay, AgreesWithCountsThatAreHalvedByHandThroughManyLandmarks) {
  ForwardDecay decay(7);
  double sum = 0, by_hand = 0;
  int64_t moves = 0;
  for (int t = 0; t < 10'000; ++t) {
    const int64_t k = decay.advance(t);
    moves += k > 0;
    sum = rescaled(sum, k) + decay.weight(t);
    by_hand = by_hand * std::exp2(-1.0 / 7) + 1;
    ASSERT_LE(decay.weight(t), std::exp2(ForwardDecay::kExponentMax));
    ASSERT_NEAR(sum / decay.weight(t), by_hand, 1e-9 * by_hand);
  }
  EXPECT_EQ(moves, 10'000 / 7 / ForwardDecay::kExponentMax);
}

TEST(ForwardDecay, MovingTheLandmarkKeepsEveryRatioBitForBit) {
  ForwardDecay decay(1);
  std::vector<double> sums;
  for (int t = 0; t < 60; ++t) sums.push_back(decay.weight(t) * (1 + t / 3.0));
  const int64_t k = decay.advance(100.25);
  ASSERT_EQ(k, 100);
  for (int t = 0; t < 60; ++t)
    EXPECT_EQ(rescaled(sums[static_cast<size_t>(t)], k), std::exp2(t - 100.0) * (1 + t / 3.0));
}

TEST(ForwardDecay, StartsAtAnyTime) {
  for (const double t : {-1e9, -0.5, 0.0, 1e9, 1e300, -1e300}) {
    ForwardDecay decay(3);
    decay.start(t);
    EXPECT_GE(decay.weight(t), 1);
    EXPECT_LT(decay.weight(t), 2);
  }
}

TEST(ForwardDecay, UnixTimesAndLongGapsNeitherOverflowNorLeaveNan) {
  ForwardDecay decay(3'600);
  EXPECT_EQ(decay.advance(1.7e9), static_cast<int64_t>(1.7e9 / 3'600));
  double sum = decay.weight(1.7e9);
  const int64_t k = decay.advance(3.4e9);
  sum = rescaled(sum, k);
  EXPECT_EQ(sum, 0) << "472,000 half-lives later nothing is left";
  EXPECT_GE(decay.weight(3.4e9), 1);
  EXPECT_EQ(decay.weight(1.7e9), 0) << "so late that it does not count";
  EXPECT_EQ(rescaled(1.0, int64_t{1} << 62), 0);
}

}  // namespace
}  // namespace streamvec
