// Walking over bytes that should be UTF-8.
#pragma once

#include <unicode/utf8.h>

#include <cstdint>
#include <cstring>
#include <string_view>

namespace streamvec {

// The end of the run of ASCII that starts at `at`.
inline size_t skip_ascii(std::string_view bytes, size_t at) {
  uint64_t word;
  for (; at + sizeof(word) <= bytes.size(); at += sizeof(word)) {
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    if ((word & 0x8080808080808080ULL) != 0) break;
  }
  while (at < bytes.size() && static_cast<unsigned char>(bytes[at]) < 0x80) ++at;
  return at;
}

// Calls on_part(begin, end, well_formed) for each run of ASCII, each sequence and each ill-formed part, in order.
template <typename OnPart>
void for_each_part(std::string_view bytes, const OnPart& on_part) {
  for (size_t at = 0; at < bytes.size();) {
    const size_t begin = at;
    at = skip_ascii(bytes, at);
    if (at != begin) {
      on_part(begin, at, true);
      continue;
    }
    UChar32 c;
    U8_NEXT(bytes.data(), at, bytes.size(), c);
    on_part(begin, at, c >= 0);
  }
}

}  // namespace streamvec
