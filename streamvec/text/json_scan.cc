#include "streamvec/text/json_scan.h"

#include "streamvec/text/code_points.h"
#include "streamvec/text/html_scanner.h"
#include "streamvec/text/html_text.h"

namespace streamvec {
namespace {

// The end of the string whose first character is at `from`: its closing quote, or the end of the text.
size_t string_end(std::string_view json, size_t from) {
  while (from < json.size() && json[from] != '"') from += json[from] == '\\' ? 2 : 1;
  return from < json.size() ? from : json.size();
}

size_t skip_spaces(std::string_view json, size_t at) {
  while (at < json.size() && (json[at] == ' ' || (json[at] >= '\t' && json[at] <= '\r'))) ++at;
  return at;
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const int lower = c | 0x20;
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Four hexadecimal digits at `at`; -1 when they are not there.
int32_t read_unit(std::string_view raw, size_t at) {
  if (at + 4 > raw.size()) return -1;
  int32_t unit = 0;
  for (size_t i = at; i < at + 4; ++i) {
    if (hex_value(raw[i]) < 0) return -1;
    unit = unit * 16 + hex_value(raw[i]);
  }
  return unit;
}

// The "\uXXXX" (or pair of them) at `at`, and how long it is.
int32_t read_escape(std::string_view raw, size_t at, size_t& length) {
  int32_t c = read_unit(raw, at + 2);
  length = c < 0 ? 2 : 6;
  if (c >= 0xD800 && c < 0xDC00 && raw.substr(at + 6, 2) == "\\u") {
    const int32_t low = read_unit(raw, at + 8);
    if (low >= 0xDC00 && low < 0xE000) {
      length = 12;
      return 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    }
  }
  return c < 0 || (c >= 0xD800 && c < 0xE000) ? 0xFFFD : c;
}

std::string decode_escapes(std::string_view raw) {
  std::string out;
  for (size_t at = 0; at < raw.size();) {
    if (raw[at] != '\\' || at + 1 == raw.size()) {
      out += raw[at++];
      continue;
    }
    const char kind = raw[at + 1];
    if (kind == 'u') {
      size_t length = 0;
      append_utf8(read_escape(raw, at, length), out);
      at += length;
      continue;
    }
    out += kind == 'n' || kind == 'r' ? '\n' : kind == 't' || kind == 'b' || kind == 'f' ? ' ' : kind;
    at += 2;
  }
  return out;
}

}  // namespace

std::string_view json_string(std::string_view json, std::string_view name) {
  for (size_t at = json.find('"'); at < json.size(); at = json.find('"', at)) {
    const size_t end = string_end(json, at + 1);
    const bool named = json.substr(at + 1, end - at - 1) == name;
    at = skip_spaces(json, end + 1);
    if (!named || at >= json.size() || json[at] != ':') continue;
    at = skip_spaces(json, at + 1);
    if (at < json.size() && json[at] == '"') return json.substr(at + 1, string_end(json, at + 1) - at - 1);
  }
  return {};
}

std::string json_text(std::string_view raw) {
  const std::string decoded = decode_escapes(raw);
  std::string out;
  TextFlow flow;
  HtmlScanner scanner(decoded);
  HtmlToken token;
  flow.start(out);
  for (scanner.next(token); token.kind != HtmlToken::Kind::kDone; scanner.next(token)) {
    if (token.kind == HtmlToken::Kind::kText)
      flow.append(token.text, true, false);
    else if (has_flag(token.tag, tag_flag::kBlock) || token.tag == Tag::kBr)
      flow.append("\n", true, false);
  }
  return out;
}

}  // namespace streamvec
