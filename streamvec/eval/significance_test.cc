#include "streamvec/eval/significance.h"

#include <gtest/gtest.h>

#include <cmath>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

// About normal: twelve uniforms.
double normal(Random& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += random.uniform();
  return sum;
}

TEST(SpreadCurve, FollowsMiddleAndSpreadAlongX) {
  Random random(1);
  std::vector<double> x, y;
  for (int i = 0; i < 20'000; ++i) {
    x.push_back(10 * random.uniform());
    y.push_back(3 - 0.2 * x.back() + (1 + x.back()) * 0.1 * normal(random));
  }
  const SpreadCurve curve(x, y);
  for (const double at : {1.0, 5.0, 9.0}) {
    EXPECT_NEAR(curve.middle(at), 3 - 0.2 * at, 0.12);
    EXPECT_NEAR(curve.above(at), 0.1 * (1 + at), 0.12);
    EXPECT_NEAR(curve.below(at), 0.1 * (1 + at), 0.12);
  }
  EXPECT_EQ(curve.middle(-100), curve.middle(-1));
  EXPECT_EQ(curve.middle(100), curve.middle(11));
}

TEST(SpreadCurve, AFewWildValuesDoNotMoveTheLowSide) {
  Random random(1);
  std::vector<double> x, calm, wild;
  for (int i = 0; i < 5'000; ++i) {
    x.push_back(random.uniform());
    calm.push_back(normal(random));
    wild.push_back(i % 10 == 0 ? 1e6 : calm.back());
  }
  const SpreadCurve of_calm(x, calm), of_wild(x, wild);
  EXPECT_NEAR(of_wild.below(0.5), of_calm.below(0.5), 0.25);
  EXPECT_NEAR(of_wild.middle(0.5), of_calm.middle(0.5), 0.25);
}

TEST(SpreadCurve, OneValueAndEqualXAreNoTrouble) {
  const double x[] = {2, 2, 2}, y[] = {1, 5, 3};
  const SpreadCurve curve(x, y);
  EXPECT_EQ(curve.middle(7), 3);
  EXPECT_GT(curve.above(0), 0);
  EXPECT_EQ(SpreadCurve(std::span(x).first(1), std::span(y).first(1)).middle(0), 1);
}

TEST(TailProbability, IsTheShareOfTheSampleThatIsGreater) {
  std::vector<double> sample;
  for (int i = 1; i <= 999; ++i) sample.push_back(i);
  const TailProbability tail(sample);
  EXPECT_NEAR(tail(500), 0.5, 0.002);
  EXPECT_NEAR(tail(900), 0.1, 0.002);
  EXPECT_LE(tail(-5), 1);
  EXPECT_GT(tail(-5), 0.999);
}

TEST(TailProbability, GoesOnFallingBeyondTheSample) {
  Random random(1);
  std::vector<double> sample;
  for (int i = 0; i < 10'000; ++i) sample.push_back(-std::log(1 - double{random.uniform()}));  // exponential
  const TailProbability tail(sample);
  EXPECT_NEAR(std::log(tail(12)), -12, 1.5);
  EXPECT_GT(tail(12), tail(13));
  EXPECT_GT(tail(200), 0);
}

TEST(DiscoveryThreshold, IsThatOfBenjaminiAndHochberg) {
  // The fifteen p-values of their paper: at 5% the first four are rejected.
  const std::vector<double> p = {0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
                                 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.000};
  EXPECT_EQ(discovery_threshold(p, 0.05), 0.0095);
  EXPECT_EQ(discovery_threshold({0.5, 0.9}, 0.05), -1);
  EXPECT_EQ(discovery_threshold({}, 0.05), -1);
}

}  // namespace
}  // namespace streamvec
