// Header fields as mail, HTTP and WARC have them.
#pragma once

#include <algorithm>
#include <cctype>
#include <string_view>

namespace streamvec {

inline std::string_view trim_blanks(std::string_view text) {
  while (!text.empty() && std::string_view(" \t\r\n").find(text.front()) != std::string_view::npos)
    text.remove_prefix(1);
  while (!text.empty() && std::string_view(" \t\r\n").find(text.back()) != std::string_view::npos)
    text.remove_suffix(1);
  return text;
}

// In any case of letters.
inline bool same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](unsigned char x, unsigned char y) {
           return std::tolower(x) == std::tolower(y);
         });
}

// Where the header that `text` begins with ends, after its empty line (CRLF or LF); npos when that is not there.
inline size_t header_end(std::string_view text) {
  for (size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
    if (text.substr(at + 1, 1) == "\n") return at + 2;
    if (text.substr(at + 1, 2) == "\r\n") return at + 3;
  }
  return std::string_view::npos;
}

// The value of the first field `name` after the header's first line; "" when there is none. Folded lines are left out.
inline std::string_view header_field(std::string_view header, std::string_view name) {
  for (size_t at = header.find('\n'); at != std::string_view::npos; at = header.find('\n', at + 1)) {
    const std::string_view line = header.substr(at + 1, header.find('\n', at + 1) - at - 1);
    const size_t colon = line.find(':');
    if (colon != std::string_view::npos && same_name(trim_blanks(line.substr(0, colon)), name))
      return trim_blanks(line.substr(colon + 1));
  }
  return {};
}

}  // namespace streamvec
