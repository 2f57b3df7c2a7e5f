#include "streamvec/vocab/word_table.h"

#include <algorithm>
#include <array>

#include "streamvec/core/status.h"
#include "streamvec/vocab/word_hash.h"

namespace streamvec {
namespace {

constexpr int kBitsMin = 4;
constexpr int kBitsMax = 32;  // the tag's bits

constexpr WordHash kHash(0x9e3779b97f4a7c15ULL, 0xd6e8feb86659fd93ULL, 0xa0761d6478bd642fULL);

constexpr size_t kAhead = 32;  // words that are looked up together

// Where words of fewer than 4 bytes stand, then of fewer than 8, then the others. Hashing and comparing branch on just
// that: taken in this order the branches are foreseen, which in the order of the text they are not.
void order_by_length(std::span<const std::string_view> words, std::array<uint8_t, kAhead>& order) {
  std::array<std::array<uint8_t, kAhead>, 3> classes;
  std::array<size_t, 3> counts{};
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t which = static_cast<size_t>(words[i].size() >= 4) + static_cast<size_t>(words[i].size() >= 8);
    classes[which][counts[which]++] = static_cast<uint8_t>(i);
  }
  auto to = order.begin();
  for (size_t which = 0; which < 3; ++which) to = std::copy_n(classes[which].begin(), counts[which], to);
}

}  // namespace

uint32_t WordTable::tag_of(std::string_view word) {
  return static_cast<uint32_t>(kHash(word) >> 32);
}

int32_t WordTable::probe(uint32_t tag, std::string_view word) const {
  const size_t mask = entries_.size() - 1;
  for (size_t i = home(tag);; i = (i + 1) & mask) {
    const Entry& entry = entries_[i];
    if (entry.ref == 0) return kNone;
    if (entry.tag == tag && (entry.ref & 0xffff) == word.size() &&
        word_bytes::equal(arena_.data() + (entry.ref >> 16), word.data(), word.size()))
      return entry.number;
  }
}

int32_t WordTable::find(std::string_view word) const {
  if (word.empty() || entries_.empty()) return kNone;
  return probe(tag_of(word), word);
}

void WordTable::find(std::span<const std::string_view> words, std::span<int32_t> numbers) const {
  STREAMVEC_CHECK_EQ(words.size(), numbers.size());
  if (entries_.empty()) {
    std::fill(numbers.begin(), numbers.end(), kNone);
    return;
  }
  // Three passes over a few words: each waits for memory that the pass before has asked for.
  std::array<uint32_t, kAhead> tags;
  std::array<uint8_t, kAhead> order;
  for (size_t begin = 0; begin < words.size(); begin += kAhead) {
    const std::span<const std::string_view> some = words.subspan(begin, std::min(kAhead, words.size() - begin));
    order_by_length(some, order);
    for (size_t k = 0; k < some.size(); ++k) {
      const size_t i = order[k];
      tags[i] = some[i].empty() ? 0 : tag_of(some[i]);
      __builtin_prefetch(&entries_[home(tags[i])]);
    }
    for (size_t i = 0; i < some.size(); ++i) __builtin_prefetch(arena_.data() + (entries_[home(tags[i])].ref >> 16));
    for (size_t k = 0; k < some.size(); ++k) {
      const size_t i = order[k];
      numbers[begin + i] = some[i].empty() ? kNone : probe(tags[i], some[i]);
    }
  }
}

WordTable::Ref WordTable::insert(std::string_view word, int32_t number) {
  STREAMVEC_CHECK(!word.empty() && word.size() <= kWordBytesMax);
  STREAMVEC_CHECK(number >= 0);
  if (entries_.empty()) resize(kBitsMin);
  if (static_cast<size_t>(size_ + 1) * 5 > entries_.size() * 3) resize(32 - shift_ + 1);
  const Ref ref = static_cast<Ref>(arena_.size()) << 16 | word.size();
  const uint32_t tag = tag_of(word);
  arena_.insert(arena_.end(), word.begin(), word.end());
  place({tag, number, ref});
  ++size_;
  return ref;
}

void WordTable::place(const Entry& entry) {
  const size_t mask = entries_.size() - 1;
  size_t i = home(entry.tag);
  while (entries_[i].ref != 0) i = (i + 1) & mask;
  entries_[i] = entry;
}

// The tag alone says where an entry belongs, so that growing reads no word again.
void WordTable::resize(int bits) {
  STREAMVEC_CHECK(bits <= kBitsMax);
  std::vector<Entry> old(size_t{1} << bits);
  old.swap(entries_);
  shift_ = 32 - bits;
  for (const Entry& entry : old)
    if (entry.ref != 0) place(entry);
}

void WordTable::reserve(int64_t words, int64_t bytes) {
  arena_.reserve(arena_.size() + static_cast<size_t>(bytes));
  int bits = entries_.empty() ? kBitsMin : 32 - shift_;
  while (static_cast<uint64_t>(size_ + words) * 5 > (uint64_t{3} << bits)) ++bits;
  if ((size_t{1} << bits) > entries_.size()) resize(bits);
}

int64_t WordTable::memory_bytes() const {
  return static_cast<int64_t>(entries_.capacity() * sizeof(Entry) + arena_.capacity());
}

}  // namespace streamvec
