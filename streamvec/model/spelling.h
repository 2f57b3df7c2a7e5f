// A word as the character models read it: a row of numbers, each a row of a table of characters.
// A character is a code point; a Hangul syllable is two or three, its jamo. What the table has no row for (it is full,
// or the code point is unassigned, private or no scalar value at all) is spelled by its bytes, so that every string has
// a spelling. A begin mark stands before each word and an end mark behind it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "streamvec/core/status.h"

namespace streamvec {

using CharacterId = uint16_t;
using Spelling = std::vector<CharacterId>;

// Appends the characters of `word` as code points, jamo for Hangul; a byte that is no UTF-8 is 0x110000 + the byte.
void append_characters(std::string_view word, std::u32string& out);

// Those of them that may have a row of their own.
void append_own_characters(std::string_view word, std::u32string& out);

// Numbers never change once given: 0 the begin mark, 1 the end mark, then the 256 bytes, then characters as they were
// admitted. spell() is thread-safe while nobody admits.
class CharacterTable {
 public:
  static constexpr CharacterId kBegin = 0, kEnd = 1, kFirstByte = 2;
  static constexpr int32_t kFixed = 258;  // marks and bytes
  struct Options {
    int32_t size_max = 8'192;  // rows in all, kFixed .. 65,536; what comes later is spelled by bytes
    int32_t length_max = 256;  // a longer spelling loses its middle, so that beginning and end still count; >= 2
    bool begin_mark = true;
    bool end_mark = true;
  };

  CharacterTable() : CharacterTable(Options{}) {}
  // REQUIRES: the bounds above.
  explicit CharacterTable(const Options& options);

  // Gives every character of `word` that may have a row and has none the next one, while there are any.
  void admit(std::string_view word);
  // Likewise of characters that append_own_characters() has given.
  void admit(std::u32string_view characters);
  // Replaces `out`. Only marks for the empty string.
  void spell(std::string_view word, Spelling& out) const;

  int32_t size() const { return kFixed + static_cast<int32_t>(admitted_.size()); }
  const Options& options() const { return options_; }

  // What a checkpoint keeps: the characters admitted, in order.
  std::span<const char32_t> admitted() const { return admitted_; }
  // Takes the place of what was admitted. kDataLoss, and nothing is changed, for characters that cannot have been:
  // twice the same, unassigned, too many.
  Status restore(std::span<const char32_t> admitted);

 private:
  void admit(char32_t character);
  void append(char32_t character, std::string_view bytes, Spelling& out) const;

  Options options_;
  std::vector<char32_t> admitted_;
  std::unordered_map<char32_t, CharacterId> ids_;
};

}  // namespace streamvec
