#include "streamvec/eval/sparse.h"

#include <Eigen/Core>

#include "streamvec/core/status.h"

namespace streamvec {
namespace {

using Vector = Eigen::Map<Eigen::VectorXf>;
using ConstVector = Eigen::Map<const Eigen::VectorXf>;

}  // namespace

double SparseMatrix::squared_norm() const {
  double sum = 0;
  for (const float x : value) sum += double{x} * x;
  return sum;
}

SparseMatrix transpose(const SparseMatrix& matrix) {
  SparseMatrix result;
  result.begin.assign(matrix.begin.size(), 0);
  result.column.resize(matrix.column.size());
  result.value.resize(matrix.value.size());
  for (const int32_t column : matrix.column) ++result.begin[static_cast<size_t>(column) + 1];
  for (size_t i = 1; i < result.begin.size(); ++i) result.begin[i] += result.begin[i - 1];
  std::vector<int64_t> next(result.begin.begin(), result.begin.end() - 1);
  for (int64_t row = 0; row < matrix.size(); ++row)
    for (int64_t k = matrix.begin[static_cast<size_t>(row)]; k < matrix.begin[static_cast<size_t>(row) + 1]; ++k) {
      const auto to = static_cast<size_t>(next[static_cast<size_t>(matrix.column[static_cast<size_t>(k)])]++);
      result.column[to] = static_cast<int32_t>(row);
      result.value[to] = matrix.value[static_cast<size_t>(k)];
    }
  return result;
}

double squared_distance(const SparseMatrix& a, const SparseMatrix& b) {
  STREAMVEC_CHECK_EQ(a.size(), b.size());
  double sum = 0;
  for (size_t row = 0; row < static_cast<size_t>(a.size()); ++row) {
    auto i = static_cast<size_t>(a.begin[row]), j = static_cast<size_t>(b.begin[row]);
    const auto i_end = static_cast<size_t>(a.begin[row + 1]), j_end = static_cast<size_t>(b.begin[row + 1]);
    while (i < i_end || j < j_end) {
      const bool take_a = i < i_end && (j == j_end || a.column[i] <= b.column[j]);
      const bool take_b = j < j_end && (i == i_end || b.column[j] <= a.column[i]);
      double difference = 0;
      if (take_a) difference += a.value[i++];
      if (take_b) difference -= b.value[j++];
      sum += difference * difference;
    }
  }
  return sum;
}

void multiply(const SparseMatrix& matrix, MatrixView<const float> dense, MatrixView<float> out) {
  STREAMVEC_CHECK(dense.rows == matrix.size() && out.rows == matrix.size() && dense.cols == out.cols);
  for (int64_t row = 0; row < matrix.size(); ++row) {
    Vector sum(out.row(row), out.cols);
    sum.setZero();
    for (int64_t k = matrix.begin[static_cast<size_t>(row)]; k < matrix.begin[static_cast<size_t>(row) + 1]; ++k)
      sum += matrix.value[static_cast<size_t>(k)] *
             ConstVector(dense.row(matrix.column[static_cast<size_t>(k)]), dense.cols);
  }
}

double inner_product(const SparseMatrix& matrix, MatrixView<const float> rows) {
  STREAMVEC_CHECK_EQ(rows.rows, matrix.size());
  Eigen::VectorXf sum(rows.cols);
  double total = 0;
  for (int64_t row = 0; row < matrix.size(); ++row) {
    sum.setZero();
    for (int64_t k = matrix.begin[static_cast<size_t>(row)]; k < matrix.begin[static_cast<size_t>(row) + 1]; ++k)
      sum += matrix.value[static_cast<size_t>(k)] *
             ConstVector(rows.row(matrix.column[static_cast<size_t>(k)]), rows.cols);
    total += sum.cast<double>().dot(ConstVector(rows.row(row), rows.cols).cast<double>());
  }
  return total;
}

}  // namespace streamvec
