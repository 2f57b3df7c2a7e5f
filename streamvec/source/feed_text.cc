#include "streamvec/source/feed_text.h"

#include <unicode/utf8.h>

#include <algorithm>
#include <cctype>

#include "streamvec/text/html_entities.h"

namespace streamvec::feed {
namespace {

constexpr std::string_view kBlanks = " \t\n\r\f\v";

bool is_letter(char byte) {
  return std::isalpha(static_cast<unsigned char>(byte)) != 0;
}

// XML's Char (2.2) without the surrogates, which UTF-8 lacks.
bool is_xml_char(char32_t c) {
  return c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c < 0xfffe) || (c >= 0x10000 && c <= 0x10ffff);
}

void append_utf8(char32_t c, std::string& out) {
  char bytes[U8_MAX_LENGTH];
  int32_t size = 0;
  U8_APPEND_UNSAFE(bytes, size, static_cast<UChar32>(c));
  out.append(bytes, static_cast<size_t>(size));
}

// Takes one reference, or the "&" alone, off the front of `rest`. REQUIRES: rest starts with "&".
void repair_reference(std::string_view& rest, std::string& out) {
  const CharacterReference reference = read_reference(rest);
  // Without its semicolon it is rather an address ("?a=1&copy=2") than a reference.
  if (reference.length == 0 || rest[reference.length - 1] != ';') {
    out += "&amp;";
    rest.remove_prefix(1);
    return;
  }
  const char32_t c = reference.code_point;
  if (c == '&' || c == '<' || c == '>' || c == '"' || c == '\'')
    out += rest.substr(0, reference.length);
  else
    append_utf8(is_xml_char(c) ? c : U'\ufffd', out);
  rest.remove_prefix(reference.length);
}

// The size of a part that is copied as it is: a CDATA section, a comment; 0 when none begins here.
size_t verbatim_size(std::string_view rest) {
  for (const auto& [begin, end] : {std::pair<std::string_view, std::string_view>{"<![CDATA[", "]]>"}, {"<!--", "-->"}})
    if (rest.starts_with(begin)) {
      const size_t at = rest.find(end, begin.size());
      return at == std::string_view::npos ? rest.size() : at + end.size();
    }
  return 0;
}

void append_without_controls(std::string_view text, std::string& out) {
  for (const char byte : text) {
    const auto value = static_cast<unsigned char>(byte);
    out += (value < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || value == 0x7f ? ' ' : byte;
  }
}

bool begins_markup(std::string_view rest) {
  if (rest.size() < 2) return true;
  return is_letter(rest[1]) || rest[1] == '/' || rest[1] == '!' || rest[1] == '?' || rest[1] == '_' || rest[1] == ':' ||
         (static_cast<unsigned char>(rest[1]) & 0x80) != 0;
}

// RFC 3986, 5.2.4.
std::string without_dot_segments(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/', 1), path.size());
    const std::string_view segment = path.substr(0, end);
    path.remove_prefix(end);
    if (segment == "/..") out.resize(out.rfind('/') == std::string::npos ? 0 : out.rfind('/'));
    if (segment == "/." || segment == "/..") {
      if (path.empty()) out += '/';
      continue;
    }
    out += segment;
  }
  return out;
}

size_t scheme_size(std::string_view url) {
  const size_t colon = url.find(':');
  if (colon == std::string_view::npos || colon == 0 || !is_letter(url[0])) return 0;
  const bool valid = std::all_of(url.begin(), url.begin() + static_cast<std::ptrdiff_t>(colon), [](unsigned char byte) {
    return std::isalnum(byte) != 0 || byte == '+' || byte == '-' || byte == '.';
  });
  return valid ? colon + 1 : 0;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  text.remove_suffix(text.size() - std::min(text.find_last_not_of(kBlanks) + 1, text.size()));
  return text;
}

std::string repaired_xml(std::string_view utf8) {
  std::string_view rest = utf8.substr(std::min(utf8.find('<'), utf8.size()));
  if (rest.starts_with("<?xml")) rest.remove_prefix(std::min(rest.find("?>"), rest.size() - 2) + 2);
  rest.remove_prefix(std::min(rest.find('<'), rest.size()));
  std::string out;
  out.reserve(rest.size() + rest.size() / 64);
  while (!rest.empty()) {
    const size_t plain = std::min(rest.find_first_of("&<"), rest.size());
    append_without_controls(rest.substr(0, plain), out);
    rest.remove_prefix(plain);
    if (rest.empty()) break;
    if (rest[0] == '&') {
      repair_reference(rest, out);
      continue;
    }
    const size_t verbatim = verbatim_size(rest);
    append_without_controls(rest.substr(0, verbatim), out);
    rest.remove_prefix(verbatim);
    if (verbatim > 0) continue;
    out += begins_markup(rest) ? "<" : "&lt;";
    rest.remove_prefix(1);
  }
  return out;
}

std::string plain_text(std::string_view html) {
  std::string bare, decoded;
  for (size_t i = 0; i < html.size();) {
    const bool tag =
        html[i] == '<' && i + 1 < html.size() && (is_letter(html[i + 1]) || html[i + 1] == '/' || html[i + 1] == '!');
    const size_t end = tag ? html.find('>', i) : std::string_view::npos;
    if (end != std::string_view::npos) {
      bare += ' ';
      i = end + 1;
    } else {
      // What begins like a tag and has no end is no tag, and neither is any after it.
      const size_t next = tag ? html.size() : std::min(html.find('<', i + 1), html.size());
      bare += html.substr(i, next - i);
      i = next;
    }
  }
  append_decoded(bare, decoded);
  std::string out;
  for (const char byte : decoded) {
    const bool blank = kBlanks.find(byte) != std::string_view::npos || byte == '\0';
    if (!blank) out += byte;
    if (blank && !out.empty() && out.back() != ' ') out += ' ';
  }
  if (out.ends_with(' ')) out.pop_back();
  return out;
}

void append_escaped(std::string_view text, std::string& html) {
  for (const char byte : text) {
    if (byte == '&')
      html += "&amp;";
    else if (byte == '<')
      html += "&lt;";
    else if (byte == '>')
      html += "&gt;";
    else
      html += byte;
  }
}

std::string resolve_url(std::string_view base, std::string_view reference) {
  const size_t scheme = scheme_size(base);
  if (scheme_size(reference) > 0 || scheme == 0 || !base.substr(scheme).starts_with("//"))
    return std::string(reference);
  if (reference.starts_with("//")) return std::string(base.substr(0, scheme)) + std::string(reference);
  base = base.substr(0, base.find('#'));
  if (reference.empty() || reference[0] == '#') return std::string(base) + std::string(reference);
  base = base.substr(0, base.find('?'));
  if (reference[0] == '?') return std::string(base) + std::string(reference);
  const size_t path = std::min(base.find('/', scheme + 2), base.size());
  const std::string_view origin = base.substr(0, path);
  const size_t query = std::min(reference.find_first_of("?#"), reference.size());
  std::string joined(reference.substr(0, query));
  if (reference[0] != '/') {
    const std::string_view directory = base.substr(path, base.rfind('/') + 1 - std::min(path, base.rfind('/') + 1));
    joined = (path == base.size() ? "/" : std::string(directory)) + joined;
  }
  return std::string(origin) + without_dot_segments(joined) + std::string(reference.substr(query));
}

}  // namespace streamvec::feed
