#include "streamvec/kernel/row_codec.h"

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

// The other kernels of row_codec.h are tested by what uses them (sync/codec_test.cc).
class FourBitPassOn : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

INSTANTIATE_TEST_SUITE_P(Targets, FourBitPassOn, ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& test) { return std::string(hwy::TargetName(test.param)); });

std::vector<float> drawn(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = random.uniform() - 0.5f;
  return values;
}

std::vector<float> said_by(const std::vector<uint8_t>& nibbles, float step, size_t count) {
  std::vector<float> values(count);
  fourbit_decode(nibbles.data(), step, static_cast<int32_t>(count), values.data());
  return values;
}

// Memory that begins at no boundary, as parts of a sum do.
TEST_P(FourBitPassOn, SaysTheSumToHalfAStepAndKeepsWhatItDoesNotSay) {
  for (const size_t count : {16u, 32u, 256u}) {
    const std::vector<float> values = drawn(count + 1, 1), before = drawn(count + 1, 2);
    const std::vector<float> others = drawn(count, 3);
    std::vector<float> others_left(count);
    std::vector<uint8_t> nibbles(count / 2);
    const float came_step =
        fourbit_pass_on(others.data(), nullptr, 0, 1, static_cast<int32_t>(count), others_left.data(), nibbles.data());
    const std::vector<float> came = said_by(nibbles, came_step, count);
    std::vector<float> left = before;
    const float step = fourbit_pass_on(values.data() + 1, nibbles.data(), came_step, 0.25f, static_cast<int32_t>(count),
                                       left.data() + 1, nibbles.data());
    const std::vector<float> said = said_by(nibbles, step, count);
    float largest = 0;
    for (size_t i = 0; i < count; ++i) {
      const float all = 0.25f * (values[i + 1] + came[i]) + before[i + 1];
      largest = std::max(largest, std::abs(all));
      EXPECT_NEAR(said[i] + left[i + 1], all, 1e-6);
      EXPECT_LE(std::abs(left[i + 1]), 0.5f * step + 1e-6f);
      EXPECT_NEAR(came[i] + others_left[i], others[i], 1e-6);
    }
    EXPECT_NEAR(step, largest / kFourBitMost, 1e-6);
    EXPECT_EQ(left[0], before[0]);
  }
}

TEST_P(FourBitPassOn, WhatIsNotFiniteShowsInTheStepWhereverItStands) {
  for (const float odd : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const size_t at : {0u, 7u, 16u, 31u}) {
      std::vector<float> values = drawn(32, 1), left(32);
      values[at] = odd;
      std::vector<uint8_t> nibbles(16);
      EXPECT_FALSE(std::isfinite(fourbit_pass_on(values.data(), nullptr, 0, 1, 32, left.data(), nibbles.data()))) << at;
    }
  }
}

TEST_P(FourBitPassOn, OfNothingNothingIsSaid) {
  const std::vector<float> values(32);
  std::vector<float> left(32);
  std::vector<uint8_t> nibbles(16, 0xff);
  EXPECT_EQ(fourbit_pass_on(values.data(), nullptr, 0, 1, 32, left.data(), nibbles.data()), 0);
  EXPECT_EQ(said_by(nibbles, 1, 32), values);
  EXPECT_EQ(left, values);
}

}  // namespace
}  // namespace streamvec
