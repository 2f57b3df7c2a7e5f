#include "streamvec/source/piece.h"

#include <algorithm>
#include <cstring>

namespace streamvec {
namespace {

using namespace std::string_view_literals;

bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

// The greatest place up to `at` that does not lie inside a UTF-8 sequence; bytes that are no UTF-8 are cut anywhere.
// REQUIRES: at < text.size().
size_t character_boundary(std::string_view text, size_t at) {
  for (size_t back = 0; back < 4 && back < at; ++back)
    if (!is_continuation(text[at - back])) return at - back;
  return at;
}

// Bytes that no text has: control characters but tab, line ends, form feed and escape (terminal colours).
bool is_control(char byte) {
  const auto value = static_cast<unsigned char>(byte);
  return (value < 0x20 && "\t\n\v\f\r\x1b"sv.find(byte) == std::string_view::npos) || value == 0x7f;
}

struct Format {
  size_t offset;
  std::string_view bytes, description;
};
constexpr Format kFormats[] = {
    {257, "ustar"sv, "a tar archive; unpack it and name its directory"sv},
    {0, "PK\x03\x04"sv, "a zip archive or office document; unpack it or save it as plain text"sv},
    {0, "%PDF-"sv, "a PDF; turn it into text with pdftotext"sv},
    {0,
     "\x7f"
     "ELF"sv,
     "a program"sv},
    {0, "\x89PNG"sv, "an image"sv},
    {0, "\x04\x22\x4d\x18"sv, "lz4-compressed; unpack it with lz4 -d"sv},
    {0, "7z\xbc\xaf\x27\x1c"sv, "a 7z archive; unpack it first"sv},
    {0, "SQLite format 3\0"sv, "an SQLite database"sv},
};

// Latin text in UTF-16 has a NUL in most pairs of bytes, always on the same side.
std::string_view utf16_kind(std::string_view head) {
  if (head.starts_with("\xff\xfe"sv)) return "UTF-16LE";
  if (head.starts_with("\xfe\xff"sv)) return "UTF-16BE";
  if (head.size() < 4) return "";
  size_t nuls[2] = {0, 0};
  for (size_t i = 0; i < head.size(); ++i) nuls[i % 2] += head[i] == '\0';
  const size_t few = head.size() / 100, many = head.size() * 2 / 5;
  if (nuls[1] > many && nuls[0] <= few) return "UTF-16LE";
  if (nuls[0] > many && nuls[1] <= few) return "UTF-16BE";
  return "";
}

std::string_view known_format(std::string_view head) {
  for (const Format& format : kFormats)
    if (head.size() >= format.offset && head.substr(format.offset).starts_with(format.bytes)) return format.description;
  return "";
}

}  // namespace

size_t piece_bytes(std::string_view text) {
  const std::string_view window = text.substr(0, kPieceBytes);
  if (window.size() > kPieceBytes / 2) {  // by memrchr: rfind() goes byte by byte, and some texts are one line
    const void* line_end = ::memrchr(window.data() + kPieceBytes / 2, '\n', window.size() - kPieceBytes / 2);
    if (line_end != nullptr) return static_cast<size_t>(static_cast<const char*>(line_end) - window.data()) + 1;
  }
  const size_t space = window.find_last_of(" \t\n\v\f\r");
  if (space != std::string_view::npos) return space + 1;
  return character_boundary(text, window.size());
}

size_t line_bytes(std::string_view text) {
  const size_t line_end = text.rfind('\n');
  return line_end == std::string_view::npos ? 0 : line_end + 1;
}

Status check_text(std::string_view head, const std::string& name) {
  head = head.substr(0, kPieceBytes);
  if (const std::string_view kind = utf16_kind(head); !kind.empty())
    return error(Code::kInvalidArgument, name, " is ", kind, " text, not UTF-8; try: iconv -f ", kind, " -t UTF-8");
  if (const std::string_view format = known_format(head); !format.empty())
    return error(Code::kInvalidArgument, name, " is not text: it looks like ", format);
  const auto controls = static_cast<size_t>(std::count_if(head.begin(), head.end(), is_control));
  if (controls * 10 <= head.size() && (controls <= 8 || controls * 100 <= head.size())) return {};
  return error(
      Code::kInvalidArgument, name, " is not text: ", controls, " of its first ", head.size(),
      " bytes are NUL or other control bytes; name text files, plain or compressed by gzip, zstd, xz or bzip2");
}

size_t utf8_mark_bytes(std::string_view head) {
  return head.starts_with("\xef\xbb\xbf"sv) ? 3 : 0;
}

}  // namespace streamvec
