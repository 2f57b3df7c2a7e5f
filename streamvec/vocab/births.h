// When each slot got the word it has: how text that was mapped earlier learns that a slot has changed hands.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "streamvec/core/status.h"

namespace streamvec {

// A counter of admissions, and for each slot the counter's value when its present word was admitted. One thread writes
// (add), any thread reads at any time without locks: what was written never moves. A reader must have heard of a slot
// through something that synchronises (a queue, a lock), as chunks of text are handed on anyway.
class Births {
 public:
  explicit Births(int64_t slots_max) : chunks_(static_cast<size_t>((slots_max + kChunk - 1) / kChunk)) {}

  uint64_t born(int32_t slot) const {
    return chunks_[static_cast<size_t>(slot) / kChunk][static_cast<size_t>(slot) % kChunk].load(
        std::memory_order_acquire);
  }
  bool has(int32_t slot) const {
    return chunks_[static_cast<size_t>(slot) / kChunk] != nullptr;
  }  // born() may be asked
  uint64_t count() const { return count_.load(std::memory_order_acquire); }

  // A word was admitted to `slot`. The slot is stamped first: whoever sees the new count sees the new owner too.
  void add(int32_t slot) {
    const uint64_t stamp = count() + 1;
    set(slot, stamp);
    count_.store(stamp, std::memory_order_release);
  }
  // For a state that is read back. REQUIRES: nobody else reads yet.
  void set(int32_t slot, uint64_t born) {
    auto& chunk = chunks_[static_cast<size_t>(slot) / kChunk];
    if (chunk == nullptr) {
      chunk = std::make_unique<std::atomic<uint64_t>[]>(kChunk);
      ++chunks_made_;
    }
    chunk[static_cast<size_t>(slot) % kChunk].store(born, std::memory_order_release);
  }
  void set_count(uint64_t count) { count_.store(count, std::memory_order_release); }

  int64_t memory_bytes() const {
    return static_cast<int64_t>(chunks_.capacity() * sizeof chunks_[0]) +
           chunks_made_ * static_cast<int64_t>(kChunk * sizeof(std::atomic<uint64_t>));
  }

 private:
  static constexpr int64_t kChunk = 1 << 14;

  std::vector<std::unique_ptr<std::atomic<uint64_t>[]>> chunks_;  // never resized
  int64_t chunks_made_ = 0;
  std::atomic<uint64_t> count_ = 0;
};

}  // namespace streamvec
