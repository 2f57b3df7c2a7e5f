#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "streamvec/eval/gram.cc"
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)  // no arrays of vectors there
#include "streamvec/eval/gram.h"

#include <hwy/aligned_allocator.h>
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <algorithm>
#include <vector>

#include "streamvec/core/status.h"

HWY_BEFORE_NAMESPACE();
namespace streamvec::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;
using View = MatrixView<const float>;

// Tiles of 24 sums for 32 vector registers (AVX-512), 12 for 16.
constexpr int64_t kTileRows = HWY_TARGET <= HWY_AVX3 ? 8 : 4;
constexpr int64_t kLanes = static_cast<int64_t>(HWY_LANES(float));
constexpr int64_t kTileColumns = 3 * kLanes;
constexpr int64_t kSumRows = 256;  // terms summed in float before they go into double

// out[i * kTileColumns + j] = sum_k a[k * a_stride + i] * b[k * kTileColumns + j].
HWY_INLINE void multiply_tile(const float* HWY_RESTRICT a, int64_t a_stride, const float* HWY_RESTRICT b, int64_t count,
                              float* HWY_RESTRICT out) {
  const Tag tag;
  Vector sums[kTileRows][3];
#pragma GCC unroll 8
  for (auto& row : sums) row[0] = row[1] = row[2] = hn::Zero(tag);
  for (int64_t k = 0; k < count; ++k, a += a_stride, b += kTileColumns) {
    const Vector b0 = hn::Load(tag, b), b1 = hn::Load(tag, b + kLanes), b2 = hn::Load(tag, b + 2 * kLanes);
#pragma GCC unroll 8
    for (int64_t i = 0; i < kTileRows; ++i) {
      const Vector value = hn::Set(tag, a[i]);
      sums[i][0] = hn::MulAdd(value, b0, sums[i][0]);
      sums[i][1] = hn::MulAdd(value, b1, sums[i][1]);
      sums[i][2] = hn::MulAdd(value, b2, sums[i][2]);
    }
  }
#pragma GCC unroll 8
  for (int64_t i = 0; i < kTileRows; ++i)
#pragma GCC unroll 3
    for (int64_t j = 0; j < 3; ++j) hn::Store(sums[i][j], tag, out + i * kTileColumns + j * kLanes);
}

// packed[k * kTileColumns + j] = x(begin + k, column + j), zeros past the last column.
HWY_INLINE void pack_columns(View x, int64_t begin, int64_t count, int64_t column, float* HWY_RESTRICT packed) {
  const int64_t cols = std::min(kTileColumns, x.cols - column);
  for (int64_t k = 0; k < count; ++k, packed += kTileColumns) {
    std::copy_n(x.row(begin + k) + column, cols, packed);
    std::fill(packed + cols, packed + kTileColumns, 0.0f);
  }
}

// sum (x.cols by y.cols, column-major) += x' y.
void add_cross_gram(View x, View y, double* sum) {
  const auto panel = hwy::AllocateAligned<float>(kSumRows * kTileColumns);
  HWY_ALIGN float tile[kTileRows * kTileColumns];
  for (int64_t begin = 0; begin < x.rows; begin += kSumRows) {
    const int64_t count = std::min(kSumRows, x.rows - begin);
    for (int64_t column = 0; column < y.cols; column += kTileColumns) {
      pack_columns(y, begin, count, column, panel.get());
      for (int64_t i = 0; i < x.cols; i += kTileRows) {
        multiply_tile(x.row(begin) + i, x.stride, panel.get(), count, tile);
        for (int64_t c = 0; c < std::min(kTileColumns, y.cols - column); ++c)
          for (int64_t r = 0; r < std::min(kTileRows, x.cols - i); ++r)
            sum[(column + c) * x.cols + i + r] += double{tile[r * kTileColumns + c]};
      }
    }
  }
}

// out = x * right, added to what out holds if `keep`. A few rows are copied at a time, so that out may be x.
void multiply_rows(View x, View right, bool keep, MatrixView<float> out) {
  const int64_t panels = (right.cols + kTileColumns - 1) / kTileColumns, panel_size = x.cols * kTileColumns;
  const auto packed = hwy::AllocateAligned<float>(static_cast<size_t>(panels * panel_size));
  for (int64_t p = 0; p < panels; ++p)
    pack_columns(right, 0, right.rows, p * kTileColumns, packed.get() + p * panel_size);
  const auto rows = hwy::AllocateAligned<float>(static_cast<size_t>(x.cols * kTileRows));
  std::fill_n(rows.get(), x.cols * kTileRows, 0.0f);
  HWY_ALIGN float tile[kTileRows * kTileColumns];
  for (int64_t begin = 0; begin < x.rows; begin += kTileRows) {
    const int64_t count = std::min(kTileRows, x.rows - begin);
    for (int64_t i = 0; i < count; ++i)
      for (int64_t k = 0; k < x.cols; ++k) rows[static_cast<size_t>(k * kTileRows + i)] = x.row(begin + i)[k];
    for (int64_t p = 0; p < panels; ++p) {
      multiply_tile(rows.get(), kTileRows, packed.get() + p * panel_size, x.cols, tile);
      for (int64_t i = 0; i < count; ++i) {
        float* to = out.row(begin + i) + p * kTileColumns;
        for (int64_t j = 0; j < std::min(kTileColumns, out.cols - p * kTileColumns); ++j)
          to[j] = tile[i * kTileColumns + j] + (keep ? to[j] : 0);
      }
    }
  }
}

}  // namespace streamvec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace streamvec {
namespace {

HWY_EXPORT(add_cross_gram);
HWY_EXPORT(multiply_rows);

void multiply_and_keep(MatrixView<const float> x, const Eigen::MatrixXd& right, bool keep, MatrixView<float> out) {
  STREAMVEC_CHECK(x.cols == right.rows() && out.cols == right.cols() && out.rows == x.rows);
  const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> row_major = right.cast<float>();
  HWY_DYNAMIC_DISPATCH(multiply_rows)(x, {row_major.data(), right.rows(), right.cols(), right.cols()}, keep, out);
}

}  // namespace

Eigen::MatrixXd cross_gram(MatrixView<const float> x, MatrixView<const float> y) {
  STREAMVEC_CHECK_EQ(x.rows, y.rows);
  Eigen::MatrixXd sum = Eigen::MatrixXd::Zero(x.cols, y.cols);
  HWY_DYNAMIC_DISPATCH(add_cross_gram)(x, y, sum.data());
  return sum;
}

Eigen::MatrixXd gram(MatrixView<const float> x) {
  const Eigen::MatrixXd product = cross_gram(x, x);
  return (product + product.transpose()) / 2;
}

Eigen::VectorXd column_sums(MatrixView<const float> x) {
  Eigen::VectorXd sum = Eigen::VectorXd::Zero(x.cols);
  for (int64_t i = 0; i < x.rows; ++i) sum += Eigen::Map<const Eigen::VectorXf>(x.row(i), x.cols).cast<double>();
  return sum;
}

void multiply(MatrixView<const float> x, const Eigen::MatrixXd& right, MatrixView<float> out) {
  multiply_and_keep(x, right, false, out);
}

void multiply_add(MatrixView<const float> x, const Eigen::MatrixXd& right, MatrixView<float> out) {
  multiply_and_keep(x, right, true, out);
}

}  // namespace streamvec
#endif  // HWY_ONCE
