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

// An alias of the word in `slot` is not the word.
Slot Vocabulary::counts_for(Slot slot, std::string_view token) const {
  if (slot == kNoSlot || static_cast<size_t>(slot) >= counts_for_.size()) return slot;
  const Slot other = counts_for_[static_cast<size_t>(slot)];
  return other != kNoSlot && word(slot) == token ? other : slot;
}

Slot Vocabulary::find_token(std::string_view token) const {
  return counts_for(find(token), token);
}

void Vocabulary::find(std::span<const std::string_view> tokens, std::span<Slot> slots) const {
  table_.find(tokens, slots);
  if (counts_for_.empty()) return;
  for (size_t i = 0; i < tokens.size(); ++i) slots[i] = counts_for(slots[i], tokens[i]);
}

void Vocabulary::add_alias(std::string_view spelling, Slot slot) {
  STREAMVEC_CHECK(slot >= 0 && slot < size());
  const Slot word_slot = find(spelling);
  if (word_slot == kNoSlot) {
    aliases_.push_back({table_.insert(spelling, slot), slot});
    return;
  }
  STREAMVEC_CHECK(word_slot != slot && word(word_slot) == spelling && find_token(spelling) == word_slot);
  if (counts_for_.size() <= static_cast<size_t>(word_slot))
    counts_for_.resize(static_cast<size_t>(word_slot) + 1, kNoSlot);
  counts_for_[static_cast<size_t>(word_slot)] = slot;
  aliases_.push_back({words_[static_cast<size_t>(word_slot)], slot});
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
                              aliases_.capacity() * sizeof(AliasRef) + counts_for_.capacity() * sizeof(Slot));
}

}  // namespace streamvec
