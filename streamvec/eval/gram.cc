#include "streamvec/eval/gram.h"

#include <algorithm>

#include "streamvec/core/status.h"

namespace streamvec {
namespace {

constexpr int64_t kBlock = 256;  // rows turned into double at a time: they stay in the cache

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Stride = Eigen::OuterStride<>;

Eigen::Map<const RowMajor, 0, Stride> block_of(MatrixView<const float> x, int64_t begin) {
  return {x.row(begin), std::min(kBlock, x.rows - begin), x.cols, Stride(x.stride)};
}

}  // namespace

Eigen::MatrixXd cross_gram(MatrixView<const float> x, MatrixView<const float> y) {
  STREAMVEC_CHECK_EQ(x.rows, y.rows);
  Eigen::MatrixXd sum = Eigen::MatrixXd::Zero(x.cols, y.cols);
  for (int64_t begin = 0; begin < x.rows; begin += kBlock) {
    const Eigen::MatrixXd block_x = block_of(x, begin).cast<double>(), block_y = block_of(y, begin).cast<double>();
    sum.noalias() += block_x.transpose() * block_y;
  }
  return sum;
}

Eigen::MatrixXd gram(MatrixView<const float> x) {
  Eigen::MatrixXd sum = Eigen::MatrixXd::Zero(x.cols, x.cols);
  for (int64_t begin = 0; begin < x.rows; begin += kBlock) {
    const Eigen::MatrixXd block = block_of(x, begin).cast<double>();
    sum.selfadjointView<Eigen::Lower>().rankUpdate(block.transpose());
  }
  return sum.selfadjointView<Eigen::Lower>();
}

Eigen::VectorXd column_sums(MatrixView<const float> x) {
  Eigen::VectorXd sum = Eigen::VectorXd::Zero(x.cols);
  for (int64_t begin = 0; begin < x.rows; begin += kBlock)
    sum += block_of(x, begin).cast<double>().colwise().sum().transpose();
  return sum;
}

void multiply(MatrixView<const float> x, const Eigen::MatrixXf& right, MatrixView<float> out) {
  STREAMVEC_CHECK(x.cols == right.rows() && out.cols == right.cols() && out.rows == x.rows);
  for (int64_t begin = 0; begin < x.rows; begin += kBlock) {
    const RowMajor product = block_of(x, begin) * right;
    Eigen::Map<RowMajor, 0, Stride>(out.row(begin), product.rows(), out.cols, Stride(out.stride)) = product;
  }
}

void multiply_add(MatrixView<const float> x, const Eigen::MatrixXf& right, MatrixView<float> out) {
  STREAMVEC_CHECK(x.cols == right.rows() && out.cols == right.cols() && out.rows == x.rows);
  for (int64_t begin = 0; begin < x.rows; begin += kBlock) {
    const auto block = block_of(x, begin);
    Eigen::Map<RowMajor, 0, Stride>(out.row(begin), block.rows(), out.cols, Stride(out.stride)).noalias() +=
        block * right;
  }
}

}  // namespace streamvec
