// Rows of floats in memory that is kept from batch to batch. Rows start on 64-byte boundaries and are padded to whole
// vectors of 16 floats; what stands in them at first, padding included, is what was left there.
#pragma once

#include <cstdint>
#include <cstring>

#include "streamvec/core/matrix.h"
#include "streamvec/kernel/scratch.h"

namespace streamvec {

class RowBuffer {
 public:
  MatrixView<float> reserve(int64_t rows, int64_t cols) {
    constexpr int64_t kAlike = 256;  // rows a multiple of 1 KB apart share few places of the caches
    int64_t stride = (cols + Matrix::kRowMultiple - 1) / Matrix::kRowMultiple * Matrix::kRowMultiple;
    if (stride % kAlike == 0) stride += Matrix::kRowMultiple;
    view_ = {memory_.reserve(static_cast<size_t>(rows * stride)), rows, cols, stride};
    return view_;
  }
  // Padding is zeroed, too.
  MatrixView<float> reserve_zeroed(int64_t rows, int64_t cols) {
    reserve(rows, cols);
    const size_t floats = static_cast<size_t>(rows * view_.stride);
    if (floats > 0) std::memset(view_.data, 0, floats * sizeof(float));
    return view_;
  }
  const MatrixView<float>& view() const { return view_; }
  float* row(int64_t i) const { return view_.row(i); }

 private:
  MatrixView<float> view_;
  AlignedBuffer<float> memory_;
};

}  // namespace streamvec
