#include "streamvec/eval/procrustes.h"

#include <algorithm>
#include <numeric>

#include "streamvec/eval/dense_svd.h"
#include "streamvec/eval/gram.h"

namespace streamvec {
namespace {

Result<Matrix> gather(MatrixView<const float> rows, const std::vector<int32_t>& chosen) {
  STREAMVEC_ASSIGN_OR_RETURN(Matrix gathered, Matrix::make(static_cast<int64_t>(chosen.size()), rows.cols));
  for (size_t i = 0; i < chosen.size(); ++i)
    std::copy_n(rows.row(chosen[i]), rows.cols, gathered.row(static_cast<int64_t>(i)));
  return gathered;
}

Result<Eigen::MatrixXd> rotation_of(MatrixView<const float> a, MatrixView<const float> b,
                                    const std::vector<int32_t>& chosen) {
  STREAMVEC_ASSIGN_OR_RETURN(const Matrix some_a, gather(a, chosen));
  STREAMVEC_ASSIGN_OR_RETURN(const Matrix some_b, gather(b, chosen));
  return best_rotation(some_a.view(), some_b.view());
}

// The `count` rows below `limit` that lie nearest to their partner, rising.
Result<std::vector<int32_t>> nearest_rows(MatrixView<const float> a, MatrixView<const float> b,
                                          const Eigen::MatrixXd& rotation, int64_t limit, int64_t count) {
  STREAMVEC_ASSIGN_OR_RETURN(Matrix turned, Matrix::make(limit, a.cols));
  multiply({a.data, limit, a.cols, a.stride}, rotation, turned.view());
  std::vector<float> cosines(static_cast<size_t>(limit));
  for (int64_t i = 0; i < limit; ++i)
    cosines[static_cast<size_t>(i)] = std::inner_product(b.row(i), b.row(i) + b.cols, turned.row(i), 0.0f);
  std::vector<int32_t> rows(static_cast<size_t>(limit));
  std::iota(rows.begin(), rows.end(), 0);
  const auto nearer = [&](int32_t x, int32_t y) {
    const float cosine_x = cosines[static_cast<size_t>(x)], cosine_y = cosines[static_cast<size_t>(y)];
    return cosine_x != cosine_y ? cosine_x > cosine_y : x < y;
  };
  std::nth_element(rows.begin(), rows.begin() + (count - 1), rows.end(), nearer);
  rows.resize(static_cast<size_t>(count));
  std::sort(rows.begin(), rows.end());
  return rows;
}

}  // namespace

Eigen::MatrixXd best_rotation(MatrixView<const float> a, MatrixView<const float> b) {
  const DenseSvd svd = dense_svd(cross_gram(a, b));
  return svd.left * svd.right.transpose();
}

Result<Alignment> align_on_stable(MatrixView<const float> a, MatrixView<const float> b, const AlignOptions& options) {
  STREAMVEC_CHECK(a.rows == b.rows && a.cols == b.cols && a.rows > 0);
  const int64_t limit = std::clamp<int64_t>(options.anchors_max, 1, a.rows);
  const int64_t count = std::clamp<int64_t>(static_cast<int64_t>(options.kept * static_cast<double>(limit)), 1, limit);
  Alignment alignment;
  alignment.stable.resize(static_cast<size_t>(limit));
  std::iota(alignment.stable.begin(), alignment.stable.end(), 0);
  STREAMVEC_ASSIGN_OR_RETURN(alignment.rotation, rotation_of(a, b, alignment.stable));
  for (int round = 0; round < options.rounds; ++round) {
    STREAMVEC_ASSIGN_OR_RETURN(alignment.stable, nearest_rows(a, b, alignment.rotation, limit, count));
    STREAMVEC_ASSIGN_OR_RETURN(alignment.rotation, rotation_of(a, b, alignment.stable));
  }
  return alignment;
}

}  // namespace streamvec
