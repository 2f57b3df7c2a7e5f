#include "streamvec/text/language.h"

#include <cld2/public/compact_lang_det.h>

#include <algorithm>
#include <utility>

namespace streamvec {
namespace {

constexpr size_t kBytesMax = 4 * 1'024;  // more does not change the answer

std::string_view start_of(std::string_view utf8) {
  if (utf8.size() <= kBytesMax) return utf8;
  size_t end = kBytesMax;
  while (end > 0 && (static_cast<unsigned char>(utf8[end]) & 0xC0) == 0x80) --end;  // not within a character
  return utf8.substr(0, end);
}

// CLD2 looks at what follows the text, and crashes when that is not UTF-8: a copy with zeros behind it.
CLD2::Language detect(std::string_view utf8, bool& reliable, int& valid_bytes) {
  constexpr size_t kZeros = 16;
  std::string text;
  text.reserve(utf8.size() + kZeros);
  text.append(utf8).append(kZeros, '\0');
  return CLD2::DetectLanguageCheckUTF8(text.data(), static_cast<int>(utf8.size()), /*is_plain_text=*/true, &reliable,
                                       &valid_bytes);
}

bool is_code_of(std::string_view code, std::string_view wanted) {
  return code == wanted || (wanted == "zh" && code == "zh-Hant");
}

}  // namespace

LanguageGuess guess_language(std::string_view utf8) {
  utf8 = start_of(utf8);
  bool reliable = false;
  int valid_bytes = 0;
  CLD2::Language language = detect(utf8, reliable, valid_bytes);
  if (valid_bytes < static_cast<int>(utf8.size()))
    language = detect(utf8.substr(0, static_cast<size_t>(valid_bytes)), reliable, valid_bytes);
  if (language == CLD2::UNKNOWN_LANGUAGE || language == CLD2::TG_UNKNOWN_LANGUAGE) return {};
  return {CLD2::LanguageCode(language), reliable};
}

std::string detect_language(std::string_view utf8) {
  LanguageGuess guess = guess_language(utf8);
  return guess.reliable ? std::move(guess.code) : std::string();
}

Result<LanguageFilter> LanguageFilter::create(Options options) {
  for (const std::string& code : options.wanted) {
    const CLD2::Language language = CLD2::GetLanguageFromName(code.c_str());
    if (language == CLD2::UNKNOWN_LANGUAGE || CLD2::LanguageCode(language) != code)
      return error(Code::kInvalidArgument, "language \"", code,
                   "\" is not known; try a code of two letters such as en, ko or de");
  }
  return LanguageFilter(std::move(options));
}

bool LanguageFilter::passes(std::string_view utf8) const {
  if (options_.wanted.empty()) return true;
  const LanguageGuess guess = guess_language(utf8);
  if (!guess.reliable) return options_.keep_unsure;
  return std::any_of(options_.wanted.begin(), options_.wanted.end(),
                     [&](const std::string& wanted) { return is_code_of(guess.code, wanted); });
}

}  // namespace streamvec
