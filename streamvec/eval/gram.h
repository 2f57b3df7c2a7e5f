// Products of tall matrices with each other, small and in double: what every measure here is made of.
#pragma once

#include <Eigen/Core>

#include "streamvec/core/matrix.h"

namespace streamvec {

// x' y (x.cols by y.cols), summed in double. REQUIRES: equal rows.
Eigen::MatrixXd cross_gram(MatrixView<const float> x, MatrixView<const float> y);
// x' x.
Eigen::MatrixXd gram(MatrixView<const float> x);
// The sum of the rows.
Eigen::VectorXd column_sums(MatrixView<const float> x);
// out = x * right, where right is x.cols by out.cols. Rows are taken a block at a time, so that out may be x itself.
void multiply(MatrixView<const float> x, const Eigen::MatrixXf& right, MatrixView<float> out);

// out += x * right.
void multiply_add(MatrixView<const float> x, const Eigen::MatrixXf& right, MatrixView<float> out);

}  // namespace streamvec
