#include "streamvec/model/widest_directions.h"

#include <Eigen/Core>
#include <Eigen/Eigenvalues>

namespace streamvec {

Result<Matrix> widest_directions(MatrixView<const float> rows, int64_t count) {
  STREAMVEC_ASSIGN_OR_RETURN(Matrix directions, Matrix::make(count, rows.cols));
  using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Rows spread = Eigen::Map<const Rows, 0, Eigen::OuterStride<>>(rows.data, rows.rows, rows.cols,
                                                                Eigen::OuterStride<>(rows.stride));
  if (rows.rows < 2 || !spread.allFinite()) return directions;
  spread.rowwise() -= spread.colwise().mean().eval();
  Eigen::MatrixXf squares = Eigen::MatrixXf::Zero(rows.cols, rows.cols);
  squares.selfadjointView<Eigen::Lower>().rankUpdate(spread.transpose());
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(squares.cast<double>());  // widest last
  constexpr double kRounding = 1e-6;                                                    // of the widest
  const Eigen::VectorXd& widths = solver.eigenvalues();
  if (solver.info() != Eigen::Success) return directions;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t column = rows.cols - 1 - i;
    if (column < 0 || !(widths[column] > kRounding * widths[rows.cols - 1])) break;
    Eigen::Map<Eigen::VectorXf>(directions.row(i), rows.cols) = solver.eigenvectors().col(column).cast<float>();
  }
  return directions;
}

}  // namespace streamvec
