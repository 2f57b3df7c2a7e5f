// What the tokeniser does with each code point: its class, and what normalisation makes of it.
// Answers come from ICU once per code point and are kept in a table, so that text without combining marks needs ICU
// only for code points met for the first time.
#pragma once

#include <unicode/unorm2.h>
#include <unicode/utypes.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/text/tokenizer.h"

namespace streamvec {

enum class CharClass : uint8_t {
  kUnknown,  // not looked up yet
  kSeparator,
  kLineEnd,
  kLetter,
  kHangul,  // a letter beside which an apostrophe is a quotation mark
  kDigit,
  kApostrophe,  // stays between two letters or digits but Hangul
  kUnderscore,  // stays between two letters or digits
  kPoint,       // stays between two digits
  kExtend,      // marks: go on with a word, start none
  kUnspaced,    // letters of a script without spaces
};

// The class of a code point of normalised text.
CharClass char_class(UChar32 c, TokenizerOptions::Split split);

// A byte that says all about a code point of text as written.
class CharInfo {
 public:
  static constexpr uint8_t kChanged = 16;   // replacement() is not the code point itself
  static constexpr uint8_t kMixed = 32;     // becomes code points of several classes: normalise it by itself
  static constexpr uint8_t kAttached = 64;  // cannot be normalised without what stands before it (or it vanishes)
  static constexpr uint8_t kAlone = 128;    // exempt from normalisation: what follows is normalised without it

  CharInfo() = default;
  CharInfo(CharClass cls, uint8_t flags) : bits_(static_cast<uint8_t>(cls) | flags) {}
  CharClass cls() const { return static_cast<CharClass>(bits_ & 15); }
  bool has(uint8_t flag) const { return (bits_ & flag) != 0; }
  // Letters whose bytes stay as they are.
  bool plain_letter() const {
    return *this == CharInfo(CharClass::kLetter, 0) || *this == CharInfo(CharClass::kHangul, 0);
  }
  bool operator==(const CharInfo&) const = default;

 private:
  uint8_t bits_ = 0;
};

// Not thread-safe: the table fills as it is asked.
class CodePoints {
 public:
  explicit CodePoints(const TokenizerOptions& options);

  CharInfo info(UChar32 c) {
    if (c >= kTableSize) return describe(c);
    CharInfo& known = table_[static_cast<size_t>(c)];
    if (known.cls() == CharClass::kUnknown) known = describe(c);
    return known;
  }
  // The UTF-8 that stands for `c` when nothing attached follows. REQUIRES: info(c) has kChanged. Ends with the next
  // call.
  std::string_view replacement(UChar32 c);

  // Appends `c` as normalize() wants it: vanishing code points do not appear.
  void append(UChar32 c, std::u16string& segment) const;
  // A segment starts with a code point that is not attached; the rest are. The answer ends with the next call.
  std::u16string_view normalize(std::u16string_view segment);

 private:
  static constexpr UChar32 kTableSize = 0x20000;  // both planes that living scripts and emoji are in

  CharInfo describe(UChar32 c);
  bool vanishes(UChar32 c) const;
  bool exempt(UChar32 c) const;
  std::u16string_view map_one(UChar32 c);
  CharInfo describe_mapped(UChar32 c, std::u16string_view mapped, uint8_t flags);

  TokenizerOptions options_;
  const UNormalizer2* normalizer_ = nullptr;  // null: no normalisation
  std::vector<CharInfo> table_;
  std::vector<uint16_t> replacement_index_;  // into replacements_, for code points of the table
  std::vector<std::string> replacements_;
  std::string rare_;  // the replacement of a code point beyond the table
  std::u16string one_, normalized_;
};

void append_utf8(UChar32 c, std::string& out);

}  // namespace streamvec
