#include "streamvec/vocab/vocabulary.h"

#include <limits>

namespace streamvec {

Slot Vocabulary::add(std::string_view word, int64_t count) {
  STREAMVEC_CHECK(count >= 0);
  STREAMVEC_CHECK(words_.size() < static_cast<size_t>(std::numeric_limits<Slot>::max()));
  STREAMVEC_CHECK_EQ(find(word), kNoSlot);
  const Slot slot = size();
  words_.push_back(table_.insert(word, slot));
  counts_.push_back(count);
  tokens_ += count;
  return slot;
}

void Vocabulary::add_count(Slot slot, int64_t count) {
  counts_[static_cast<size_t>(slot)] += count;
  tokens_ += count;
}

void Vocabulary::add_alias(std::string_view spelling, Slot slot) {
  STREAMVEC_CHECK(slot >= 0 && slot < size());
  STREAMVEC_CHECK_EQ(find(spelling), kNoSlot);
  aliases_.push_back({table_.insert(spelling, slot), slot});
}

Vocabulary::Alias Vocabulary::alias(int64_t index) const {
  const AliasRef& alias = aliases_[static_cast<size_t>(index)];
  return {table_.bytes(alias.spelling), alias.slot};
}

void Vocabulary::reserve(int64_t words, int64_t bytes) {
  table_.reserve(words, bytes);
  words_.reserve(words_.size() + static_cast<size_t>(words));
  counts_.reserve(counts_.size() + static_cast<size_t>(words));
}

int64_t Vocabulary::memory_bytes() const {
  return table_.memory_bytes() +
         static_cast<int64_t>(words_.capacity() * sizeof(WordTable::Ref) + counts_.capacity() * sizeof(int64_t) +
                              aliases_.capacity() * sizeof(AliasRef));
}

}  // namespace streamvec
