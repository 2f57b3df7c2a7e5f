// Which chunk is the newest of a record: a flat table, for each chunk that comes or leaves looks here.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace streamvec {

// From records (hashes of names, never 0) to keys. Open addressing with linear probing; half of the places at least are
// empty, so that a look is one memory access almost always. Not thread-safe.
class RecordIndex {
 public:
  size_t size() const { return size_; }

  // The key of a record, nullptr when there is none. Holds until something is added or erased.
  uint64_t* find(uint64_t record) {
    const size_t at = place_of(record);
    return !places_.empty() && places_[at].record == record ? &places_[at].key : nullptr;
  }

  // The key of a record, which becomes `key` if there was none; `is_new` says so.
  uint64_t& add(uint64_t record, uint64_t key, bool& is_new) {
    if (2 * (size_ + 1) > places_.size()) grow();
    Place& place = places_[place_of(record)];
    is_new = place.record == 0;
    if (is_new) {
      place = {record, key};
      ++size_;
    }
    return place.key;
  }

  void erase(uint64_t record) {
    if (find(record) == nullptr) return;
    size_t hole = place_of(record);
    --size_;
    // Whoever was pushed past the hole by others moves into it (Knuth, vol. 3, 6.4, algorithm R).
    for (size_t at = next(hole); places_[at].record != 0; at = next(at)) {
      const size_t wanted = home_of(places_[at].record);
      if (((at - wanted) & mask()) < ((at - hole) & mask())) continue;
      places_[hole] = places_[at];
      hole = at;
    }
    places_[hole] = {};
  }

 private:
  struct Place {
    uint64_t record = 0;  // 0: empty
    uint64_t key = 0;
  };

  size_t mask() const { return places_.size() - 1; }
  size_t next(size_t at) const { return (at + 1) & mask(); }
  // Multiplied, so that records that are no good hashes spread, too (Knuth, vol. 3, 6.4).
  size_t home_of(uint64_t record) const { return (record * 0x9E3779B97F4A7C15u) >> 32 & mask(); }
  // Where the record is, or would be.
  size_t place_of(uint64_t record) const {
    if (places_.empty()) return 0;
    size_t at = home_of(record);
    while (places_[at].record != 0 && places_[at].record != record) at = next(at);
    return at;
  }
  void grow() {
    std::vector<Place> old(std::bit_ceil(4 * (size_ + 16)));
    old.swap(places_);
    for (const Place& place : old)
      if (place.record != 0) places_[place_of(place.record)] = place;
  }

  std::vector<Place> places_;
  size_t size_ = 0;
};

}  // namespace streamvec
