// How hard the rows of a table pull at those that are trained against them, and where to. Frequent rows have a common
// direction, in which nearly half of their squares lie (docs/BENCHMARKS.md, Cluster): along it training brings a row to
// rest many times faster than across, and what several nodes did to a row side by side is to be counted accordingly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "streamvec/core/matrix.h"
#include "streamvec/kernel/row_buffer.h"

namespace streamvec {

// Not thread-safe.
class TablePull {
 public:
  explicit TablePull(int64_t dim);

  // Looks at the first rows, the most frequent ones; row i counts by weights[i * stride]. Each call brings the
  // direction nearer to that of the most squares (power iteration): it moves slowly, and rows are looked at often.
  void measure(const Matrix& rows, std::span<const float> weights, size_t stride);

  // Of unit length, padded; zeros as long as all rows are.
  const float* direction() const { return direction_.row(0); }
  // The mean of the rows' squares along the direction, and of the rest of them.
  double along() const { return along_; }
  double across() const { return across_; }

 private:
  void begin_with_mean(const Matrix& rows, int64_t count, std::span<const float> weights, size_t stride);
  void take_direction();

  const int32_t dim_;
  RowBuffer direction_, next_;
  bool begun_ = false;
  double along_ = 0, across_ = 0;
};

}  // namespace streamvec
