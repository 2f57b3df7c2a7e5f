#include "streamvec/text/code_points.h"

#include <unicode/uchar.h>
#include <unicode/uscript.h>
#include <unicode/ustring.h>
#include <unicode/utf16.h>
#include <unicode/utf8.h>

#include <optional>

namespace streamvec {
namespace {

using Split = TokenizerOptions::Split;

constexpr UChar32 kZeroWidthSpace = 0x200B;  // parts words in scripts without spaces, though NFKC_Casefold removes it
constexpr UChar32 kApostrophe = 0x2019;
// NFKC would take apart what dictionaries and readers know whole ...
constexpr UChar32 kThaiAm = 0x0E33, kLaoAm = 0x0EB3;
// ... and turn single Korean letters ("ㅋㅋ", "ㅠㅠ") into parts of syllables, which merge with their neighbours.
constexpr UChar32 kHangulLetterFirst = 0x3131, kHangulLetterLast = 0x318E;

// ICU's dictionaries cover Han, kana, Thai, Lao, Khmer and Burmese; other scripts of complex context stay uncut.
bool is_unspaced(UChar32 c, UScriptCode script) {
  return script == USCRIPT_HAN || uscript_hasScript(c, USCRIPT_HIRAGANA) || uscript_hasScript(c, USCRIPT_KATAKANA) ||
         u_getIntPropertyValue(c, UCHAR_LINE_BREAK) == U_LB_COMPLEX_CONTEXT;
}

CharClass letter_class(UChar32 c) {
  UErrorCode status = U_ZERO_ERROR;
  const UScriptCode script = uscript_getScript(c, &status);
  if (script == USCRIPT_HANGUL) return CharClass::kHangul;
  return is_unspaced(c, script) ? CharClass::kUnspaced : CharClass::kLetter;
}

// The characters whose general category does not settle what they do in a word; fullwidth forms go with their kin.
std::optional<CharClass> particular_class(UChar32 c) {
  switch (c) {
    case '\n':
    case '\r':
    case 0x85:
    case 0x2028:
    case 0x2029:
      return CharClass::kLineEnd;
    case '\'':
    case kApostrophe:
    case 0xFF07:
      return CharClass::kApostrophe;
    case '_':
    case 0xFF3F:
    case 0x05F3:
    case 0x05F4:
      return CharClass::kUnderscore;
    case '.':
    case 0xFF0E:
    case ',':
    case 0xFF0C:
      return CharClass::kPoint;
    case kZeroWidthSpace:
      return CharClass::kSeparator;
    default:
      return std::nullopt;
  }
}

CharClass char_class_words(UChar32 c) {
  if (const auto particular = particular_class(c)) return *particular;
  const uint32_t category = U_GET_GC_MASK(c);
  if (category & U_GC_ND_MASK) return CharClass::kDigit;
  if (category & (U_GC_L_MASK | U_GC_N_MASK)) return letter_class(c);
  if (category & (U_GC_M_MASK | U_GC_CF_MASK)) return CharClass::kExtend;
  return CharClass::kSeparator;
}

CharClass char_class_whitespace(UChar32 c) {
  if (c == '\n') return CharClass::kLineEnd;
  return c == ' ' || (c >= '\t' && c <= '\r') ? CharClass::kSeparator : CharClass::kLetter;
}

bool parts_words(CharClass cls) {
  return cls == CharClass::kSeparator || cls == CharClass::kLineEnd;
}

std::string to_utf8(std::u16string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    UChar32 c;
    U16_NEXT(text.data(), i, text.size(), c);
    append_utf8(c, out);
  }
  return out;
}

// ICU's data are part of its library: an instance that is missing is a broken build, not bad input.
const UNormalizer2* find_normalizer(const TokenizerOptions& options) {
  if (!options.nfkc) return nullptr;
  UErrorCode status = U_ZERO_ERROR;
  const UNormalizer2* normalizer =
      options.fold_case ? unorm2_getNFKCCasefoldInstance(&status) : unorm2_getNFKCInstance(&status);
  STREAMVEC_CHECK(U_SUCCESS(status));
  return normalizer;
}

}  // namespace

void append_utf8(UChar32 c, std::string& out) {
  char bytes[U8_MAX_LENGTH];
  int32_t length = 0;
  U8_APPEND_UNSAFE(bytes, length, c);
  out.append(bytes, static_cast<size_t>(length));
}

CharClass char_class(UChar32 c, Split split) {
  return split == Split::kWords ? char_class_words(c) : char_class_whitespace(c);
}

CodePoints::CodePoints(const TokenizerOptions& options)
    : options_(options), normalizer_(find_normalizer(options)), table_(kTableSize), replacement_index_(kTableSize) {}

bool CodePoints::vanishes(UChar32 c) const {
  if (c == 0) return true;
  if (options_.split == Split::kWords && c == kZeroWidthSpace) return false;
  return options_.nfkc && u_hasBinaryProperty(c, UCHAR_DEFAULT_IGNORABLE_CODE_POINT);
}

bool CodePoints::exempt(UChar32 c) const {
  return options_.nfkc && (c == kThaiAm || c == kLaoAm || (c >= kHangulLetterFirst && c <= kHangulLetterLast));
}

void CodePoints::append(UChar32 c, std::u16string& segment) const {
  if (vanishes(c)) return;
  if (c == kApostrophe && options_.nfkc && options_.split == Split::kWords) c = '\'';
  char16_t units[U16_MAX_LENGTH];
  int32_t length = 0;
  U16_APPEND_UNSAFE(units, length, c);
  segment.append(units, static_cast<size_t>(length));
}

std::u16string_view CodePoints::normalize(std::u16string_view segment) {
  if (normalizer_ == nullptr && !options_.fold_case) return segment;
  const auto length = static_cast<int32_t>(segment.size());
  // No code point becomes more than 18 of the normalised text (U+FDFA), so that one try is enough for short segments.
  normalized_.resize(segment.size() * 3 + 32);
  for (;;) {
    UErrorCode status = U_ZERO_ERROR;
    const auto room = static_cast<int32_t>(normalized_.size());
    const int32_t got =
        normalizer_ != nullptr
            ? unorm2_normalize(normalizer_, segment.data(), length, normalized_.data(), room, &status)
            : u_strFoldCase(normalized_.data(), room, segment.data(), length, U_FOLD_CASE_DEFAULT, &status);
    if (status != U_BUFFER_OVERFLOW_ERROR) {
      STREAMVEC_CHECK(U_SUCCESS(status));
      return {normalized_.data(), static_cast<size_t>(got)};
    }
    normalized_.resize(static_cast<size_t>(got));
  }
}

std::u16string_view CodePoints::map_one(UChar32 c) {
  one_.clear();
  append(c, one_);
  return exempt(c) ? std::u16string_view(one_) : normalize(one_);
}

CharInfo CodePoints::describe(UChar32 c) {
  const CharClass written = char_class(c, options_.split);
  if (vanishes(c)) return {CharClass::kExtend, CharInfo::kAttached | CharInfo::kMixed};
  // A separator is one whatever normalisation would spell it as ("™" is not "tm"). White space is where kWhitespace
  // cuts.
  if (parts_words(written)) return {written, 0};
  uint8_t flags = 0;
  const std::u16string_view mapped = map_one(c);
  if (exempt(c))
    flags |= CharInfo::kAlone;
  else if (normalizer_ != nullptr && !unorm2_hasBoundaryBefore(normalizer_, c))
    flags |= CharInfo::kAttached;
  return describe_mapped(c, mapped, flags);
}

CharInfo CodePoints::describe_mapped(UChar32 c, std::u16string_view mapped, uint8_t flags) {
  std::optional<CharClass> common;
  bool mixed = mapped.empty();
  for (size_t i = 0; i < mapped.size();) {
    UChar32 part;
    U16_NEXT(mapped.data(), i, mapped.size(), part);
    const CharClass cls = char_class(part, options_.split);
    // "½" would become "1⁄2" and make "3½" the words 31 and 2: such numbers part words too.
    if (options_.split == Split::kWords && parts_words(cls)) return {CharClass::kSeparator, 0};
    mixed |= common.has_value() && *common != cls;
    common = cls;
  }
  if (mixed) return {char_class(c, options_.split), static_cast<uint8_t>(flags | CharInfo::kMixed)};
  std::string itself;
  append_utf8(c, itself);
  const std::string utf8 = to_utf8(mapped);
  if (utf8 == itself) return {*common, flags};
  if (c >= kTableSize) {
    rare_ = utf8;
  } else {
    replacements_.push_back(utf8);
    replacement_index_[static_cast<size_t>(c)] = static_cast<uint16_t>(replacements_.size() - 1);
  }
  return {*common, static_cast<uint8_t>(flags | CharInfo::kChanged)};
}

std::string_view CodePoints::replacement(UChar32 c) {
  if (c < kTableSize) return replacements_[replacement_index_[static_cast<size_t>(c)]];
  describe(c);
  return rare_;
}

}  // namespace streamvec
