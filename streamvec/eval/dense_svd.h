// The singular value decomposition of a small dense matrix, compiled once: Eigen's takes longer to compile than most
// folders.
#pragma once

#include <Eigen/Core>

namespace streamvec {

// matrix = left * values.asDiagonal() * right.transpose(); values fall, columns of left and right are orthonormal.
struct DenseSvd {
  Eigen::MatrixXd left, right;
  Eigen::VectorXd values;
};

DenseSvd dense_svd(const Eigen::MatrixXd& matrix);

}  // namespace streamvec
