// What rows of a table are to move by, added up over several blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "streamvec/kernel/scratch.h"
#include "streamvec/vocab/vocabulary.h"

namespace streamvec {

// One per thread and table.
class StepSums {
 public:
  // Forgets all rows; at most `rows` will be named, of `stride` floats each.
  void begin(size_t rows, int64_t stride);
  // Once for each time that a block names the row; its sum begins as zeros.
  void name(Slot slot);

  // Of rows that were named. A sum stays where it is until the next begin().
  float* row(Slot slot) { return at(place_of(slot)); }
  int32_t times(Slot slot) const { return times_[place_of(slot)]; }
  std::span<const Slot> slots() const { return slots_; }                     // each once
  const float* sum(size_t i) const { return memory_.data() + i * stride_; }  // of slots()[i]

 private:
  size_t find(Slot slot) const;
  size_t place_of(Slot slot) const { return static_cast<size_t>(places_[find(slot)]); }
  float* at(size_t i) { return memory_.data() + i * stride_; }

  size_t stride_ = 0;
  AlignedBuffer<float> memory_;
  std::vector<int32_t> places_;  // a hash table, at most half full: numbers of slots_; -1 none
  std::vector<Slot> slots_;
  std::vector<int32_t> times_;
};

}  // namespace streamvec
