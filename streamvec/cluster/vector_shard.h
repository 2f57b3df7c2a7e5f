// Some rows of many vectors, all of the same shape: an owner's share of what L-BFGS works with (optim/lbfgs.h).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/optim/lbfgs.h"
#include "streamvec/sync/message.h"

namespace streamvec {

// Not thread-safe.
class VectorShard {
 public:
  // `scale` of a row divides its values where ops say so; none: 1. `advice` is what to try when there is no memory.
  // REQUIRES: dim > 0.
  VectorShard(int64_t dim, std::function<float(RowKey)> scale, std::string advice)
      : dim_(dim), scale_of_(std::move(scale)), advice_(std::move(advice)) {}

  // From now on these rows, each once. `value` gives those of kPoint that were not here before; all other vectors are
  // forgotten. kResourceExhausted when there is no memory, an error of `value`'s as it is: nothing has changed then.
  Status take(const std::vector<RowKey>& rows, const std::function<Status(RowKey, std::span<float>)>& value);

  // kResourceExhausted when a vector that is named for the first time finds no memory.
  Status apply(std::span<const VectorOp> ops, std::vector<double>& told);
  Status clear(VectorId vector);
  // The values of these rows, one after another. kOutOfRange for rows that are not here.
  Status read(VectorId vector, std::span<const RowKey> rows, std::vector<float>& values);
  // Adds to them. kOutOfRange likewise, kInvalidArgument when there are more or fewer values: nothing is added then.
  Status add(VectorId vector, std::span<const RowKey> rows, std::span<const float> values);

  const std::vector<RowKey>& rows() const { return rows_; }
  int64_t bytes() const;  // of all vectors

 private:
  Result<float*> values_of(VectorId vector);
  Status find(std::span<const RowKey> rows, std::vector<size_t>& places) const;

  const int64_t dim_;
  const std::function<float(RowKey)> scale_of_;
  const std::string advice_;
  std::vector<RowKey> rows_;
  std::vector<float> scales_;  // by place
  std::unordered_map<RowKey, uint32_t> places_;
  std::vector<std::vector<float>> vectors_;  // by number; empty ones are zero
};

}  // namespace streamvec
