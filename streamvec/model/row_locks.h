// Lock-free training reads and writes rows that other threads write, which C++ calls a data race. Ordinary builds
// accept it: rows are plain floats, a torn step costs a little noise. Built with STREAMVEC_ROW_LOCKS (the tsan preset),
// every block locks its rows first, so that ThreadSanitizer is silent about them and every report it makes is a real
// bug.
#pragma once

#include <span>

#include "streamvec/vocab/vocabulary.h"

#ifdef STREAMVEC_ROW_LOCKS
#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>
#endif

namespace streamvec {

#ifdef STREAMVEC_ROW_LOCKS
// Flags rather than mutexes: a block holds a hundred and more, and ThreadSanitizer follows 64 mutexes a thread at most.
class RowLocks {
 public:
  static constexpr bool kLocking = true;
  static constexpr size_t kStripes = 512;  // per table

  using Flags = std::array<std::atomic_flag, 2 * kStripes>;

  // Locks all stripes of the given rows, in one order for everybody, until the guard goes.
  class Guard {
   public:
    Guard(RowLocks& locks, std::span<const Slot> inputs, std::span<const Slot> outputs) {
      for (Slot slot : inputs) held_.push_back(static_cast<size_t>(slot) % kStripes);
      for (Slot slot : outputs) held_.push_back(kStripes + static_cast<size_t>(slot) % kStripes);
      std::sort(held_.begin(), held_.end());
      held_.erase(std::unique(held_.begin(), held_.end()), held_.end());
      flags_ = locks.flags_.get();
      for (size_t stripe : held_)
        while ((*flags_)[stripe].test_and_set(std::memory_order_acquire)) std::this_thread::yield();
    }
    ~Guard() {
      for (size_t stripe : held_) (*flags_)[stripe].clear(std::memory_order_release);
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    Flags* flags_;
    std::vector<size_t> held_;
  };

 private:
  std::unique_ptr<Flags> flags_ = std::make_unique<Flags>();
};
#else
class RowLocks {
 public:
  static constexpr bool kLocking = false;
  struct Guard {
    Guard(RowLocks&, std::span<const Slot>, std::span<const Slot>) {}
    ~Guard() {}
  };
};
#endif

}  // namespace streamvec
