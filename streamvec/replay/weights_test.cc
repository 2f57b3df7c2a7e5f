#include "streamvec/replay/weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

constexpr ReplayWeights::Options kProportional = {.prioritised = true, .alpha = 1, .beta = 1};

std::vector<double> frequencies(const ReplayWeights& weights, size_t places, int draws = 40'000) {
  Random random(1);
  std::vector<double> numbers(static_cast<size_t>(draws)), drawn(places);
  std::vector<size_t> found(numbers.size());
  for (double& number : numbers) number = random.uniform();
  weights.draw(numbers, found);
  for (const size_t place : found) drawn[place] += 1.0 / draws;
  return drawn;
}

TEST(ReplayWeights, WithoutPrioritiesEveryPlaceIsAsLikely) {
  ReplayWeights weights({}, 4);
  for (size_t i = 0; i < 4; ++i) weights.add(i, 0);
  EXPECT_TRUE(weights.update(2, 100));
  for (const double frequency : frequencies(weights, 4)) EXPECT_NEAR(frequency, 0.25, 0.02);
  EXPECT_EQ(weights.importance(2), 1);
  EXPECT_EQ(weights.importance_in_order(), 1);
}

TEST(ReplayWeights, ImportanceMakesEveryChunkCountTheSameWhenBetaIs1) {
  ReplayWeights weights(kProportional, 8);
  for (size_t i = 0; i < 8; ++i) weights.add(i, 0);
  for (size_t i = 0; i < 8; ++i) weights.update(i, static_cast<float>(i + 1));
  const std::vector<double> drawn = frequencies(weights, 8);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_NEAR(drawn[i], static_cast<double>(i + 1) / 36, 0.02);
    EXPECT_NEAR(drawn[i] * weights.importance(i), 1.0 / 36, 0.004);
  }
  EXPECT_EQ(weights.importance(0), 1) << "the largest is 1";
  EXPECT_NEAR(weights.importance_in_order(), 1 / 4.5, 1e-5);
}

TEST(ReplayWeights, AlphaAndBetaAreExponents) {
  ReplayWeights weights({.prioritised = true, .alpha = 0.5, .beta = 0.5}, 2);
  weights.add(0, 0);
  weights.add(1, 0);
  weights.update(0, 1);
  weights.update(1, 16);
  EXPECT_NEAR(frequencies(weights, 2)[1], 0.8, 0.02);
  EXPECT_NEAR(weights.importance(1), 0.5, 1e-6);
}

TEST(ReplayWeights, AChunkWithoutAPriorityHasTheMeanOfTheLatest) {
  ReplayWeights weights(kProportional, 10);
  weights.add(0, 0);
  weights.add(1, 0);
  weights.update(0, 1e-3f);  // the first priority gives the scale
  EXPECT_FLOAT_EQ(weights.get(1), 1e-3f);
  for (int i = 0; i < 3'000; ++i) weights.update(0, 5e-3f);
  weights.add(2, 0);
  EXPECT_NEAR(weights.get(2), 5e-3f, 1e-5);
}

TEST(ReplayWeights, AnOutlierStaysWithinTheSpread) {
  ReplayWeights weights(kProportional, 3);
  for (size_t i = 0; i < 3; ++i) weights.add(i, 0);
  weights.update(0, 1);
  weights.update(1, 1e30f);
  weights.update(2, 0);
  EXPECT_NEAR(weights.get(1), 64, 20);
  EXPECT_NEAR(weights.get(2), 1.0 / 64, 0.01);
}

TEST(ReplayWeights, WhatIsNoPriorityIsRefused) {
  ReplayWeights weights(kProportional, 1);
  weights.add(0, 0);
  for (const float bad : {-1.0f, std::nanf(""), std::numeric_limits<float>::infinity()}) {
    EXPECT_FALSE(weights.update(0, bad));
    EXPECT_EQ(weights.get(0), 1);
  }
}

TEST(ReplayWeights, WithAHalfLifeOldChunksFade) {
  ReplayWeights weights({.half_life = 10}, 3);
  for (size_t i = 0; i < 3; ++i) weights.add(i, 10.0 * static_cast<double>(i));
  const std::vector<double> drawn = frequencies(weights, 3);
  EXPECT_NEAR(drawn[0], 1.0 / 7, 0.02);
  EXPECT_NEAR(drawn[1], 2.0 / 7, 0.02);
  EXPECT_NEAR(drawn[2], 4.0 / 7, 0.02);
  EXPECT_EQ(weights.importance(0), 1) << "fading is wanted, not a bias to undo";
}

TEST(ReplayWeights, FadingGoesOnForEver) {
  ReplayWeights weights({.prioritised = true, .alpha = 1, .beta = 1, .half_life = 1}, 4);
  for (int i = 0; i < 10'000; ++i) {
    const auto place = static_cast<size_t>(i % 4);
    if (i >= 4) weights.remove(place);
    weights.advance(i * 0.5);
    weights.add(place, i * 0.5);
  }
  const double sum = 1 + std::sqrt(0.5) + 0.5 + std::sqrt(0.125);
  EXPECT_NEAR(frequencies(weights, 4)[3], 1 / sum, 0.02);
  weights.remove(2);
  weights.add(2, -1e9);  // far in the past, but held: it can be drawn when nothing else is there
  for (const size_t place : {0u, 1u, 3u}) weights.remove(place);
  EXPECT_NEAR(frequencies(weights, 4)[2], 1, 1e-6);
}

}  // namespace
}  // namespace streamvec
