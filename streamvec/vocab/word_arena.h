// The bytes of words that come and go, in one block that stays small.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/vocab/huge_pages.h"

namespace streamvec {

// Words are appended; those that were released leave holes, and when the block is full the words that live are moved
// together. The block is at least twice as large as what lives in it, so that each move frees half of it: O(1) a byte,
// amortised. Each word has its owner's number before it, so that the mover can tell the owner.
class WordArena {
 public:
  using Ref = uint64_t;  // the offset of the bytes in the upper 48 bits, their number in the lower 16
  static constexpr size_t kWordBytesMax = 65'535;

  // Valid until the next store(), reserve() or move.
  std::string_view bytes(Ref ref) const { return {block_.data() + (ref >> 16), static_cast<size_t>(ref & 0xffff)}; }
  const char* at(Ref ref) const { return block_.data() + (ref >> 16); }

  // Keeps a copy of `word` for `owner`. When words must move, calls moved(owner, ref) for each that lives.
  // REQUIRES: 0 < word.size() <= kWordBytesMax, owner >= 0, word is no view of this arena.
  template <typename Moved>
  Ref store(int32_t owner, std::string_view word, Moved moved) {
    STREAMVEC_CHECK(!word.empty() && word.size() <= kWordBytesMax && owner >= 0);
    const size_t needed = cost(word.size());
    if (end_ + needed > block_.size() && live_ + needed <= block_.size() / 2) compact(moved);
    if (end_ + needed > block_.size()) block_.resize(std::max(2 * block_.size(), end_ + needed));
    const Header header{owner, static_cast<uint32_t>(word.size())};
    std::memcpy(block_.data() + end_, &header, sizeof header);
    std::memcpy(block_.data() + end_ + sizeof header, word.data(), word.size());
    const Ref ref = static_cast<Ref>(end_ + sizeof header) << 16 | word.size();
    end_ += needed;
    live_ += needed;
    return ref;
  }
  void release(Ref ref) {
    const int32_t nobody = kNobody;
    std::memcpy(block_.data() + (ref >> 16) - sizeof(Header), &nobody, sizeof nobody);
    live_ -= cost(ref & 0xffff);
  }
  // What a word of `size` bytes takes.
  static size_t cost(size_t size) { return sizeof(Header) + size; }

  // Makes the block at least `bytes` large, every page of it touched.
  void reserve(size_t bytes) {
    if (block_.size() < bytes) block_.resize(bytes);
  }
  size_t live_bytes() const { return live_; }
  int64_t memory_bytes() const { return static_cast<int64_t>(block_.capacity()); }

 private:
  struct Header {
    int32_t owner;
    uint32_t size;
  };
  static constexpr int32_t kNobody = -1;

  template <typename Moved>
  void compact(Moved moved) {
    size_t to = 0;
    for (size_t from = 0; from < end_;) {
      Header header;
      std::memcpy(&header, block_.data() + from, sizeof header);
      const size_t taken = cost(header.size);
      if (header.owner != kNobody) {
        std::memmove(block_.data() + to, block_.data() + from, taken);
        moved(header.owner, static_cast<Ref>(to + sizeof header) << 16 | header.size);
        to += taken;
      }
      from += taken;
    }
    end_ = to;
  }

  std::vector<char, HugePageAllocator<char>> block_;
  size_t end_ = 0;   // where the next word goes
  size_t live_ = 0;  // bytes of words not released, their headers included
};

}  // namespace streamvec
