// What is no ordinary block: rows that are not finite, products that overflow or saturate.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "streamvec/kernel/pair_block_testing.h"

namespace streamvec {
namespace {

using namespace streamvec::testing;  // NOLINT: the helpers of pair_block_testing.h

class PairKernelLimits : public PairKernelTest {};
INSTANTIATE_TEST_SUITE_P(Kinds, PairKernelLimits, ::testing::Values("reference", "simd", "bf16", "amx"),
                         [](const auto& test) { return test.param; });

// One value of x or y, by side, row and place.
struct Place {
  bool in_x;
  int32_t row, value;
};

std::vector<Place> places(const Shape& shape) {
  std::vector<Place> all;
  for (int32_t value : {0, shape.dim / 2, shape.dim - 1}) {
    for (int32_t j : {0, shape.inputs / 2, shape.inputs - 1}) all.push_back({true, j, value});
    for (int32_t i : {0, shape.positives - 1, shape.positives, shape.outputs - 1})
      if (i >= 0 && i < shape.outputs) all.push_back({false, i, value});
  }
  return all;
}

void expect_refusal(PairKernel& kernel, const Shape& shape, float bad) {
  Block block(shape, 17);
  for (const Place& place : places(shape)) {
    float& value = (place.in_x ? block.x : block.y)[place.row][place.value];
    const float good = std::exchange(value, bad);
    const auto x = block.x.values(), y = block.y.values();
    EXPECT_FALSE(kernel.step(block.in_place()).finite)
        << bad << " in " << (place.in_x ? "x " : "y ") << place.row << " at " << place.value << "; " << shape;
    EXPECT_TRUE(same_bits(x, block.x.values())) << shape;
    EXPECT_TRUE(same_bits(y, block.y.values())) << shape;
    value = good;
  }
  EXPECT_TRUE(kernel.step(block.in_place()).finite) << shape << ": the block after a refused one";
}

const std::vector<Shape>& shapes_to_refuse() {
  static const std::vector<Shape> shapes{
      {200, 32, 72, 22, Bands::kSliding, true}, {17, 9, 13, 5, Bands::kFull, false},
      {3, 1, 1, 1, Bands::kFull, false},        {50, 70, 33, 0, Bands::kFull, true},
      {100, 40, 40, 40, Bands::kSliding, true}, {16, 20, 45, 30, Bands::kEmpty, false}};
  return shapes;
}

TEST_P(PairKernelLimits, NanOrInfAnywhereIsRefusedAndChangesNothing) {
  for (const Shape& shape : shapes_to_refuse())
    for (float bad : {kNan, kInf, -kInf}) expect_refusal(*kernel_, shape, bad);
}

// No negatives; the first inputs and the last have no weight with anybody: NaN there may be found or not, but goes
// nowhere.
void expect_lonely_nan_stays_alone(PairKernel& kernel) {
  for (int32_t outputs = 1; outputs <= 20; ++outputs) {
    const Shape shape{20, 2 * outputs + 25, outputs, outputs, Bands::kEmpty, false};
    for (int32_t bad = 0; bad < shape.inputs; ++bad) {
      Block block(shape, 23);
      for (int32_t i = 0; i < outputs; ++i) {
        block.band_begin[i] = 3 + 2 * i;
        block.band_end[i] = 5 + 2 * i;
        std::fill_n(block.weights[i] + 3 + 2 * i, 2, 1.0f);
      }
      block.x[bad][7] = kNan;
      const auto y = block.y.values();
      if (kernel.step(block.in_place()).finite) {
        EXPECT_TRUE(bad < 3 || bad >= 3 + 2 * outputs) << "input " << bad << " has weight";
        for (const float* row : block.y.pointers) ASSERT_TRUE(std::isfinite(row[7])) << "input " << bad;
      } else {
        EXPECT_TRUE(same_bits(y, block.y.values()));
      }
    }
  }
}

TEST_P(PairKernelLimits, NanWithoutAnyPartnerSpoilsNoOtherRow) {
  expect_lonely_nan_stays_alone(*kernel_);
}

TEST_P(PairKernelLimits, AProductThatOverflowsIsRefusedOrStaysFinite) {
  const Shape shape{20, 5, 7, 3, Bands::kFull};
  Block block(shape, 19);
  std::fill_n(block.x[2], shape.dim, 1e25f);
  std::fill_n(block.y[4], shape.dim, 1e25f);
  const auto x = block.x.values(), y = block.y.values();
  const PairBlockResult result = kernel_->step(block.in_place());
  if (result.finite) {
    for (const Rows* rows : {&block.x, &block.y})
      for (const float* row : rows->pointers)
        EXPECT_TRUE(std::all_of(row, row + shape.dim, [](float value) { return std::isfinite(value); }));
  } else {
    EXPECT_TRUE(same_bits(x, block.x.values()));
    EXPECT_TRUE(same_bits(y, block.y.values()));
  }
  EXPECT_EQ(result.finite, GetParam() == "reference") << "1e50 is past a float and within a double";
}

// dim 1, x = 1 and y of at most 8 bits, exact in bf16: every product is a y_i without rounding.
Block block_of_products(float low, float high, int32_t positives) {
  Block block({1, 40, 30, positives, Bands::kFull, false, 1}, 29);
  Random random(31);
  const float unit = std::exp2(std::ceil(std::log2(std::max(std::abs(low), std::abs(high)))) - 8);
  for (float* row : block.x.pointers) row[0] = 1;
  for (float* row : block.y.pointers) row[0] = std::round(between(random, low, high) / unit) * unit;
  return block;
}

TEST_P(PairKernelLimits, LossIsExactForProductsOfEverySize) {
  for (float size : {0.125f, 0.5f, 1.0f, 2.0f, 4.0f, 8.0f, 12.0f}) {
    Block block = block_of_products(-size, size, 15);
    const double wanted = plain_loss(block.view());
    EXPECT_NEAR(kernel_->step(block.view()).loss, wanted, 1e-5 * wanted) << size;
  }
}

TEST_P(PairKernelLimits, LossOfSaturatedProductsIsTheProductOrNothing) {
  for (int32_t positives : {0, 15, 30})
    for (float size : {30.0f, 80.0f, 88.0f, 100.0f, 1000.0f}) {
      Block mixed = block_of_products(-size, size, positives);
      EXPECT_NEAR(kernel_->step(mixed.view()).loss / plain_loss(mixed.view()), 1, 1e-4) << size;
      const float sure = positives == 30 ? size : -size;
      Block certain = block_of_products(sure, sure, positives);
      for (int32_t i = 0; i < positives; ++i) certain.y[i][0] = size;
      const PairBlockResult result = kernel_->step(certain.view());
      EXPECT_NEAR(result.loss, 0, 1e-9) << size;
      for (const float* row : certain.dx.pointers) EXPECT_NEAR(row[0], 0, 1e-7 * size);
    }
}

TEST(SimdPairKernelLimits, EveryTargetRefusesNanAndInf) {
  for_each_target([](PairKernel& kernel) {
    for (const Shape& shape : shapes_to_refuse())
      for (float bad : {kNan, kInf, -kInf}) expect_refusal(kernel, shape, bad);
    expect_lonely_nan_stays_alone(kernel);
  });
}

}  // namespace
}  // namespace streamvec
