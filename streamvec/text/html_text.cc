#include "streamvec/text/html_text.h"

#include <unicode/utf8.h>

#include <array>

#include "streamvec/text/code_points.h"
#include "streamvec/text/html_entities.h"

namespace streamvec {
namespace {

enum ByteKind : uint8_t { kPlain, kSpace, kLineFeed, kAmpersand, kControl, kComma, kStop, kHigh };

constexpr std::array<uint8_t, 256> make_kinds() {
  std::array<uint8_t, 256> kinds = {};
  for (int i = 0; i < 0x20; ++i) kinds[static_cast<size_t>(i)] = kControl;
  for (int i = 0x80; i < 0x100; ++i) kinds[static_cast<size_t>(i)] = kHigh;
  for (const int c : {' ', '\t', '\v', '\f', '\r'}) kinds[static_cast<size_t>(c)] = kSpace;
  kinds['\n'] = kLineFeed;
  kinds['&'] = kAmpersand;
  kinds[0x7F] = kControl;
  kinds[','] = kinds[';'] = kComma;
  kinds['.'] = kinds['!'] = kinds['?'] = kStop;
  return kinds;
}
constexpr std::array<uint8_t, 256> kKinds = make_kinds();

uint8_t kind_of(char c) {
  return kKinds[static_cast<unsigned char>(c)];
}

bool is_wide(char32_t c) {
  return (c >= 0x3041 && c <= 0x9FFF) || (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0x20000 && c <= 0x3FFFF);
}

bool is_comma(char32_t c) {
  return c == 0x3001 || c == 0xFF0C || c == 0x60C || c == 0xFF1B;
}

bool is_stop(char32_t c) {
  return c == 0x3002 || c == 0xFF01 || c == 0xFF1F || c == 0x2026 || c == 0x964 || c == 0x61F || c == 0x6D4;
}

bool is_blank(char32_t c) {
  return c == 0xA0 || c == 0x3000 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x85 || c == 0xFEFF;
}

// Without a width or a meaning for words: soft hyphen, zero-width space, direction marks.
bool is_invisible(char32_t c) {
  return c == 0xAD || c == 0x200B || c == 0x200E || c == 0x200F || c == 0x2060 || (c >= 0x202A && c <= 0x202E) ||
         c < 0x20 || (c >= 0x7F && c < 0xA0);
}

}  // namespace

void TextFlow::start(std::string& out) {
  out_ = &out;
  begin_ = out.size();
  space_ = kNone;
  measure_ = {};
}

void TextFlow::flush_space() {
  if (space_ == kNone) return;
  if (out_->size() != begin_) *out_ += space_;
  space_ = kNone;
}

void TextFlow::append(std::string_view run, bool preformatted, bool in_link) {
  const char* at = run.data();
  const char* const end = at + run.size();
  const int32_t before = measure_.length;
  while (at != end) {
    const char* const word = at;
    while (at != end && kind_of(*at) == kPlain) ++at;
    if (at != word) {
      flush_space();
      out_->append(word, static_cast<size_t>(at - word));
      measure_.length += static_cast<int32_t>(at - word);
      continue;
    }
    switch (kind_of(*at)) {
      case kSpace:
        if (space_ == kNone) space_ = ' ';
        ++at;
        break;
      case kLineFeed:
        if (preformatted) space_ = '\n';
        if (space_ == kNone) space_ = ' ';
        ++at;
        break;
      case kComma:
      case kStop:
        ++(kind_of(*at) == kComma ? measure_.commas : measure_.stops);
        flush_space();
        *out_ += *at++;
        ++measure_.length;
        break;
      case kAmpersand: {
        const CharacterReference found = read_reference({at, static_cast<size_t>(end - at)});
        if (found.length == 0) {
          append_code_point('&', "&");
          ++at;
        } else {
          std::string bytes;
          append_utf8(static_cast<UChar32>(found.code_point), bytes);
          append_code_point(found.code_point, bytes);
          at += found.length;
        }
        break;
      }
      case kHigh: {
        UChar32 c;
        int32_t used = 0;
        const auto left = static_cast<int32_t>(end - at < 4 ? end - at : 4);
        U8_NEXT(reinterpret_cast<const uint8_t*>(at), used, left, c);
        append_code_point(c < 0 ? 0xFFFD : static_cast<char32_t>(c),
                          c < 0 ? "\uFFFD" : std::string_view(at, static_cast<size_t>(used)));
        at += used;
        break;
      }
      default:
        ++at;
    }
  }
  if (in_link) measure_.link_length += measure_.length - before;
}

void TextFlow::append_code_point(char32_t c, std::string_view bytes) {
  if (c == ' ' || c == '\t' || c == '\n' || is_blank(c)) {
    if (space_ == kNone) space_ = ' ';
    return;
  }
  if (is_invisible(c)) return;
  if (is_comma(c)) ++measure_.commas;
  if (is_stop(c)) ++measure_.stops;
  flush_space();
  out_->append(bytes);
  measure_.length += is_wide(c) ? 2 : 1;
}

std::string flat_text(std::string_view text) {
  std::string out;
  TextFlow flow;
  flow.start(out);
  flow.append(text, false, false);
  return out;
}

}  // namespace streamvec
