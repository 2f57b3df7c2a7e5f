#include "streamvec/eval/dense_svd.h"

#include <Eigen/SVD>

namespace streamvec {

DenseSvd dense_svd(const Eigen::MatrixXd& matrix) {
  const Eigen::BDCSVD<Eigen::MatrixXd> svd(matrix, Eigen::ComputeThinU | Eigen::ComputeThinV);
  return {svd.matrixU(), svd.matrixV(), svd.singularValues()};
}

}  // namespace streamvec
