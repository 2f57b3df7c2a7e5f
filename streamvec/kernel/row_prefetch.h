// Fetches the rows of the next block bit by bit while this one is computed: asked for all at once they would fill the
// few buffers that a core has for missing cache lines, and computing would wait for them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "streamvec/kernel/pair_block.h"

namespace streamvec {

class RowPrefetch {
 public:
  explicit RowPrefetch(const PairBlock& block)
      : rows_(block.upcoming), count_(block.upcoming_count), dim_(block.dim), shared_(block.rows_shared) {}

  // Asks for `count` more rows, fewer when they are all asked for.
  void ask(int32_t count) {
    const int32_t end = std::min(next_ + count, count_);
    for (; next_ < end; ++next_)
      for (int32_t d = 0; d < dim_; d += 16) fetch(rows_[next_] + d);
  }
  void ask_for_all() { ask(count_); }

 private:
  // A line that another core has changed is taken over at once for writing: asked for reading first, it would cross
  // between the cores twice. Alone, the second cache is the better place, because a block's rows overflow the first.
  void fetch(const float* line) const {
#if defined(__x86_64__)
    if (shared_) {
      asm volatile("prefetchw %0" : : "m"(*line));
      return;
    }
#endif
    __builtin_prefetch(line, 1, 2);
  }

  const float* const* rows_;
  int32_t count_;
  int32_t dim_;
  bool shared_;
  int32_t next_ = 0;
};

}  // namespace streamvec
