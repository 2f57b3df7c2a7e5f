// A thread's own copies of the rows that all threads want all the time. A line of memory that two cores write in turn
// has to cross between them at each turn, and a few hundred rows take half of all steps; so each thread trains on
// copies of these, and brings what it has changed to the table after every so many uses.
//
// Between two visits a copy goes about as far as all threads' text would have it go, for such a row is pulled at by so
// many words that it is soon where they want it. The sum of what all threads have changed would go too far, and with
// four threads further each time; so the table takes a share, a little more than the mean of those who were at it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/kernel/scratch.h"
#include "streamvec/vocab/vocabulary.h"

namespace streamvec {

// What threads that keep copies of a table's rows have to agree on. Frequent words come first, in a counted text as in
// a stream, so the rows of the first slots are the ones that are copied. docs/BENCHMARKS.md (Threads) has how the
// numbers were found.
class HotSlots {
 public:
  HotSlots() = default;  // none
  // None for one thread, fewer for more: a row that is not met often enough learns too little when shares are small.
  HotSlots(int32_t threads, const Matrix& table);

  int64_t count() const { return count_; }

  // The row has begun anew: copies of what it was are worth nothing. Thread-safe.
  void restart(int64_t slot) {
    if (slot >= count_) return;
    slots_[slot].restarts.fetch_add(1, std::memory_order_relaxed);
    restarts_->fetch_add(1, std::memory_order_release);
  }
  uint32_t restarts() const { return count_ > 0 ? restarts_->load(std::memory_order_acquire) : 0; }
  uint32_t restarts(int64_t slot) const { return slots_[slot].restarts.load(std::memory_order_relaxed); }

  // Whose turn it is to read or to add to the row; who wants to add comes again instead of waiting.
  bool try_lock(int64_t slot) { return !slots_[slot].taken.test_and_set(std::memory_order_acquire); }
  void unlock(int64_t slot) { slots_[slot].taken.clear(std::memory_order_release); }
  // How often threads have added to the row; counted by who holds the lock.
  std::atomic<uint32_t>& merges(int64_t slot) { return slots_[slot].merges; }
  uint32_t others() const { return others_; }  // threads beside the one that asks

 private:
  struct alignas(64) One {  // in a cache line of its own
    std::atomic_flag taken;
    std::atomic<uint32_t> merges = 0;
    std::atomic<uint32_t> restarts = 0;
  };
  int64_t count_ = 0;
  uint32_t others_ = 0;
  std::unique_ptr<One[]> slots_;
  std::unique_ptr<std::atomic<uint32_t>> restarts_;  // of all slots
};

// One thread's copies of a table's rows.
class HotRows {
 public:
  static constexpr uint32_t kUses = 32;  // of a row, before its changes go to the table

  HotRows(HotSlots& slots, Matrix& table);

  // Which rows are copied cannot be foreseen, so what is asked of every row is answered without a branch.
  bool holds(Slot slot) const { return slot < count_; }
  // The row to train on: the copy where there is one, else the table's.
  float* row(Slot slot) { return (holds(slot) ? copies_.data() : table_.row(0)) + slot * stride_; }
  // Counts one use. True: renew() has to be called before the row is read.
  bool use(Slot slot) { return --left_[place(slot)] == 0; }
  // Whether the table's row will be asked for at the next use.
  bool wants_row(Slot slot) const { return !holds(slot) | (left_[place(slot)] == 1); }
  // Gives the table its share of what was changed and takes what others have changed. Returns that share; 0: the
  // table's row is as it was.
  float renew(Slot slot);
  // To be called now and then: copies of rows that have begun anew are taken anew when they are used.
  void notice_restarts() {
    if (slots_.restarts() != restarts_seen_) forget_restarted();
  }
  // Gives the table its share of all changes: calls renew(slot), which is to call the one above, for all rows that have
  // any.
  template <typename F>
  void settle(F renew) {
    notice_restarts();
    for (Slot slot = 0; slot < count_; ++slot) {
      if (!taken_[slot] || left_[slot] == kUnused) continue;
      do renew(slot);
      while (left_[slot] == 1);
      left_[slot] = kUnused;
    }
  }

 private:
  static constexpr uint32_t kUnused = kUses + 1;  // uses left of a copy that is as the table has it
  static constexpr uint32_t kMany = std::numeric_limits<uint32_t>::max();

  size_t place(Slot slot) const { return static_cast<size_t>(std::min(slot, count_)); }
  float* base(Slot slot) { return bases_.data() + slot * stride_; }
  void take(Slot slot);    // as the table has it
  float merge(Slot slot);  // 0: another thread is at it
  void forget_restarted();

  HotSlots& slots_;
  Matrix& table_;
  const Slot count_;
  const int64_t stride_;
  std::vector<uint32_t> left_;  // uses before a row is renewed; the last stands for all rows that are not copied
  std::vector<uint8_t> taken_;
  std::vector<uint32_t> restarts_;  // of each slot, when they were last looked at
  std::vector<uint32_t> merges_;    // of each slot, this thread's last one included
  uint32_t restarts_seen_ = 0;
  AlignedBuffer<float> copies_, bases_;  // what is trained on, and what the table had when it was copied
};

}  // namespace streamvec
