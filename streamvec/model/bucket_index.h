// Rows of hashed n-grams by their bucket. It is as large as the rows that are there, not as the buckets that could be:
// how many those are is an option, and a number in a file that may be damaged.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "streamvec/core/random.h"

namespace streamvec {

// An open-addressing table. Its writer is its only user meanwhile.
class BucketIndex {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};

  // The bucket's row, kNone when it has none.
  uint32_t find(uint32_t bucket) const {
    if (places_.empty()) return kNone;
    const uint32_t row_plus_one = places_[place_of(bucket)];
    return row_plus_one == 0 ? kNone : row_plus_one - 1;
  }
  // Gives the bucket the next row and returns it. REQUIRES: it has none.
  uint32_t add(uint32_t bucket) {
    if (2 * (buckets_.size() + 1) > places_.size()) grow();
    places_[place_of(bucket)] = static_cast<uint32_t>(buckets_.size()) + 1;
    buckets_.push_back(bucket);
    return static_cast<uint32_t>(buckets_.size()) - 1;
  }
  std::span<const uint32_t> buckets() const { return buckets_; }  // by row

 private:
  // Where the bucket is, or would be.
  size_t place_of(uint32_t bucket) const {
    const size_t mask = places_.size() - 1;
    size_t place = mix(bucket) & mask;
    while (places_[place] != 0 && buckets_[places_[place] - 1] != bucket) place = (place + 1) & mask;
    return place;
  }
  void grow() {
    places_.assign(places_.empty() ? 1'024 : 2 * places_.size(), 0);
    for (uint32_t row = 0; row < buckets_.size(); ++row) places_[place_of(buckets_[row])] = row + 1;
  }

  std::vector<uint32_t> buckets_;  // by row
  std::vector<uint32_t> places_;   // a row + 1 each, 0: empty; a power of two of them
};

}  // namespace streamvec
