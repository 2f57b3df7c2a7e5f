#include "streamvec/model/hot_rows.h"

#include "streamvec/kernel/row_ops.h"

namespace streamvec {

HotSlots::HotSlots(int32_t threads, const Matrix& table) {
  constexpr int64_t kBytes = 256 * 1024;  // of all threads' copies of a table
  constexpr float kShares = 1.5f;         // of all threads together; 1 would be their mean
  if (threads == 1) return;
  const int64_t row_bytes = table.stride() * static_cast<int64_t>(sizeof(float));
  count_ = std::min(table.rows_max(), kBytes / threads / row_bytes);
  share_ = std::min(1.0f, kShares / static_cast<float>(threads));
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
      restarts_(static_cast<size_t>(count_)) {
  left_.back() = kMany;
  copies_.reserve(static_cast<size_t>(count_ * stride_));
  bases_.reserve(static_cast<size_t>(count_ * stride_));
  forget_restarted();
}

bool HotRows::renew(Slot slot) {
  if (!hold(slot)) {
    left_.back() = kMany;
    return false;
  }
  const bool was_taken = taken_[slot] != 0;
  if (!was_taken) take(slot);
  const bool merged = was_taken && merge(slot);
  left_[slot] = was_taken && !merged ? 1 : kUses;  // what another thread was at is tried again at the next use
  return merged;
}

void HotRows::take(Slot slot) {
  float* copy = row(slot);
  std::copy_n(table_.row(slot), stride_, copy);
  std::copy_n(copy, stride_, bases_.data() + slot * stride_);
  taken_[slot] = 1;
}

bool HotRows::merge(Slot slot) {
  if (!slots_.try_lock(slot)) return false;
  merge_row(slots_.share(), static_cast<int32_t>(table_.cols()), row(slot), bases_.data() + slot * stride_,
            table_.row(slot));
  slots_.unlock(slot);
  return true;
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
