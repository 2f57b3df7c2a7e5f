// A hash table from words to numbers that keeps the words' bytes itself, end to end in one arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace streamvec {

// Open addressing with linear probing, at most 60% full; an entry is 16 bytes, a word costs about 40 with its bytes.
// find() touches one cache line of entries and, on a hit, one of the arena. Reading is thread-safe while nobody
// inserts.
class WordTable {
 public:
  static constexpr int32_t kNone = -1;
  static constexpr size_t kWordBytesMax = 65'535;

  // Where a word's bytes lie in the arena: offset in the upper 48 bits, length in the lower 16. Never 0 for a word.
  using Ref = uint64_t;

  // The word's number, or kNone.
  int32_t find(std::string_view word) const;
  // The same for many words at once: it hashes and prefetches ahead, which pays once the table outgrows the cache.
  // REQUIRES: numbers.size() == words.size().
  void find(std::span<const std::string_view> words, std::span<int32_t> numbers) const;

  // Copies the word into the arena. REQUIRES: 0 < word.size() <= kWordBytesMax, number >= 0, word not there yet
  // and no view of this table.
  Ref insert(std::string_view word, int32_t number);
  // Valid until the next insert() or reserve().
  std::string_view bytes(Ref ref) const { return {arena_.data() + (ref >> 16), static_cast<size_t>(ref & 0xffff)}; }

  // Makes room for `words` more words of `bytes` bytes in all, so that inserting them moves nothing.
  void reserve(int64_t words, int64_t bytes);
  int64_t size() const { return size_; }
  int64_t arena_bytes() const { return static_cast<int64_t>(arena_.size()); }
  int64_t memory_bytes() const;  // taken from the machine, unused capacity included

 private:
  struct Entry {
    uint32_t tag = 0;  // upper half of the hash; its topmost bits are the entry's home
    int32_t number = kNone;
    Ref ref = 0;  // 0: the entry is free
  };
  static uint32_t tag_of(std::string_view word);
  size_t home(uint32_t tag) const { return tag >> shift_; }
  int32_t probe(uint32_t tag, std::string_view word) const;
  void place(const Entry& entry);
  void resize(int bits);

  std::vector<Entry> entries_;
  std::vector<char> arena_;
  int64_t size_ = 0;
  int shift_ = 32;  // 32 - log2 of the number of entries
};

}  // namespace streamvec
