// Words and their slots: a slot is a row of the model's tables. Slots are dense, 0 .. size() - 1, and never change
// while the vocabulary lives. After a counting pass they go by falling count, ties by the word's bytes; a streamed
// vocabulary gives them in order of admission.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/vocab/word_table.h"

namespace streamvec {

using Slot = int32_t;
constexpr Slot kNoSlot = -1;
static_assert(kNoSlot == WordTable::kNone);

// Several spellings may lead to one slot: where words are stemmed or turned into lemmas, each spelling met in the text
// is an alias of its form, so that training looks up the raw token with one probe and needs no stemmer. A spelling may
// be a word itself, too: "saw", the form of "saws", is a spelling of "see". By name it is then the word, in a text the
// spelling. find(word(slot)) == slot always. Words and aliases are any bytes, 1 to kWordBytesMax of them.
// Reading is thread-safe while nobody adds. Copyable. A word or alias takes about 60 bytes, its own bytes included.
class Vocabulary {
 public:
  static constexpr size_t kWordBytesMax = WordTable::kWordBytesMax;
  struct Alias {
    std::string_view spelling;
    Slot slot;
  };

  Slot find(std::string_view word) const { return table_.find(word); }  // kNoSlot when it is not there
  // The slot that a token of a text counts for: another's than find() gives for a word that is an alias, too.
  Slot find_token(std::string_view token) const;
  // The same for many tokens at once, with prefetching. REQUIRES: slots.size() == tokens.size().
  void find(std::span<const std::string_view> tokens, std::span<Slot> slots) const;

  // The view is valid until the next add.
  std::string_view word(Slot slot) const { return table_.bytes(words_[static_cast<size_t>(slot)]); }
  int64_t count(Slot slot) const { return counts_[static_cast<size_t>(slot)]; }  // occurrences seen so far
  std::span<const int64_t> counts() const { return counts_; }                    // by slot
  int32_t size() const { return static_cast<int32_t>(words_.size()); }
  int64_t tokens() const { return tokens_; }  // the sum of all counts

  // Appends a word with its count and returns its slot. REQUIRES: word and no alias of that spelling is there yet.
  Slot add(std::string_view word, int64_t count);
  void add_count(Slot slot, int64_t count);

  // Makes `spelling` lead to `slot`. REQUIRES: the slot exists, its word is another, no alias of that spelling is
  // there.
  void add_alias(std::string_view spelling, Slot slot);
  int64_t alias_count() const { return static_cast<int64_t>(aliases_.size()); }
  Alias alias(int64_t index) const;  // in the order they were added

  // Makes room for `words` more words or aliases of `bytes` bytes in all.
  void reserve(int64_t words, int64_t bytes);
  int64_t memory_bytes() const;

 private:
  struct AliasRef {
    WordTable::Ref spelling;
    Slot slot;
  };
  Slot counts_for(Slot slot, std::string_view token) const;

  WordTable table_;
  std::vector<WordTable::Ref> words_;
  std::vector<int64_t> counts_;
  std::vector<AliasRef> aliases_;
  std::vector<Slot> counts_for_;  // by slot, of words that are aliases: whose; kNoSlot for others and beyond its end
  int64_t tokens_ = 0;
};

}  // namespace streamvec
