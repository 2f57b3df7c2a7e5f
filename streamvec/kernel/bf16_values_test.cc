#include "streamvec/kernel/bf16_values.h"

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

class Bf16Values : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

INSTANTIATE_TEST_SUITE_P(Targets, Bf16Values, ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& test) { return std::string(hwy::TargetName(test.param)); });

float of_bits(uint32_t bits) {
  return std::bit_cast<float>(bits);
}

// By its definition: of the two bf16 values around it the nearer one, and the even one where both are as near.
uint16_t nearest_half(float value) {
  const uint32_t below = std::bit_cast<uint32_t>(value) >> 16;
  if (!std::isfinite(value)) return static_cast<uint16_t>(below);
  const auto distance = [&](uint32_t upper) { return std::abs(double{value} - double{of_bits(upper << 16)}); };
  const double low = distance(below), high = distance(below + 1);
  return static_cast<uint16_t>(below + (high < low || (high == low && below % 2 == 1)));
}

std::vector<float> drawn_values(size_t count) {
  Random random(7);
  std::vector<float> values;
  while (values.size() < count) {
    const float value = of_bits(random.next_u32());
    if (std::abs(value) < 1e30f) values.push_back(value);  // NaN is not
  }
  return values;
}

constexpr size_t kCounts[] = {0, 1, 3, 15, 16, 17, 33, 100, 1'001};

TEST_P(Bf16Values, AreTheNearestOnesAndLeaveWhatIsBehindThemAlone) {
  for (const size_t count : kCounts) {
    const std::vector<float> values = drawn_values(count);
    std::vector<uint16_t> halves(count + 2, 0xabcd);
    bf16_encode(values.data(), static_cast<int64_t>(count), halves.data() + 1);
    EXPECT_EQ(halves.front(), 0xabcd);
    EXPECT_EQ(halves.back(), 0xabcd) << count;
    std::vector<float> back(count + 1, 5.0f);
    bf16_decode(halves.data() + 1, static_cast<int64_t>(count), back.data());
    EXPECT_EQ(back.back(), 5.0f) << count;
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(halves[i + 1], nearest_half(values[i])) << values[i];
      EXPECT_EQ(std::bit_cast<uint32_t>(back[i]), uint32_t{halves[i + 1]} << 16);
    }
  }
}

TEST_P(Bf16Values, TiesGoToTheEvenOne) {
  const float ties[] = {of_bits(0x3f808000), of_bits(0x3f818000), of_bits(0xbf808000), of_bits(0xbf818000)};
  const uint16_t wanted[] = {0x3f80, 0x3f82, 0xbf80, 0xbf82};
  uint16_t halves[4];
  bf16_encode(ties, 4, halves);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(halves[i], wanted[i]);
}

TEST_P(Bf16Values, WhatIsNotFiniteStaysSo) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(),
                                     of_bits(0x7f800001)};
  std::vector<uint16_t> halves(values.size());
  bf16_encode(values.data(), std::ssize(values), halves.data());
  std::vector<float> back(values.size());
  bf16_decode(halves.data(), std::ssize(halves), back.data());
  EXPECT_EQ(back[0], kInfinity);
  EXPECT_EQ(back[1], -kInfinity);
  EXPECT_TRUE(std::isnan(back[2]));
  EXPECT_FALSE(std::isfinite(back[3]));
}

TEST_P(Bf16Values, SumsAreTakenInFloatAndRoundedOnce) {
  for (const size_t count : kCounts) {
    const std::vector<float> values = drawn_values(count);
    std::vector<uint16_t> halves(count);
    for (size_t i = 0; i < count; ++i) halves[i] = nearest_half(values[count - 1 - i]);
    const std::vector<uint16_t> before = halves;
    bf16_add(values.data(), 3, static_cast<int64_t>(count), halves.data());
    for (size_t i = 0; i < count; ++i)
      EXPECT_EQ(halves[i], nearest_half((of_bits(uint32_t{before[i]} << 16) + values[i]) / 3));
  }
}

}  // namespace
}  // namespace streamvec
