#include "streamvec/cluster/vector_shard.h"

#include <algorithm>
#include <array>

#include "streamvec/core/memory.h"

namespace streamvec {
namespace {

// Eight sums at once, so that they need not wait for each other.
double dot_product(const float* a, const float* b, size_t count) {
  std::array<double, 8> sums{};
  size_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (size_t lane = 0; lane < 8; ++lane) sums[lane] += double{a[i + lane]} * double{b[i + lane]};
  for (; i < count; ++i) sums[0] += double{a[i]} * double{b[i]};
  double sum = 0;
  for (const double each : sums) sum += each;
  return sum;
}

}  // namespace

Status VectorShard::take(const std::vector<RowKey>& rows,
                         const std::function<Status(RowKey, std::span<float>)>& value) {
  const auto dim = static_cast<size_t>(dim_);
  STREAMVEC_ASSIGN_OR_RETURN(std::vector<float> point,
                             make_values<float>(static_cast<int64_t>(rows.size()) * dim_, "a node's rows", advice_));
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::span<float> row(point.data() + i * dim, dim);
    const auto known = places_.find(rows[i]);
    if (known == places_.end()) {
      STREAMVEC_RETURN_IF_ERROR(value(rows[i], row));
    } else if (!vectors_.empty() && !vectors_[kPoint].empty()) {
      std::copy_n(vectors_[kPoint].data() + known->second * dim, dim, row.data());
    }
  }
  rows_ = rows;
  places_.clear();
  scales_.clear();
  for (size_t i = 0; i < rows_.size(); ++i) {
    places_[rows_[i]] = static_cast<uint32_t>(i);
    scales_.push_back(scale_of_ ? scale_of_(rows_[i]) : 1.0f);
  }
  vectors_.assign(kHistory, {});
  vectors_[kPoint] = std::move(point);
  return {};
}

Result<float*> VectorShard::values_of(VectorId vector) {
  if (vector >= vectors_.size()) vectors_.resize(size_t{vector} + 1);
  std::vector<float>& values = vectors_[vector];
  if (values.empty()) {
    STREAMVEC_ASSIGN_OR_RETURN(
        values, make_values<float>(static_cast<int64_t>(rows_.size()) * dim_, "a vector of L-BFGS", advice_));
  }
  return values.data();
}

Status VectorShard::apply(std::span<const VectorOp> ops, std::vector<double>& told) {
  const size_t dim = static_cast<size_t>(dim_), count = rows_.size() * dim;
  for (const VectorOp& op : ops) {
    STREAMVEC_RETURN_IF_ERROR(values_of(std::max(op.a, op.b)).status());  // vectors_ grows before any is looked at
    STREAMVEC_ASSIGN_OR_RETURN(float* const a, values_of(op.a));
    STREAMVEC_ASSIGN_OR_RETURN(float* const b, values_of(op.b));
    const auto factor = static_cast<float>(op.factor);
    switch (op.kind) {
      case VectorOp::Kind::kCopy:
        std::copy_n(a, count, b);
        break;
      case VectorOp::Kind::kScale:
        for (size_t i = 0; i < count; ++i) a[i] *= factor;
        break;
      case VectorOp::Kind::kAxpy:
        for (size_t i = 0; i < count; ++i) b[i] += factor * a[i];
        break;
      case VectorOp::Kind::kDot:
        told.push_back(dot_product(a, b, count));
        break;
      case VectorOp::Kind::kDivide:
        for (size_t row = 0; row < rows_.size(); ++row)
          for (size_t i = row * dim; i < (row + 1) * dim; ++i) a[i] /= scales_[row];
        break;
      case VectorOp::Kind::kDotDivided: {
        double sum = 0;
        for (size_t row = 0; row < rows_.size(); ++row)
          sum += dot_product(a + row * dim, b + row * dim, dim) / double{scales_[row]};
        told.push_back(sum);
        break;
      }
    }
  }
  return {};
}

Status VectorShard::clear(VectorId vector) {
  STREAMVEC_ASSIGN_OR_RETURN(float* const values, values_of(vector));
  std::fill_n(values, rows_.size() * static_cast<size_t>(dim_), 0.0f);
  return {};
}

Status VectorShard::find(std::span<const RowKey> rows, std::vector<size_t>& places) const {
  for (const RowKey row : rows) {
    const auto found = places_.find(row);
    if (found == places_.end()) return error(Code::kOutOfRange, "row ", row, " is not owned by this node");
    places.push_back(found->second);
  }
  return {};
}

Status VectorShard::read(VectorId vector, std::span<const RowKey> rows, std::vector<float>& values) {
  std::vector<size_t> places;
  STREAMVEC_RETURN_IF_ERROR(find(rows, places));
  STREAMVEC_ASSIGN_OR_RETURN(const float* const all, values_of(vector));
  const auto dim = static_cast<size_t>(dim_);
  values.resize(rows.size() * dim);
  for (size_t i = 0; i < places.size(); ++i) std::copy_n(all + places[i] * dim, dim, values.data() + i * dim);
  return {};
}

Status VectorShard::add(VectorId vector, std::span<const RowKey> rows, std::span<const float> values) {
  const auto dim = static_cast<size_t>(dim_);
  if (values.size() != rows.size() * dim)
    return error(Code::kInvalidArgument, values.size(), " values for ", rows.size(), " rows of ", dim);
  std::vector<size_t> places;
  STREAMVEC_RETURN_IF_ERROR(find(rows, places));
  STREAMVEC_ASSIGN_OR_RETURN(float* const all, values_of(vector));
  for (size_t i = 0; i < places.size(); ++i)
    for (size_t k = 0; k < dim; ++k) all[places[i] * dim + k] += values[i * dim + k];
  return {};
}

int64_t VectorShard::bytes() const {
  int64_t bytes = 0;
  for (const auto& each : vectors_) bytes += static_cast<int64_t>(each.size() * sizeof(float));
  return bytes;
}

}  // namespace streamvec
