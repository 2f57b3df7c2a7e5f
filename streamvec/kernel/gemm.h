// Products of float matrices, for factors of dozens of rows and columns and more. One seam over oneDNN, which compiles
// its kernels for the CPU it finds itself on (93% of the fp32 peak where OpenBLAS 0.3.21 has 86%, and no kernel to
// choose by hand); bench_rbsg prints what is reached.
// Runs on the calling thread alone: callers cut the work. Thread-safe. Equal arguments give equal bits on one machine.
#pragma once

#include "streamvec/core/matrix.h"

namespace streamvec {

// A factor as it stands in memory, or its transpose.
struct Factor {
  Factor(MatrixView<const float> view) : values(view) {}   // NOLINT: a view is a factor
  Factor(MatrixView<float> view) : values(view) {}         // NOLINT
  Factor(const Matrix& matrix) : values(matrix.view()) {}  // NOLINT
  int64_t rows() const { return transposed ? values.cols : values.rows; }
  int64_t cols() const { return transposed ? values.rows : values.cols; }

  MatrixView<const float> values;
  bool transposed = false;
};

inline Factor transposed(Factor factor) {
  factor.transposed = !factor.transposed;
  return factor;
}

// `count` rows from `begin` on.
template <typename T>
MatrixView<T> some_rows(MatrixView<T> view, int64_t begin, int64_t count) {
  return {view.data + begin * view.stride, count, view.cols, view.stride};
}

// c = a b. REQUIRES: the shapes fit, c overlaps neither factor. Values between a row's cols and its stride are left
// alone. Any side may be 0 long.
void multiply(const Factor& a, const Factor& b, MatrixView<float> c);
// c += a b, likewise.
void multiply_add(const Factor& a, const Factor& b, MatrixView<float> c);
// c = keep * c + a b by plain loops, summed in double: what the others are held against. keep is 0 or 1.
void multiply_reference(const Factor& a, const Factor& b, float keep, MatrixView<float> c);

}  // namespace streamvec
