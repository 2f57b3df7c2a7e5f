#include "streamvec/kernel/packed_gemm.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

std::vector<std::shared_ptr<const PackedGemm>> all_kernels() {
  std::vector<std::shared_ptr<const PackedGemm>> kernels;
  for (const char* kind : {"reference", "simd", "bf16", "amx"})
    if (auto made = make_packed_gemm(kind); made.ok()) kernels.push_back(*made);
  return kernels;
}

// Values that bf16 holds exactly, with a stride wider than the row; what lies between is not finite in factors and must
// stay as it is in products.
struct Bf16Block {
  Bf16Block(int64_t rows, int64_t cols, uint64_t seed, float between, int64_t gap = 3)
      : between_(between), rows_(rows), cols_(cols), stride_(cols + gap) {
    Random random(seed);
    for (int64_t i = 0; i < rows * stride_; ++i)
      values.push_back(i % stride_ < cols ? (static_cast<float>(random.below(255)) - 127) / 128 : between);
  }
  MatrixView<float> view() { return {values.data(), rows_, cols_, stride_}; }
  bool gaps_are_untouched() const {
    for (size_t i = 0; i < values.size(); ++i)
      if (static_cast<int64_t>(i) % stride_ >= cols_ && values[i] != between_) return false;
    return true;
  }

  std::vector<float> values;

 private:
  float between_;
  int64_t rows_, cols_, stride_;
};

void compare_packed(const PackedGemm& kernel, int64_t rows, int64_t cols, int64_t depth, bool turn_a, bool turn_b,
                    int64_t gap) {
  SCOPED_TRACE(::testing::Message() << kernel.name() << " " << rows << "x" << cols << "x" << depth << " " << turn_a
                                    << turn_b);
  Bf16Block a = turn_a ? Bf16Block(depth, rows, 1, NAN, gap) : Bf16Block(rows, depth, 1, NAN, gap);
  Bf16Block b = turn_b ? Bf16Block(cols, depth, 2, NAN, gap) : Bf16Block(depth, cols, 2, NAN, gap);
  const Factor left = turn_a ? transposed(a.view()) : Factor(a.view());
  const Factor right = turn_b ? transposed(b.view()) : Factor(b.view());
  PackedFactor packed;
  kernel.pack(right, packed);
  for (const bool add : {true, false}) {
    Bf16Block got(rows, cols, 3, 77), wanted(rows, cols, 3, 77);
    kernel.multiply(left, packed, add, got.view());
    multiply_reference(left, right, add ? 1 : 0, wanted.view());
    const double error_max = 1e-6 * std::sqrt(static_cast<double>(depth) + 1) + 1e-6;
    for (size_t i = 0; i < got.values.size(); ++i) ASSERT_NEAR(got.values[i], wanted.values[i], error_max) << i;
    EXPECT_TRUE(got.gaps_are_untouched());
  }
}

TEST(PackedGemm, EveryKernelMatchesTheReferenceForEveryShapeAndTranspose) {
  const int64_t shapes[][3] = {{1, 1, 1},    {1, 64, 16},    {3, 5, 7},     {16, 32, 32}, {17, 33, 65},
                               {31, 31, 31}, {45, 200, 64},  {12, 40, 513}, {0, 8, 8},    {8, 0, 8},
                               {5, 6, 0},    {33, 64, 1025}, {100, 7, 300}, {2, 96, 48},  {64, 128, 512}};
  for (const auto& kernel : all_kernels())
    for (const auto& [rows, cols, depth] : shapes)
      for (const bool turn_a : {false, true})
        for (const bool turn_b : {false, true})
          for (const int64_t gap : {int64_t{0}, int64_t{3}})
            compare_packed(*kernel, rows, cols, depth, turn_a, turn_b, gap);
}

TEST(PackedGemm, APackedFactorServesManyProductsAndIsPackedAnewInPlace) {
  for (const auto& kernel : all_kernels()) {
    PackedFactor packed;
    for (const int64_t cols : {40, 16}) {
      Bf16Block b(24, cols, static_cast<uint64_t>(cols), 0);
      kernel->pack(b.view(), packed);
      for (const int64_t rows : {50, 3}) {
        Bf16Block a(rows, 24, 9, 0), got(rows, cols, 3, 77), wanted(rows, cols, 3, 77);
        kernel->multiply(a.view(), packed, false, got.view());
        multiply_reference(a.view(), b.view(), 0, wanted.view());
        for (size_t i = 0; i < got.values.size(); ++i) ASSERT_NEAR(got.values[i], wanted.values[i], 1e-5);
      }
    }
  }
}

// A left factor as PackedGemm reads it.
LeftRows left_rows_of(Bf16Block& block, LeftForm form, LeftBuffer& buffer) {
  const MatrixView<float> values = block.view();
  const LeftRows rows = buffer.reserve(form, values.rows, values.cols);
  for (int64_t i = 0; i < values.rows; ++i)
    for (int64_t k = 0; k < values.cols; ++k) {
      const float value = values.row(i)[k];
      if (form == LeftForm::kFloat) rows.row<float>(i)[k] = value;
      if (form == LeftForm::kBf16)
        rows.row<uint16_t>(i)[k] = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
    }
  return rows;
}

void compare_columns(const PackedGemm& kernel, int64_t rows, int64_t depth, int64_t cols, int64_t first, int64_t count,
                     double error_max) {
  SCOPED_TRACE(::testing::Message() << kernel.name() << " " << rows << "x" << depth << " columns " << first << " of "
                                    << cols);
  Bf16Block a(rows, depth, 1, 0), b(depth, cols, 2, NAN);
  LeftBuffer buffer;
  PackedFactor packed;
  kernel.pack(b.view(), packed);
  const MatrixView<float> wanted_of{b.view().data + first, depth, count, b.view().stride};
  for (const bool add : {true, false}) {
    Bf16Block got(rows, count, 3, 77), wanted(rows, count, 3, 77);
    kernel.multiply_columns(left_rows_of(a, kernel.left_form(), buffer), packed, first, add, got.view());
    multiply_reference(a.view(), wanted_of, add ? 1 : 0, wanted.view());
    for (size_t i = 0; i < got.values.size(); ++i) ASSERT_NEAR(got.values[i], wanted.values[i], error_max) << i;
    EXPECT_TRUE(got.gaps_are_untouched());
  }
}

TEST(PackedGemm, SomeColumnsAreThoseOfTheReference) {
  for (const auto& kernel : all_kernels())
    for (const int64_t rows : {1, 16, 17, 40, 70})
      for (const int64_t depth : {16, 48, 512}) {
        compare_columns(*kernel, rows, depth, 128, 32, 64, 1e-4);
        compare_columns(*kernel, rows, depth, 100, 96, 4, 1e-4);
      }
}

TEST(PackedGemm, AutoTakesTheFastestKindThatRunsHere) {
  EXPECT_EQ((*make_packed_gemm("auto"))->name(), all_kernels().back()->name());
}

TEST(PackedGemm, AnUnknownKindIsAnError) {
  EXPECT_EQ(make_packed_gemm("fast").status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace streamvec
