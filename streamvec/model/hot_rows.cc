#include "streamvec/model/hot_rows.h"

#include <thread>

#include "streamvec/kernel/row_ops.h"

namespace streamvec {

HotSlots::HotSlots(int32_t threads, const Matrix& table) {
  constexpr int64_t kBytes = 256 * 1024;  // of all threads' copies of a table
  if (threads <= 1) return;
  const int64_t row_bytes = table.stride() * static_cast<int64_t>(sizeof(float));
  count_ = std::min(table.rows_max(), kBytes / threads / row_bytes);
  others_ = static_cast<uint32_t>(threads - 1);
  slots_ = std::make_unique<One[]>(static_cast<size_t>(count_));
  restarts_ = std::make_unique<std::atomic<uint32_t>>(0);
}

HotRows::HotRows(HotSlots& slots, Matrix& table)
    : slots_(slots),
      table_(table),
      count_(static_cast<Slot>(slots.count())),
      stride_(table.stride()),
      left_(static_cast<size_t>(count_) + 1, 1),
      taken_(static_cast<size_t>(count_)),
      restarts_(static_cast<size_t>(count_)),
      merges_(static_cast<size_t>(count_)) {
  left_.back() = kMany;
  forget_restarted();
}

float HotRows::renew(Slot slot) {
  if (!holds(slot)) {
    left_.back() = kMany;
    return 0;
  }
  if (slots_.restarts(slot) != restarts_[slot]) forget_restarted();
  const bool was_taken = taken_[slot] != 0;
  if (!was_taken) take(slot);
  const float share = was_taken ? merge(slot) : 0;
  left_[slot] = was_taken && share == 0 ? 1 : kUses;  // what another thread was at is tried again at the next use
  return share;
}

void HotRows::take(Slot slot) {
  copies_.reserve(
      static_cast<size_t>(count_ * stride_));  // not before they are wanted: some models have no use for them
  bases_.reserve(static_cast<size_t>(count_ * stride_));
  while (!slots_.try_lock(slot)) std::this_thread::yield();
  merges_[slot] = slots_.merges(slot).load(std::memory_order_relaxed);
  std::copy_n(table_.row(slot), stride_, row(slot));
  slots_.unlock(slot);
  std::copy_n(row(slot), stride_, base(slot));
  taken_[slot] = 1;
}

float HotRows::merge(Slot slot) {
  constexpr float kShares = 1.5f;  // of all threads together; 1 would be their mean
  if (!slots_.try_lock(slot)) return 0;
  const uint32_t before = slots_.merges(slot).load(std::memory_order_relaxed);
  const uint32_t others = std::min(slots_.others(), before - merges_[slot]);  // that were at it since this one was
  merges_[slot] = before + 1;
  slots_.merges(slot).store(before + 1, std::memory_order_relaxed);
  const float share = std::min(1.0f, kShares / static_cast<float>(1 + others));
  merge_row(share, static_cast<int32_t>(table_.cols()), row(slot), base(slot), table_.row(slot));
  slots_.unlock(slot);
  return share;
}

void HotRows::forget_restarted() {
  restarts_seen_ = slots_.restarts();
  for (Slot slot = 0; slot < count_; ++slot) {
    const uint32_t now = slots_.restarts(slot);
    if (now == restarts_[slot]) continue;
    restarts_[slot] = now;
    taken_[slot] = 0;
    left_[slot] = 1;
  }
}

}  // namespace streamvec
