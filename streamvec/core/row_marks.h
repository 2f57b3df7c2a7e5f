// Which rows have changed since somebody looked: a bit a row. Threads that train mark, one thread takes the marks.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace streamvec {

// Thread-safe. A row that is marked after it was changed and read after its mark was taken is read with that change.
class RowMarks {
 public:
  explicit RowMarks(int64_t rows) : words_(static_cast<size_t>(rows + 63) / 64) {}

  // Frequent rows are marked already, nearly always: a look does not take the cache line from the others.
  void mark(int64_t row) {
    std::atomic<uint64_t>& word = words_[static_cast<size_t>(row) / 64];
    const uint64_t bit = uint64_t{1} << (row % 64);
    if ((word.load(std::memory_order_relaxed) & bit) == 0) word.fetch_or(bit, std::memory_order_release);
  }
  // Appends the marked rows among `wanted` (a bit a row, all of them), rising, and takes their marks.
  template <typename Key>
  void take(std::span<const uint64_t> wanted, std::vector<Key>& rows) {
    for (size_t at = 0; at < words_.size(); ++at) {
      if ((words_[at].load(std::memory_order_relaxed) & wanted[at]) == 0) continue;
      const uint64_t before = words_[at].fetch_and(~wanted[at], std::memory_order_acq_rel);
      for (uint64_t bits = before & wanted[at]; bits != 0; bits &= bits - 1)
        rows.push_back(static_cast<Key>(64 * at + static_cast<size_t>(std::countr_zero(bits))));
    }
  }

 private:
  std::vector<std::atomic<uint64_t>> words_;
};

}  // namespace streamvec
