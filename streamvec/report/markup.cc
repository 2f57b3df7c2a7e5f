#include "streamvec/report/markup.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>

namespace streamvec {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Bytes of the UTF-8 sequence that `text` begins with; 0 when it begins with none. Surrogates and overlong forms are
// none, and neither are the two last code points of a plane, which XML forbids.
size_t sequence_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (byte(0) < 0x80) return 1;
  const size_t length = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : byte(0) >= 0xC2 ? 2 : 0;
  if (length == 0 || byte(0) > 0xF4 || text.size() < length) return 0;
  uint32_t code = byte(0) & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3F);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return code < kLeast[length] || surrogate || code > 0x10FFFF || (code & 0xFFFE) == 0xFFFE ? 0 : length;
}

std::string_view entity_of(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

// "1234567.5" as "1,234,567.5".
std::string with_commas(const std::string& number) {
  std::string digits = number;
  const size_t begin = digits.starts_with('-') ? 1 : 0;
  const size_t end = std::min(digits.find('.'), digits.size());
  for (size_t at = end; at > begin + 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    const char c = text[0];
    const bool control = static_cast<uint8_t>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r';
    if (length == 0 || control || c == 0x7F)
      out += kReplacement;
    else if (const std::string_view entity = entity_of(c); !entity.empty())
      out += entity;
    else
      out += text.substr(0, length);
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

std::string number_text(double value, int digits) {
  if (!std::isfinite(value)) return "–";
  if (value == 0) return "0";
  const double size = std::abs(value);
  char text[64];
  if (size >= 1e15 || size < 1e-4) {
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    return text;
  }
  const int decimals = std::max(0, digits - 1 - static_cast<int>(std::floor(std::log10(size))));
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  std::string number = text;
  if (number.find('.') != std::string::npos) {
    number.erase(number.find_last_not_of('0') + 1);
    if (number.back() == '.') number.pop_back();
  }
  return with_commas(number);
}

}  // namespace streamvec
