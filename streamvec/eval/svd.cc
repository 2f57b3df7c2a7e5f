#include "streamvec/eval/svd.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

#include "streamvec/core/random.h"
#include "streamvec/eval/gram.h"

namespace streamvec {
namespace {

constexpr int64_t kBlockMin = 16, kBlockMax = 64;
constexpr int64_t kBasisExtra = 400;  // small ranks need relatively larger bases: on the novels 4 x 50 was 37% off, 10
                                      // x 50 and 6 x 200 agreed with three times larger ones to 1e-4
constexpr int64_t kSteps = 8;  // blocks that make up `rank` columns: more and smaller ones converge sooner, run slower

// A direction shorter than this share of the matrix's own scale is rounding of the float data.
constexpr double kTolerance = 1e-5;

using Solver = Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>;

MatrixView<float> columns(Matrix& matrix, int64_t begin, int64_t count) {
  return {matrix.row(0) + begin, matrix.rows(), count, matrix.stride()};
}

void fill_random(Matrix& matrix, uint64_t seed) {
  Random random(seed);
  for (int64_t i = 0; i < matrix.rows(); ++i)
    for (int64_t j = 0; j < matrix.cols(); ++j) matrix.row(i)[j] = random.uniform() - 0.5f;
}

// Replaces the columns of y by an orthonormal basis of those directions that are longer than `least`, zeros for the
// others. By the eigenvectors of y'y in double, which stands rank deficiency; twice, so that the second time mends what
// rounding left of the first.
void orthonormalise(Matrix& y, double least) {
  for (int pass = 0; pass < 2; ++pass) {
    const Solver solver(gram(y.view()));
    const Eigen::VectorXd& values = solver.eigenvalues();
    const double bound = pass == 0 ? std::max(least * least, values.maxCoeff() * kTolerance * kTolerance) : 0.25;
    Eigen::MatrixXd right = solver.eigenvectors();
    for (Eigen::Index i = 0; i < values.size(); ++i) right.col(i) *= values[i] > bound ? 1 / std::sqrt(values[i]) : 0.0;
    multiply(y.view(), right, y.view());
  }
}

// The Krylov space of M M': orthonormal columns Q, and T = Q' M M' Q, whose eigenvectors turn Q into singular vectors.
// T is block tridiagonal: a product with the last block reaches only that block, the one before and the next.
class KrylovBasis {
 public:
  KrylovBasis(Matrix q, Matrix block, Matrix product, Matrix half)
      : q_(std::move(q)), block_(std::move(block)), product_(std::move(product)), half_(std::move(half)) {
    t_ = Eigen::MatrixXd::Zero(q_.cols(), q_.cols());
  }

  void grow(const SparseMatrix& matrix, const SparseMatrix& transposed, uint64_t seed) {
    fill_random(half_, seed);
    multiply(matrix, half_.view(), block_.view());
    orthonormalise(block_, 0);
    const int64_t width = block_.cols();
    for (int64_t last = 0; last < q_.cols(); last += width) {
      copy(block_.view(), columns(q_, last, width));
      multiply(transposed, block_.view(), half_.view());
      multiply(matrix, half_.view(), product_.view());
      const int64_t near = std::max<int64_t>(0, last - width), near_cols = last + width - near;
      const Eigen::MatrixXd coefficients = cross_gram(columns(q_, near, near_cols), product_.view());
      t_.block(near, last, near_cols, width) = coefficients;
      t_.block(last, near, width, near_cols) = coefficients.transpose();
      if (last + width == q_.cols()) return;
      multiply_add(columns(q_, near, near_cols), -coefficients, product_.view());
      make_next_block(columns(q_, 0, last + width));
    }
  }

  Factorisation factors(int64_t rank, Matrix left) const {
    const Solver solver(t_);
    const Eigen::MatrixXd vectors = solver.eigenvectors().rightCols(rank).rowwise().reverse();
    Factorisation result;
    for (const double value : solver.eigenvalues().tail(rank).reverse())
      result.singular_values.push_back(std::sqrt(std::max(0.0, value)));
    multiply(q_.view(), vectors, left.view());
    result.left = std::move(left);
    return result;
  }

 private:
  static void copy(MatrixView<const float> from, MatrixView<float> to) {
    for (int64_t i = 0; i < from.rows; ++i) std::copy_n(from.row(i), from.cols, to.row(i));
  }

  // Takes away what rounding left of the product in the whole basis.
  void make_next_block(MatrixView<const float> basis) {
    multiply_add(basis, -cross_gram(basis, product_.view()), product_.view());
    std::swap(block_, product_);
    orthonormalise(block_, kTolerance * t_.topLeftCorner(block_.cols(), block_.cols()).norm());
  }

  Matrix q_, block_, product_, half_;
  Eigen::MatrixXd t_;
};

}  // namespace

Result<Factorisation> factorise(const SparseMatrix& matrix, const SvdOptions& options) {
  const int64_t size = matrix.size();
  if (size == 0) return error(Code::kInvalidArgument, "a matrix without rows has no factors");
  if (options.rank < 1) return error(Code::kInvalidArgument, "rank ", options.rank, " is below 1");
  const int64_t rank = std::min(options.rank, size);
  const int64_t width = std::min(std::clamp(rank / kSteps, kBlockMin, kBlockMax), size);
  const auto wanted =
      static_cast<int64_t>(static_cast<double>(rank) * std::max(1.0, options.basis_factor)) + kBasisExtra;
  const int64_t cols = (std::min(wanted, size) + width - 1) / width * width;
  STREAMVEC_ASSIGN_OR_RETURN(Matrix q, Matrix::make(size, cols));
  STREAMVEC_ASSIGN_OR_RETURN(Matrix block, Matrix::make(size, width));
  STREAMVEC_ASSIGN_OR_RETURN(Matrix product, Matrix::make(size, width));
  STREAMVEC_ASSIGN_OR_RETURN(Matrix half, Matrix::make(size, width));
  STREAMVEC_ASSIGN_OR_RETURN(Matrix left, Matrix::make(size, rank));
  KrylovBasis basis(std::move(q), std::move(block), std::move(product), std::move(half));
  basis.grow(matrix, transpose(matrix), options.seed);
  return basis.factors(rank, std::move(left));
}

Result<Matrix> root_vectors(const Factorisation& factorisation, int64_t dim) {
  STREAMVEC_CHECK(dim > 0 && dim <= factorisation.left.cols());
  STREAMVEC_ASSIGN_OR_RETURN(Matrix vectors, Matrix::make(factorisation.left.rows(), dim));
  for (int64_t j = 0; j < dim; ++j) {
    const auto root = static_cast<float>(std::sqrt(factorisation.singular_values[static_cast<size_t>(j)]));
    for (int64_t i = 0; i < vectors.rows(); ++i) vectors.row(i)[j] = factorisation.left.row(i)[j] * root;
  }
  return vectors;
}

}  // namespace streamvec
