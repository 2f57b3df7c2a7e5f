#include "streamvec/core/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <vector>

namespace streamvec {
namespace {

TEST(Mix, IsSplitmix64) {
  // The first number that splitmix64 gives from the seeds 0 and 1234567 (published with the algorithm).
  EXPECT_EQ(mix(0), 0xe220a8397b1dcdafULL);
  EXPECT_EQ(mix(1234567), 6457827717110365317ULL);
}

TEST(Mix, OrderAndEveryNumberMatter) {
  EXPECT_NE(mix(1, 2), mix(2, 1));
  EXPECT_NE(mix(1, 2, 3), mix(1, 2, 4));
  EXPECT_NE(mix(1, 2, 3), mix(1, 2));
  std::set<uint64_t> seen;
  for (uint64_t epoch = 0; epoch < 10; ++epoch)
    for (uint64_t chunk = 0; chunk < 1'000; ++chunk) seen.insert(mix(uint64_t{1}, epoch, chunk));
  EXPECT_EQ(seen.size(), 10'000);
}

TEST(Mix, OneBitInChangesHalfOfTheBitsOut) {
  double changed = 0;
  for (uint64_t x = 0; x < 1'000; ++x)
    for (int bit = 0; bit < 64; ++bit) changed += std::popcount(mix(x) ^ mix(x ^ (uint64_t{1} << bit)));
  EXPECT_NEAR(changed / 64'000, 32, 0.1);
}

// A change here changes every model that a seed gives, and breaks resuming runs that were saved before.
TEST(Random, TheSameSeedGivesTheSameNumbersOnEveryMachine) {
  Random random(1);
  const uint64_t wanted[] = {0x763ba63f94bc22a2ULL, 0x96606b4e465ede1eULL, 0xcb6595f841d565d9ULL,
                             0x1cdec371e7b21b81ULL};
  for (uint64_t number : wanted) EXPECT_EQ(random.next(), number);
}

TEST(Random, DifferentSeedsGiveDifferentNumbers) {
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 10'000; ++seed) seen.insert(Random(seed).next());
  EXPECT_EQ(seen.size(), 10'000);
}

TEST(Random, BelowIsUniformAndStaysBelow) {
  for (uint32_t bound : {1U, 2U, 5U, 10U, 1000U}) {
    Random random(bound);
    std::vector<double> seen(bound);
    constexpr int kDraws = 200'000;
    for (int i = 0; i < kDraws; ++i) {
      const uint32_t drawn = random.below(bound);
      ASSERT_LT(drawn, bound);
      ++seen[drawn];
    }
    double chi_square = 0;
    const double expected = static_cast<double>(kDraws) / bound;
    for (double count : seen) chi_square += (count - expected) * (count - expected) / expected;
    EXPECT_LT(chi_square, bound - 1 + 5 * std::sqrt(2.0 * bound)) << bound;
  }
}

TEST(Random, UniformLiesInZeroToOneWithTheRightMoments) {
  Random random(3);
  double sum = 0, squares = 0;
  constexpr int kDraws = 1'000'000;
  for (int i = 0; i < kDraws; ++i) {
    const float drawn = random.uniform();
    ASSERT_GE(drawn, 0);
    ASSERT_LT(drawn, 1);
    sum += drawn;
    squares += double{drawn} * drawn;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.0015);
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 0.0015);
}

}  // namespace
}  // namespace streamvec
