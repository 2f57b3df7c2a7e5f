// How often words outside the vocabulary have occurred, in fixed memory whatever the stream.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "streamvec/vocab/huge_pages.h"

namespace streamvec {

// A count-min sketch (Cormode, Muthukrishnan 2005) with conservative update (Estan, Varghese 2002) over decayed
// weights. Words come as seeded 64-bit hashes (WordHash), each row picks a cell by its own secret odd factor. With N
// the sum of all weights added:
//   - an estimate is never below the true sum;
//   - it is above it by more than 4 N / width() with a probability of at most 2^-kDepth; conservative update makes it
//     far less on text;
//   - sums are exact up to 2^24 times the weight of an occurrence, and do not grow beyond.
// The bytes are fixed when it is made. Not thread-safe.
class AdmissionSketch {
 public:
  static constexpr size_t kDepth = 4;

  // As many cells as fit into `bytes`, a power of two, at least 64 a row.
  AdmissionSketch(int64_t bytes, uint64_t seed);

  // To be called some words ahead of add(): its cells lie anywhere. Inlined always, because g++ 12 takes a function
  // that only prefetches for one without effect and drops the call.
  [[gnu::always_inline]] void prefetch(uint64_t hash) const {
    for (size_t row = 0; row < kDepth; ++row) __builtin_prefetch(&cells_[cell(row, hash)], 1);
  }
  // Counts an occurrence and returns the estimate, it included.
  float add(uint64_t hash, float weight) {
    const float sum = estimate(hash) + weight;
    raise(hash, sum);
    return sum;
  }
  // Makes the estimate at least `sum`: what is known of a word from elsewhere.
  void raise(uint64_t hash, float sum) {
    for (size_t row = 0; row < kDepth; ++row) {
      float& there = cells_[cell(row, hash)];
      there = std::max(there, sum);
    }
  }
  float estimate(uint64_t hash) const {
    float least = cells_[cell(0, hash)];
    for (size_t row = 1; row < kDepth; ++row) least = std::min(least, cells_[cell(row, hash)]);
    return least;
  }
  // Multiplies all sums by 2^-k (ForwardDecay::advance).
  void rescale(int64_t k);

  int64_t width() const { return int64_t{1} << (64 - shift_); }  // cells of a row
  std::span<const float> cells() const { return cells_; }        // row by row: what a checkpoint keeps
  std::span<float> cells() { return cells_; }
  int64_t memory_bytes() const { return static_cast<int64_t>(cells_.capacity() * sizeof(float)); }

 private:
  size_t cell(size_t row, uint64_t hash) const { return (row << (64 - shift_)) + ((hash * factors_[row]) >> shift_); }

  int shift_ = 58;  // 64 - log2 of the width
  std::array<uint64_t, kDepth> factors_;
  std::vector<float, HugePageAllocator<float>> cells_;
};

}  // namespace streamvec
