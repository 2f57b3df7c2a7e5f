// From a word's hash to its slot, for words that come and go.
#pragma once

#include <cstdint>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/vocab/huge_pages.h"

namespace streamvec {

// Open addressing with linear probing, 8 bytes an entry, at most half full. What leaves is closed up at once, so that
// churn leaves nothing behind and a probe never passes graves. An entry knows 32 bits of the hash; whether the word is
// the right one is the caller's to say. Not thread-safe.
class SlotIndex {
 public:
  static constexpr int32_t kNone = -1;

  SlotIndex() { resize(kBitsMin); }

  void prefetch(uint64_t hash) const { __builtin_prefetch(&entries_[home(tag_of(hash))]); }
  // The slot in the hash's first entry, for prefetching: most often the one that find() will name. May be kNone.
  int32_t first(uint64_t hash) const { return entries_[home(tag_of(hash))].slot; }

  // The slot of `hash` for which is_it(slot) holds, or kNone.
  template <typename IsIt>
  int32_t find(uint64_t hash, IsIt is_it) const {
    const uint32_t tag = tag_of(hash);
    for (size_t i = home(tag);; i = next(i)) {
      const Entry& entry = entries_[i];
      if (entry.slot == kNone || (entry.tag == tag && is_it(entry.slot))) return entry.slot;
    }
  }

  // REQUIRES: the slot is not there yet.
  void insert(uint64_t hash, int32_t slot) {
    reserve(size_ + 1);
    place({tag_of(hash), slot});
    ++size_;
  }
  // REQUIRES: the slot is there under that hash.
  void erase(uint64_t hash, int32_t slot) {
    size_t hole = home(tag_of(hash));
    while (entries_[hole].slot != slot) {
      STREAMVEC_CHECK(entries_[hole].slot != kNone);
      hole = next(hole);
    }
    // An entry moves into the hole unless its home lies after the hole.
    for (size_t i = next(hole); entries_[i].slot != kNone; i = next(i)) {
      const size_t from_home = (i - home(entries_[i].tag)) & mask();
      if (from_home < ((i - hole) & mask())) continue;
      entries_[hole] = entries_[i];
      hole = i;
    }
    entries_[hole].slot = kNone;
    --size_;
  }

  void reserve(int64_t slots) {
    int bits = 32 - shift_;
    while (slots * 2 > int64_t{1} << bits) ++bits;
    if (bits > 32 - shift_) resize(bits);
  }
  int64_t size() const { return size_; }
  int64_t memory_bytes() const { return static_cast<int64_t>(entries_.capacity() * sizeof(Entry)); }

 private:
  struct Entry {
    uint32_t tag = 0;  // upper half of the hash; its topmost bits are the entry's home
    int32_t slot = kNone;
  };
  static constexpr int kBitsMin = 4;

  static uint32_t tag_of(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }
  size_t mask() const { return entries_.size() - 1; }
  size_t home(uint32_t tag) const { return tag >> shift_; }
  size_t next(size_t i) const { return (i + 1) & mask(); }

  void place(const Entry& entry) {
    size_t i = home(entry.tag);
    while (entries_[i].slot != kNone) i = next(i);
    entries_[i] = entry;
  }
  // The tag alone says where an entry belongs, so that growing reads no word again.
  void resize(int bits) {
    STREAMVEC_CHECK(bits <= 32);
    std::vector<Entry, HugePageAllocator<Entry>> old(size_t{1} << bits);
    old.swap(entries_);
    shift_ = 32 - bits;
    for (const Entry& entry : old)
      if (entry.slot != kNone) place(entry);
  }

  std::vector<Entry, HugePageAllocator<Entry>> entries_;
  int64_t size_ = 0;
  int shift_ = 32;  // 32 - log2 of the number of entries
};

}  // namespace streamvec
