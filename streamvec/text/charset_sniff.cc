#include "streamvec/text/charset_sniff.h"

#include <unicode/ucsdet.h>

#include <algorithm>
#include <cstdint>
#include <memory>

#include "streamvec/text/utf8_parts.h"

namespace streamvec {
namespace {

using namespace std::string_view_literals;

constexpr const char* kFallback = "windows-1252";
constexpr size_t kMetaBytes = 1'024;         // as far as browsers look for a <meta>
constexpr size_t kDetectBytes = 64 * 1'024;  // as much as ICU looks at: its time grows with every encoding it tries

struct DetectorClose {
  void operator()(UCharsetDetector* detector) const { ucsdet_close(detector); }
};
using Detector = std::unique_ptr<UCharsetDetector, DetectorClose>;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
bool same(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}
size_t find_folded(std::string_view text, std::string_view what, size_t from = 0) {
  const auto found = std::search(text.begin() + static_cast<std::ptrdiff_t>(std::min(from, text.size())), text.end(),
                                 what.begin(), what.end(), [](char x, char y) { return lower(x) == lower(y); });
  return found == text.end() ? text.npos : static_cast<size_t>(found - text.begin());
}
void skip_space(std::string_view& text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
}

// Takes a value off the front of `text`: quoted, or up to white space or one of `stops`.
std::string_view take_value(std::string_view& text, std::string_view stops) {
  skip_space(text);
  size_t length = 0;
  if (!text.empty() && (text.front() == '"' || text.front() == '\'')) {
    const char quote = text.front();
    text.remove_prefix(1);
    length = std::min(text.find(quote), text.size());
    const std::string_view value = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    return value;
  }
  while (length < text.size() && !is_space(text[length]) && stops.find(text[length]) == stops.npos) ++length;
  const std::string_view value = text.substr(0, length);
  text.remove_prefix(length);
  return value;
}

// The value after `name` and "=" somewhere in `text`, "" when there is none.
std::string_view value_after(std::string_view text, std::string_view name, std::string_view stops) {
  for (size_t at = find_folded(text, name); at != text.npos; at = find_folded(text, name, at + 1)) {
    std::string_view rest = text.substr(at + name.size());
    skip_space(rest);
    if (rest.empty() || rest.front() != '=') continue;
    rest.remove_prefix(1);
    return take_value(rest, stops);
  }
  return {};
}

// The label could be read as ASCII, so that it cannot be one of two or four bytes a character.
const char* as_ascii_superset(const char* encoding) {
  return encoding != nullptr && std::string_view(encoding).starts_with("UTF-") ? "UTF-8" : encoding;
}

struct Attribute {
  std::string_view name, value;
};

// Takes the next attribute of a tag off the front of `text`; its name is "" at the tag's end.
Attribute take_attribute(std::string_view& text) {
  while (!text.empty() && (is_space(text.front()) || text.front() == '/')) text.remove_prefix(1);
  size_t length = 0;
  while (length < text.size() && !is_space(text[length]) && std::string_view("=>/").find(text[length]) == text.npos)
    ++length;
  Attribute attribute{text.substr(0, length), {}};
  text.remove_prefix(length);
  skip_space(text);
  if (text.empty() || text.front() != '=') return attribute;
  text.remove_prefix(1);
  attribute.value = take_value(text, ">");
  if (attribute.name.empty()) attribute.name = "=";  // "<meta =x charset=y>" goes on
  return attribute;
}

const char* encoding_of_meta(std::string_view attributes) {
  std::string_view charset, content;
  bool content_type = false;
  for (;;) {
    const Attribute attribute = take_attribute(attributes);
    if (attribute.name.empty()) break;
    if (same(attribute.name, "charset")) charset = attribute.value;
    if (same(attribute.name, "content")) content = attribute.value;
    if (same(attribute.name, "http-equiv")) content_type = same(attribute.value, "content-type");
  }
  if (charset.empty() && content_type) charset = value_after(content, "charset", ";,");
  return as_ascii_superset(encoding_of_label(charset));
}

// The first <meta> outside comments that names an encoding.
const char* encoding_of_html(std::string_view html) {
  for (size_t at = html.find('<'); at != html.npos; at = html.find('<', at + 1)) {
    std::string_view tag = html.substr(at + 1);
    if (tag.starts_with("!--")) {
      at = html.find("-->", at + 2);
      if (at == html.npos) return nullptr;
    }
    if (tag.size() < 5 || !same(tag.substr(0, 4), "meta") || !(is_space(tag[4]) || tag[4] == '/')) continue;
    tag.remove_prefix(4);
    if (const char* encoding = encoding_of_meta(tag)) return encoding;
  }
  return nullptr;
}

const char* encoding_of_xml(std::string_view xml) {
  skip_space(xml);
  if (!xml.starts_with("<?xml")) return nullptr;
  return as_ascii_superset(encoding_of_label(value_after(xml.substr(0, xml.find("?>")), "encoding", "?>")));
}

struct Utf8Count {
  int64_t good = 0, bad = 0;  // sequences of several bytes; ill-formed parts, one cut off by the end aside
};

bool starts_sequence(unsigned char byte) {
  return byte >= 0xC2 && byte <= 0xF4;
}

Utf8Count count_utf8(std::string_view bytes) {
  Utf8Count count;
  for_each_part(bytes, [&](size_t begin, size_t end, bool well_formed) {
    const auto first = static_cast<unsigned char>(bytes[begin]);
    if (well_formed)
      count.good += first >= 0x80;
    else if (end < bytes.size() || !starts_sequence(first))
      ++count.bad;
  });
  return count;
}

// Text has blanks and line ends, and in UTF-16 a NUL in each of them. In no text at all, which ICU takes for UTF-16,
// every 256th byte is one.
bool may_be_wide(std::string_view bytes) {
  return std::count(bytes.begin(), bytes.end(), '\0') * 100 > static_cast<std::ptrdiff_t>(bytes.size());
}

const char* guess_with_icu(std::string_view bytes, bool html) {
  UErrorCode status = U_ZERO_ERROR;
  const Detector detector(ucsdet_open(&status));
  const std::string_view head = bytes.substr(0, kDetectBytes);
  ucsdet_setText(detector.get(), head.data(), static_cast<int32_t>(head.size()), &status);
  ucsdet_enableInputFilter(detector.get(), html);
  int32_t count = 0;
  const UCharsetMatch** matches = ucsdet_detectAll(detector.get(), &count, &status);
  for (int32_t i = 0; U_SUCCESS(status) && i < count; ++i)  // the likeliest first
    if (const char* encoding = encoding_of_label(ucsdet_getName(matches[i], &status)))
      if (!std::string_view(encoding).starts_with("UTF-") || encoding == "UTF-8"sv || may_be_wide(head))
        return encoding;
  return kFallback;
}

}  // namespace

const char* encoding_of_content_type(std::string_view declared) {
  const std::string_view charset = value_after(declared, "charset", ";,");
  return encoding_of_label(charset.empty() ? declared : charset);
}

const char* encoding_of_document(std::string_view bytes, bool html) {
  if (bytes.starts_with("<\0?\0x\0"sv)) return "UTF-16LE";
  if (bytes.starts_with("\0<\0?\0x"sv)) return "UTF-16BE";
  const std::string_view head = bytes.substr(0, kMetaBytes);
  if (const char* encoding = encoding_of_xml(head)) return encoding;
  return html ? encoding_of_html(head) : nullptr;
}

const char* encoding_by_looks(std::string_view bytes, bool html) {
  const Utf8Count count = count_utf8(bytes);
  const bool escapes = count.good == 0 && bytes.find('\x1B') != bytes.npos;  // ISO-2022-JP is ASCII to the eye
  const bool zeros = count.good == 0 && bytes.substr(0, kMetaBytes).find('\0') != bytes.npos;  // so is UTF-16
  if (count.bad * 10 <= count.good && !escapes && !zeros) return "UTF-8";
  return guess_with_icu(bytes, html);
}

}  // namespace streamvec
