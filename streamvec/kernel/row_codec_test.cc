#include "streamvec/kernel/row_codec.h"

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

// One way of saying numbers in few bits.
struct FewBits {
  const char* name;
  int32_t most;
  // Bytes of what pass_on() said, of that many values.
  float (*pass_on)(const float* values, const uint8_t* came, float came_step, float scale, int32_t count, float* left,
                   uint8_t* said);
  void (*decode)(const uint8_t* said, float step, int32_t count, float* row);
};

const FewBits kFewBits[] = {{"four", kFourBitMost, fourbit_pass_on, fourbit_decode},
                            {"eight", kEightBitMost,
                             [](const float* values, const uint8_t* came, float came_step, float scale, int32_t count,
                                float* left, uint8_t* said) {
                               return eightbit_pass_on(values, reinterpret_cast<const int8_t*>(came), came_step, scale,
                                                       count, left, reinterpret_cast<int8_t*>(said));
                             },
                             [](const uint8_t* said, float step, int32_t count, float* row) {
                               eightbit_decode(reinterpret_cast<const int8_t*>(said), step, count, row);
                             }}};

// The other kernels of row_codec.h are tested by what uses them (sync/codec_test.cc).
class FewBitPassOn : public ::testing::TestWithParam<std::tuple<FewBits, int64_t>> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(std::get<1>(GetParam())); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }

  const FewBits& bits() const { return std::get<0>(GetParam()); }
  // Room for what a byte a value would take.
  std::vector<float> said_by(const std::vector<uint8_t>& said, float step) const {
    std::vector<float> values(said.size());
    bits().decode(said.data(), step, static_cast<int32_t>(values.size()), values.data());
    return values;
  }
};

INSTANTIATE_TEST_SUITE_P(Targets, FewBitPassOn,
                         ::testing::Combine(::testing::ValuesIn(kFewBits),
                                            ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets())),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) + hwy::TargetName(std::get<1>(test.param));
                         });

std::vector<float> drawn(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = random.uniform() - 0.5f;
  return values;
}

// Memory that begins at no boundary, as parts of a sum do.
TEST_P(FewBitPassOn, SaysTheSumToHalfAStepAndKeepsWhatItDoesNotSay) {
  for (const size_t count : {16u, 32u, 256u}) {
    const std::vector<float> values = drawn(count + 1, 1), before = drawn(count + 1, 2);
    const std::vector<float> others = drawn(count, 3);
    std::vector<float> others_left(count);
    std::vector<uint8_t> said(count);
    const float came_step =
        bits().pass_on(others.data(), nullptr, 0, 1, static_cast<int32_t>(count), others_left.data(), said.data());
    const std::vector<float> came = said_by(said, came_step);
    std::vector<float> left = before;
    const float step = bits().pass_on(values.data() + 1, said.data(), came_step, 0.25f, static_cast<int32_t>(count),
                                      left.data() + 1, said.data());
    const std::vector<float> heard = said_by(said, step);
    float largest = 0;
    for (size_t i = 0; i < count; ++i) {
      const float all = 0.25f * (values[i + 1] + came[i]) + before[i + 1];
      largest = std::max(largest, std::abs(all));
      EXPECT_NEAR(heard[i] + left[i + 1], all, 1e-6);
      EXPECT_LE(std::abs(left[i + 1]), 0.5f * step + 1e-6f);
      EXPECT_NEAR(came[i] + others_left[i], others[i], 1e-6);
    }
    EXPECT_NEAR(step, largest / static_cast<float>(bits().most), 1e-6);
    EXPECT_EQ(left[0], before[0]);
  }
}

TEST_P(FewBitPassOn, WhatIsNotFiniteShowsInTheStepWhereverItStands) {
  for (const float odd : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const size_t at : {0u, 7u, 16u, 31u}) {
      std::vector<float> values = drawn(32, 1), left(32);
      values[at] = odd;
      std::vector<uint8_t> said(32);
      EXPECT_FALSE(std::isfinite(bits().pass_on(values.data(), nullptr, 0, 1, 32, left.data(), said.data()))) << at;
    }
  }
}

TEST_P(FewBitPassOn, OfNothingNothingIsSaid) {
  const std::vector<float> values(32);
  std::vector<float> left(32);
  std::vector<uint8_t> said(32, 0x77);
  EXPECT_EQ(bits().pass_on(values.data(), nullptr, 0, 1, 32, left.data(), said.data()), 0);
  EXPECT_EQ(said_by(said, 1), values);
  EXPECT_EQ(left, values);
}

}  // namespace
}  // namespace streamvec
