#include "streamvec/model/step_sums.h"

#include <bit>
#include <cstring>

namespace streamvec {

void StepSums::begin(size_t rows, int64_t stride) {
  stride_ = static_cast<size_t>(stride);
  memory_.reserve(rows * stride_);
  places_.assign(std::bit_ceil(2 * rows + 1), -1);
  slots_.clear();
  times_.clear();
}

// Where the slot's number is, or belongs.
size_t StepSums::find(Slot slot) const {
  const size_t mask = places_.size() - 1;
  size_t place = (static_cast<uint32_t>(slot) * 2654435769u >> 7) & mask;
  while (places_[place] >= 0 && slots_[static_cast<size_t>(places_[place])] != slot) place = (place + 1) & mask;
  return place;
}

void StepSums::name(Slot slot) {
  int32_t& number = places_[find(slot)];
  if (number < 0) {
    number = static_cast<int32_t>(slots_.size());
    slots_.push_back(slot);
    times_.push_back(0);
    std::memset(at(static_cast<size_t>(number)), 0, stride_ * sizeof(float));
  }
  ++times_[static_cast<size_t>(number)];
}

}  // namespace streamvec
