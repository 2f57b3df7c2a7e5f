// Products of tall matrices with each other and with small ones: what every measure here is made of.
// In tiles of vectors (Highway, the widest this machine has): the sums go in float over 256 rows and in double over
// those, so that a product is good to about 1e-7 of its factors' norms.
// REQUIRES of every view: rows are followed by readable memory up to a multiple of 16 floats, as Matrix has it.
#pragma once

#include <Eigen/Core>

#include "streamvec/core/matrix.h"

namespace streamvec {

// x' y (x.cols by y.cols). REQUIRES: equal rows.
Eigen::MatrixXd cross_gram(MatrixView<const float> x, MatrixView<const float> y);
// x' x.
Eigen::MatrixXd gram(MatrixView<const float> x);
// The sum of the rows, in double.
Eigen::VectorXd column_sums(MatrixView<const float> x);
// out = x * right, where right is x.cols by out.cols. out may be x itself.
void multiply(MatrixView<const float> x, const Eigen::MatrixXd& right, MatrixView<float> out);
// out += x * right.
void multiply_add(MatrixView<const float> x, const Eigen::MatrixXd& right, MatrixView<float> out);

}  // namespace streamvec
