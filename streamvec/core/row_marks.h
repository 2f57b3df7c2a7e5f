// Which rows have changed since somebody looked. Threads that train mark, one thread takes the marks.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "streamvec/core/bits.h"

namespace streamvec {

// Thread-safe. A row that is marked after it was changed and read after its mark was taken is read with that change.
// A byte a row, not a bit: a mark is then a plain store, and takes a cache line of 64 rows from the others, not of 512.
class RowMarks {
 public:
  explicit RowMarks(int64_t rows) : marks_(static_cast<size_t>(rows)) {}

  // Frequent rows are marked already, nearly always: a look does not take the cache line from the others.
  void mark(int64_t row) {
    std::atomic<uint8_t>& mark = marks_[static_cast<size_t>(row)];
    if (mark.load(std::memory_order_relaxed) == 0) mark.store(1, std::memory_order_release);
  }
  // Appends the marked rows among `wanted` (a bit a row; rows beyond it are not), rising, and takes their marks.
  template <typename Key>
  void take(std::span<const uint64_t> wanted, std::vector<Key>& rows) {
    for_each_bit(wanted, [&](size_t row) {
      if (row >= marks_.size() || marks_[row].load(std::memory_order_relaxed) == 0) return;
      marks_[row].exchange(0, std::memory_order_acq_rel);
      rows.push_back(static_cast<Key>(row));
    });
  }

 private:
  std::vector<std::atomic<uint8_t>> marks_;
};

}  // namespace streamvec
