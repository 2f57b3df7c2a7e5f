#include "streamvec/model/spelling.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>

namespace streamvec {
namespace {

constexpr char32_t kNotACharacter = 0xFFFFFFFF;
constexpr char32_t kBytes = 0x110000;

// Unicode 15, section 3.12: syllables are numbered by leading consonant, vowel and trailing consonant.
constexpr char32_t kSyllables = 0xAC00, kLeading = 0x1100, kVowels = 0x1161, kTrailing = 0x11A7;
constexpr char32_t kVowelCount = 21, kTrailingCount = 28, kSyllableCount = 19 * kVowelCount * kTrailingCount;

bool may_have_row(char32_t c) {
  if (c > 0x10FFFF) return false;
  const int8_t type = u_charType(static_cast<UChar32>(c));
  return type != U_UNASSIGNED && type != U_PRIVATE_USE_CHAR && type != U_SURROGATE;
}

// Calls on_character(c, bytes) for each character; c is kNotACharacter for what is not UTF-8.
template <typename OnCharacter>
void for_each_character(std::string_view word, const OnCharacter& on_character) {
  for (size_t at = 0; at < word.size();) {
    const size_t begin = at;
    UChar32 read;
    U8_NEXT(word.data(), at, word.size(), read);
    const std::string_view bytes = word.substr(begin, at - begin);
    const char32_t c = read < 0 ? kNotACharacter : static_cast<char32_t>(read);
    const char32_t syllable = c - kSyllables;
    if (syllable >= kSyllableCount) {
      on_character(c, bytes);
      continue;
    }
    on_character(kLeading + syllable / (kVowelCount * kTrailingCount), bytes);
    on_character(kVowels + syllable / kTrailingCount % kVowelCount, bytes);
    if (syllable % kTrailingCount != 0) on_character(kTrailing + syllable % kTrailingCount, bytes);
  }
}

// The UTF-8 of a jamo, whose bytes in the word are those of its syllable.
std::string_view own_bytes(char32_t c, std::string_view bytes, char (&buffer)[U8_MAX_LENGTH]) {
  if (c < kLeading || c > kTrailing + kTrailingCount) return bytes;
  size_t length = 0;
  U8_APPEND_UNSAFE(buffer, length, c);
  return {buffer, length};
}

}  // namespace

void append_characters(std::string_view word, std::u32string& out) {
  for_each_character(word, [&](char32_t c, std::string_view bytes) {
    if (c != kNotACharacter) return out.push_back(c);
    for (const char byte : bytes) out.push_back(kBytes + static_cast<unsigned char>(byte));
  });
}

void append_own_characters(std::string_view word, std::u32string& out) {
  for_each_character(word, [&](char32_t c, std::string_view) {
    if (may_have_row(c)) out.push_back(c);
  });
}

CharacterTable::CharacterTable(const Options& options) : options_(options) {
  STREAMVEC_CHECK(options.size_max >= kFixed && options.size_max <= 65'536);
  STREAMVEC_CHECK(options.length_max >= 2);
}

void CharacterTable::admit(std::string_view word) {
  for_each_character(word, [&](char32_t c, std::string_view) {
    if (may_have_row(c)) admit(c);
  });
}

void CharacterTable::admit(std::u32string_view characters) {
  for (const char32_t c : characters) admit(c);
}

void CharacterTable::admit(char32_t character) {
  if (size() >= options_.size_max || !ids_.emplace(character, static_cast<CharacterId>(size())).second) return;
  admitted_.push_back(character);
}

void CharacterTable::append(char32_t character, std::string_view bytes, Spelling& out) const {
  const auto found = ids_.find(character);
  if (found != ids_.end()) return out.push_back(found->second);
  char buffer[U8_MAX_LENGTH];
  for (const char byte : own_bytes(character, bytes, buffer))
    out.push_back(static_cast<CharacterId>(kFirstByte + static_cast<unsigned char>(byte)));
}

void CharacterTable::spell(std::string_view word, Spelling& out) const {
  out.clear();
  if (options_.begin_mark) out.push_back(kBegin);
  for_each_character(word, [&](char32_t c, std::string_view bytes) { append(c, bytes, out); });
  if (options_.end_mark) out.push_back(kEnd);
  const auto length_max = static_cast<size_t>(options_.length_max);
  if (out.size() <= length_max) return;
  const size_t head = length_max / 2;
  out.erase(out.begin() + static_cast<ptrdiff_t>(head), out.end() - static_cast<ptrdiff_t>(length_max - head));
}

Status CharacterTable::restore(std::span<const char32_t> admitted) {
  if (static_cast<int64_t>(admitted.size()) + kFixed > options_.size_max)
    return error(Code::kDataLoss, admitted.size(), " characters are stored, ", options_.size_max - kFixed,
                 " can have been admitted");
  std::unordered_map<char32_t, CharacterId> ids;
  for (const char32_t c : admitted) {
    const bool fresh = ids.emplace(c, static_cast<CharacterId>(kFixed + static_cast<int32_t>(ids.size()))).second;
    if (!fresh || !may_have_row(c))
      return error(Code::kDataLoss, "character ", static_cast<uint32_t>(c), " of the stored table ",
                   fresh ? "cannot have a row" : "is there twice");
  }
  admitted_.assign(admitted.begin(), admitted.end());
  ids_ = std::move(ids);
  return {};
}

}  // namespace streamvec
