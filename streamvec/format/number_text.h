// Numbers as text, fast and exact: a float32 written here and read here is the same float32, bit for bit.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace streamvec {

inline bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

// The shortest digits that lead back to the same value.
inline void append_float(std::string& text, float value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value);
  text.append(digits, end.ptr);
}

// Reads a number at `begin` that ends with a blank or at `end`; returns where it ends, or nullptr when there is none.
// "nan" and "inf" are numbers; what is too large becomes infinite, what is too small 0.
inline const char* parse_float(const char* begin, const char* end, float& value) {
  if (begin != end && *begin == '+') ++begin;
  const auto parsed = std::from_chars(begin, end, value);
  if (parsed.ec == std::errc::invalid_argument || (parsed.ptr != end && !is_blank(*parsed.ptr))) return nullptr;
  if (parsed.ec == std::errc::result_out_of_range) value = std::strtof(std::string(begin, parsed.ptr).c_str(), nullptr);
  return parsed.ptr;
}

// A whole field of digits; nothing when it is anything else or larger than int64_t.
inline std::optional<int64_t> parse_whole(std::string_view text) {
  int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

}  // namespace streamvec
