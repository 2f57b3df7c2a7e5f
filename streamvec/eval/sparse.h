// A square sparse matrix by rows, and its products with tall dense ones.
#pragma once

#include <cstdint>
#include <vector>

#include "streamvec/core/matrix.h"

namespace streamvec {

struct SparseMatrix {
  std::vector<int64_t> begin = {0};  // row i is [begin[i], begin[i + 1])
  std::vector<int32_t> column;       // rising within a row
  std::vector<float> value;

  int64_t size() const { return static_cast<int64_t>(begin.size()) - 1; }
  int64_t nonzeros() const { return static_cast<int64_t>(value.size()); }
  double squared_norm() const;  // the sum of squares: the Frobenius norm's square
};

SparseMatrix transpose(const SparseMatrix& matrix);

// The squared Frobenius norm of a - b. REQUIRES: equal size.
double squared_distance(const SparseMatrix& a, const SparseMatrix& b);

// out = matrix * dense. REQUIRES: dense.rows == out.rows == matrix.size(), dense.cols == out.cols; no overlap.
void multiply(const SparseMatrix& matrix, MatrixView<const float> dense, MatrixView<float> out);

// sum over the nonzeros of value_ij * (row_i . row_j): the inner product of the matrix with rows * rows'.
double inner_product(const SparseMatrix& matrix, MatrixView<const float> rows);

}  // namespace streamvec
