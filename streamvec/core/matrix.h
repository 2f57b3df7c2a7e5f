// Rows of floats in memory that never moves: a table is reserved once for its largest size and takes pages as rows
// are touched, so that a vocabulary can grow while threads read and write other rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "streamvec/core/status.h"

namespace streamvec {

// A borrowed view: `rows` rows of `cols` values, the starts of two rows `stride` values apart.
template <typename T>
struct MatrixView {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;

  T* row(int64_t i) const { return data + i * stride; }
  std::span<T> row_span(int64_t i) const { return {row(i), static_cast<size_t>(cols)}; }
  operator MatrixView<const T>() const { return {data, rows, cols, stride}; }  // NOLINT
};

// Owns zeroed rows. Each row starts on a 64-byte boundary and is padded with zeros to whole vectors of 16 floats;
// the padding stays zero as long as nobody writes it, so kernels may run over stride() values. Movable, not copyable.
class Matrix {
 public:
  static constexpr int64_t kRowMultiple = 16;

  Matrix() = default;
  // Reserves address space for rows_max rows and holds `rows` of them. kResourceExhausted when the machine refuses.
  static Result<Matrix> make(int64_t rows, int64_t cols, int64_t rows_max = 0);
  // A copy with the same capacity as it has rows.
  Result<Matrix> copy() const;

  // Adds zeroed rows up to `rows`. REQUIRES: rows() <= rows <= rows_max(). Rows already there stay where they are.
  void grow(int64_t rows);
  // Takes the memory of all rows now, not as they are touched, by so many threads. Nothing happens where the system
  // cannot (before Linux 5.14).
  void take_pages(int32_t threads = 1);

  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  int64_t stride() const { return stride_; }
  int64_t rows_max() const { return rows_max_; }
  float* row(int64_t i) { return data_.get() + i * stride_; }
  const float* row(int64_t i) const { return data_.get() + i * stride_; }
  MatrixView<float> view() { return {data_.get(), rows_, cols_, stride_}; }
  MatrixView<const float> view() const { return {data_.get(), rows_, cols_, stride_}; }

 private:
  struct Unmap {
    size_t bytes;
    void operator()(float* data) const;
  };
  std::unique_ptr<float, Unmap> data_{nullptr, Unmap{0}};
  int64_t rows_ = 0, cols_ = 0, stride_ = 0, rows_max_ = 0;
};

}  // namespace streamvec
