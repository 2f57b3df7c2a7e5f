// Words and their slots: a slot is a row of the model's tables. Slots are dense, 0 .. size() - 1, and never change
// while the vocabulary lives. After a counting pass they go by falling count, ties by the word's bytes; a streamed
// vocabulary gives them in order of admission.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"

namespace streamvec {

using Slot = int32_t;
constexpr Slot kNoSlot = -1;

// Reading is thread-safe while nobody adds. Words are any bytes but the empty string.
class Vocabulary {
 public:
  Slot find(std::string_view word) const;  // kNoSlot when it is not there
  std::string_view word(Slot slot) const;
  int64_t count(Slot slot) const;  // occurrences seen so far
  int32_t size() const;
  int64_t tokens() const;  // the sum of all counts

  // Appends a word with its count and returns its slot. REQUIRES: word is not empty and not there yet.
  Slot add(std::string_view word, int64_t count);
  void add_count(Slot slot, int64_t count);
};

}  // namespace streamvec
