// Rows of a left factor in the form in which a kernel of packed_gemm.h reads them, for those who write them so in the
// first place: a state that is rounded where it is made is neither stored nor read as floats.
#pragma once

#include <cstdint>
#include <cstring>

#include "streamvec/core/matrix.h"
#include "streamvec/kernel/scratch.h"

namespace streamvec {

enum class LeftForm {
  kFloat,
  kBf16,  // rounded to nearest, ties to even
};

constexpr int64_t bytes_of(LeftForm form) {
  return form == LeftForm::kFloat ? 4 : 2;
}

struct LeftRows {
  LeftForm form = LeftForm::kFloat;
  std::byte* data = nullptr;
  int64_t rows = 0, cols = 0;
  int64_t stride = 0;  // bytes

  template <typename T>
  T* row(int64_t i) const {
    return reinterpret_cast<T*>(data + i * stride);
  }
};

inline LeftRows left_rows(MatrixView<float> view) {
  return {LeftForm::kFloat, reinterpret_cast<std::byte*>(view.data), view.rows, view.cols,
          view.stride * static_cast<int64_t>(sizeof(float))};
}

inline LeftRows some_rows(const LeftRows& rows, int64_t begin, int64_t count) {
  return {rows.form, rows.data + begin * rows.stride, count, rows.cols, rows.stride};
}

// Memory for rows, kept from one use to the next. Rows start on 64-byte boundaries and are padded with zeros to whole
// sixteens of words; sixteen rows more than asked for may be read.
class LeftBuffer {
 public:
  // REQUIRES: the same form and cols each time.
  LeftRows reserve(LeftForm form, int64_t rows, int64_t cols) {
    constexpr int64_t kLine = 64, kAlike = 1024;  // rows a multiple of 1 KB apart share few places of the caches
    int64_t stride = (cols * bytes_of(form) + kLine - 1) / kLine * kLine;
    if (stride % kAlike == 0) stride += kLine;
    rows_ = {form, memory_.reserve(static_cast<size_t>((rows + 16) * stride)), rows, cols, stride};
    return rows_;
  }
  const LeftRows& rows() const { return rows_; }

 private:
  LeftRows rows_;
  AlignedBuffer<std::byte> memory_;
};

}  // namespace streamvec
