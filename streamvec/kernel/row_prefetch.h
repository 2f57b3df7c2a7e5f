// Fetches the rows of the next block bit by bit while this one is computed: asked for all at once they would fill the
// few buffers that a core has for missing cache lines, and computing would wait for them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "streamvec/kernel/pair_block.h"

namespace streamvec {

class RowPrefetch {
 public:
  explicit RowPrefetch(const PairBlock& block) : rows_(block.upcoming), count_(block.upcoming_count), dim_(block.dim) {}

  // Asks for `count` more rows, fewer when they are all asked for.
  void ask(int32_t count) {
    const int32_t end = std::min(next_ + count, count_);
    for (; next_ < end; ++next_)
      for (int32_t d = 0; d < dim_; d += 16) __builtin_prefetch(rows_[next_] + d, 1, kSecondCache);
  }
  void ask_for_all() { ask(count_); }

 private:
  // A block's rows overflow the first cache. What other threads write all the time is not asked for (model/hot_rows.h),
  // so that it does not pay to take lines over for writing, which is slower.
  static constexpr int kSecondCache = 2;

  const float* const* rows_;
  int32_t count_;
  int32_t dim_;
  int32_t next_ = 0;
};

}  // namespace streamvec
