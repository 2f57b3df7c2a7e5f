#include "streamvec/sync/table_pull.h"

#include <algorithm>
#include <cmath>

#include "streamvec/kernel/logistic_rows.h"
#include "streamvec/kernel/row_codec.h"
#include "streamvec/kernel/row_ops.h"

namespace streamvec {
namespace {

constexpr int64_t kMeasuredRows = 1'024;

}  // namespace

TablePull::TablePull(int64_t dim) : dim_(static_cast<int32_t>(dim)) {
  direction_.reserve_zeroed(1, dim);
}

void TablePull::measure(const Matrix& rows, std::span<const float> weights, size_t stride) {
  const int64_t count = std::min(rows.rows(), kMeasuredRows);
  if (!begun_) begin_with_mean(rows, count, weights, stride);
  next_.reserve_zeroed(1, dim_);
  double squares = 0, along = 0, weight = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (i + kFetchAhead < count) fetch_row(rows.row(i + kFetchAhead), dim_);
    const float of_row = weights[static_cast<size_t>(i) * stride];
    const RowAlong part = add_along(rows.row(i), direction_.row(0), of_row, dim_, next_.row(0));
    weight += of_row;
    squares += double{of_row} * part.square;
    along += double{of_row} * part.product * part.product;
  }
  along_ = weight > 0 ? along / weight : 0;
  across_ = weight > 0 ? std::max(0.0, squares / weight - along_) : 0;
  take_direction();
}

// Rows that have grown the same way: the mean is near the direction already.
void TablePull::begin_with_mean(const Matrix& rows, int64_t count, std::span<const float> weights, size_t stride) {
  next_.reserve_zeroed(1, dim_);
  for (int64_t i = 0; i < count; ++i)
    add_scaled(rows.row(i), weights[static_cast<size_t>(i) * stride], dim_, next_.row(0));
  take_direction();
}

void TablePull::take_direction() {
  const float length = std::sqrt(dot(next_.row(0), next_.row(0), dim_));
  if (!(length > 0) || !std::isfinite(length)) return;
  begun_ = true;
  for (int32_t k = 0; k < dim_; ++k) direction_.row(0)[k] = next_.row(0)[k] / length;
}

}  // namespace streamvec
