#include "streamvec/kernel/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>
#include <vector>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

// Values in +-1 with a stride wider than the row; what lies between must stay as it is.
struct SpacedBlock {
  SpacedBlock(int64_t rows, int64_t cols, uint64_t seed, int64_t gap = 3)
      : rows_(rows), cols_(cols), stride_(cols + gap) {
    Random random(seed);
    for (int64_t i = 0; i < rows * stride_; ++i)
      values.push_back(i % stride_ < cols ? random.uniform() * 2 - 1 : kBetween);
  }
  MatrixView<float> view() { return {values.data(), rows_, cols_, stride_}; }
  bool gaps_are_untouched() const {
    for (size_t i = 0; i < values.size(); ++i)
      if (static_cast<int64_t>(i) % stride_ >= cols_ && values[i] != kBetween) return false;
    return true;
  }

  static constexpr float kBetween = 77;
  std::vector<float> values;

 private:
  int64_t rows_, cols_, stride_;
};

SpacedBlock factor(int64_t rows, int64_t cols, bool turned, uint64_t seed) {
  return turned ? SpacedBlock(cols, rows, seed) : SpacedBlock(rows, cols, seed);
}

void expect_equal(const SpacedBlock& got, const SpacedBlock& wanted, int64_t depth) {
  const double error_max = 1e-6 * std::sqrt(static_cast<double>(depth) + 1) + 1e-6;
  for (size_t i = 0; i < got.values.size(); ++i) ASSERT_NEAR(got.values[i], wanted.values[i], error_max) << i;
  EXPECT_TRUE(got.gaps_are_untouched());
}

void compare_products(int64_t rows, int64_t cols, int64_t depth, bool turn_a, bool turn_b) {
  SCOPED_TRACE(::testing::Message() << rows << "x" << cols << "x" << depth << " " << turn_a << turn_b);
  SpacedBlock a = factor(rows, depth, turn_a, 1), b = factor(depth, cols, turn_b, 2);
  const Factor left = turn_a ? transposed(a.view()) : Factor(a.view());
  const Factor right = turn_b ? transposed(b.view()) : Factor(b.view());
  SpacedBlock got(rows, cols, 3), wanted(rows, cols, 3);
  multiply_add(left, right, got.view());
  multiply_reference(left, right, 1, wanted.view());
  expect_equal(got, wanted, depth);
  multiply(left, right, got.view());
  multiply_reference(left, right, 0, wanted.view());
  expect_equal(got, wanted, depth);
}

TEST(Gemm, MatchesTheReferenceForEveryShapeAndTranspose) {
  const int64_t shapes[][3] = {{1, 1, 1},   {1, 64, 16},  {3, 5, 7},     {16, 16, 16}, {17, 33, 65},
                               {64, 1, 31}, {40, 200, 1}, {31, 256, 64}, {5, 128, 513}};
  for (const auto& [rows, cols, depth] : shapes)
    for (const bool turn_a : {false, true})
      for (const bool turn_b : {false, true}) compare_products(rows, cols, depth, turn_a, turn_b);
}

TEST(Gemm, ReferenceMultipliesByHand) {
  float a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8}, c[] = {1, 1, 1, 1};
  const MatrixView<float> left{a, 2, 2, 2}, right{b, 2, 2, 2};
  multiply_reference(left, right, 0, {c, 2, 2, 2});
  EXPECT_EQ(std::vector<float>(c, c + 4), (std::vector<float>{19, 22, 43, 50}));
  multiply_reference(transposed(left), right, 1, {c, 2, 2, 2});
  EXPECT_EQ(std::vector<float>(c, c + 4), (std::vector<float>{45, 52, 81, 94}));
}

TEST(Gemm, ASumOverNothingIsZeroAndAddsNothing) {
  SpacedBlock a(3, 0, 1), b(0, 4, 2), c(3, 4, 3);
  const SpacedBlock before = c;
  multiply_add(a.view(), b.view(), c.view());
  EXPECT_EQ(c.values, before.values);
  multiply(a.view(), b.view(), c.view());
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(c.view().row(i)[3], 0);
  multiply(SpacedBlock(0, 5, 1).view(), SpacedBlock(5, 4, 2).view(), SpacedBlock(0, 4, 3).view());
}

TEST(Gemm, ThreadsDoNotDisturbEachOther) {
  SpacedBlock a(70, 90, 1), b(90, 110, 2), wanted(70, 110, 3);
  multiply(a.view(), b.view(), wanted.view());
  std::vector<std::thread> threads;
  std::vector<SpacedBlock> got(4, SpacedBlock(70, 110, 3));
  for (SpacedBlock& each : got)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) multiply(a.view(), b.view(), each.view());
    });
  for (std::thread& thread : threads) thread.join();
  for (const SpacedBlock& each : got) EXPECT_EQ(each.values, wanted.values);
}

}  // namespace
}  // namespace streamvec
