#include "streamvec/text/html_scanner.h"

#include <cstddef>
#include <cstring>

namespace streamvec {
namespace {

bool is_letter(char c) {
  const unsigned lower = static_cast<unsigned char>(c) | 0x20u;
  return lower - 'a' < 26u;
}

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// Bytes that end the name of a tag or of an attribute.
struct NameEnds {
  bool at[256] = {};
  constexpr NameEnds() {
    for (const char c : {' ', '\t', '\n', '\v', '\f', '\r', '/', '>', '='}) at[static_cast<unsigned char>(c)] = true;
  }
  bool operator()(char c) const { return at[static_cast<unsigned char>(c)]; }
};
constexpr NameEnds kEndsName;

bool same(std::string_view name, std::string_view lower) {
  for (size_t i = 0; i < lower.size(); ++i)
    if ((name[i] | 0x20) != lower[i]) return false;
  return true;
}

struct AttributeName {
  std::string_view name;
  Attribute attribute;
};

// By length, so that most names cost one look.
constexpr AttributeName kNames[] = {
    {"id", Attribute::kId},
    {"rel", Attribute::kRel},
    {"href", Attribute::kHref},
    {"lang", Attribute::kLang},
    {"name", Attribute::kName},
    {"role", Attribute::kRole},
    {"type", Attribute::kType},
    {"class", Attribute::kClass},
    {"style", Attribute::kStyle},
    {"hidden", Attribute::kHidden},
    {"content", Attribute::kContent},
    {"datetime", Attribute::kDatetime},
    {"itemprop", Attribute::kItemprop},
    {"property", Attribute::kProperty},
    {"aria-hidden", Attribute::kAriaHidden},
};
constexpr uint8_t kFirstOfLength[] = {15, 15, 0, 1, 2, 7, 9, 10, 11, 14, 14, 14, 15};

Attribute find_attribute(std::string_view name) {
  if (name.size() + 1 >= std::size(kFirstOfLength)) return Attribute::kCount;
  for (size_t i = kFirstOfLength[name.size()]; i < kFirstOfLength[name.size() + 1]; ++i)
    if (kNames[i].name.size() == name.size() && same(name, kNames[i].name)) return kNames[i].attribute;
  return Attribute::kCount;
}

}  // namespace

HtmlScanner::HtmlScanner(std::string_view html) : at_(html.data()), end_(html.data() + html.size()) {}

void HtmlScanner::next(HtmlToken& token) {
  token.present = 0;
  token.self_closing = false;
  token.tag = Tag::kOther;
  while (at_ != end_) {
    const char* const from = at_;
    if (*at_ != '<') return scan_text(token, from);
    if (scan_markup(token)) return;
    if (at_ == from) return scan_text(token, from);  // a "<" that starts nothing
  }
  token.kind = HtmlToken::Kind::kDone;
}

// Text up to the next "<" that is followed by something that could be markup.
void HtmlScanner::scan_text(HtmlToken& token, const char* from) {
  const char* stop = find(*from == '<' ? from + 1 : from, '<');
  if (stop == nullptr) stop = end_;
  token.kind = HtmlToken::Kind::kText;
  token.text = {from, static_cast<size_t>(stop - from)};
  at_ = stop;
}

// True when `token` was filled; otherwise something was passed over, or at_ did not move: this "<" is text.
bool HtmlScanner::scan_markup(HtmlToken& token) {
  if (end_ - at_ < 2) return false;
  const char next = at_[1];
  if (is_letter(next)) {
    ++at_;
    return scan_tag(token, false);
  }
  if (next == '/') {
    if (end_ - at_ > 2 && is_letter(at_[2])) {
      at_ += 2;
      return scan_tag(token, true);
    }
    if (end_ - at_ > 2 && at_[2] == '>') at_ += 3;  // "</>" is nothing
    return false;
  }
  if (next == '!' || next == '?') skip_declaration();
  return false;
}

void HtmlScanner::skip_declaration() {
  const std::string_view rest(at_, static_cast<size_t>(end_ - at_));
  const char* stop = nullptr;
  if (rest.starts_with("<!--")) {
    if (rest.starts_with("<!-->")) {
      at_ += 5;
      return;
    }
    if (!no_comment_end_) stop = find(at_ + 4, "-->");
    no_comment_end_ = stop == nullptr;
    if (stop != nullptr) stop += 2;
  } else if (rest.starts_with("<![CDATA[")) {
    if (!no_cdata_end_) stop = find(at_ + 9, "]]>");
    no_cdata_end_ = stop == nullptr;
    if (stop != nullptr) stop += 2;
  }
  if (stop == nullptr) stop = find(at_, '>');
  at_ = stop == nullptr ? end_ : stop + 1;
}

bool HtmlScanner::scan_tag(HtmlToken& token, bool end_tag) {
  const char* const name = at_;
  while (at_ != end_ && !kEndsName(*at_)) ++at_;
  token.name = {name, static_cast<size_t>(at_ - name)};
  token.tag = find_tag(token.name);
  token.kind = end_tag ? HtmlToken::Kind::kEnd : HtmlToken::Kind::kStart;
  const bool closed = scan_attributes(token);
  work_ += at_ - name;
  if (!closed) return false;
  if (!end_tag && has_flag(token.tag, tag_flag::kRaw)) take_raw(token);
  return true;
}

// Up to behind the ">"; false when the page ends first.
bool HtmlScanner::scan_attributes(HtmlToken& token) {
  while (at_ != end_) {
    const char c = *at_;
    if (c == '>') {
      token.self_closing = at_[-1] == '/';
      ++at_;
      return true;
    }
    if (kEndsName(c)) {
      ++at_;
      continue;
    }
    const char* const start = at_;
    while (at_ != end_ && !kEndsName(*at_)) ++at_;
    const std::string_view name(start, static_cast<size_t>(at_ - start));
    while (at_ != end_ && is_space(*at_)) ++at_;
    std::string_view value;
    if (at_ != end_ && *at_ == '=') value = scan_value();
    const Attribute attribute = find_attribute(name);
    if (attribute == Attribute::kCount || token.has(attribute)) continue;  // the first of a name counts
    token.present |= 1u << static_cast<int>(attribute);
    token.values[static_cast<size_t>(attribute)] = value;
  }
  return false;
}

// At "=".
std::string_view HtmlScanner::scan_value() {
  ++at_;
  while (at_ != end_ && is_space(*at_)) ++at_;
  if (at_ == end_) return {};
  if (*at_ == '"' || *at_ == '\'') return scan_quoted(*at_);
  const char* const start = at_;
  while (at_ != end_ && *at_ != '>' && !is_space(*at_)) ++at_;
  return {start, static_cast<size_t>(at_ - start)};
}

std::string_view HtmlScanner::scan_quoted(char quote) {
  const char* const start = at_ + 1;
  const char* stop = find(start, quote);
  if (stop != nullptr) {
    at_ = stop + 1;
    return {start, static_cast<size_t>(stop - start)};
  }
  stop = find(start, '>');  // never closed: the tag ends the value. It was the last such quote of the page
  at_ = stop == nullptr ? end_ : stop;
  return {start, static_cast<size_t>(at_ - start)};
}

void HtmlScanner::take_raw(HtmlToken& token) {
  token.text = {};
  if (token.self_closing && (token.tag == Tag::kSvg || token.tag == Tag::kMath)) return;
  bool& none_left = no_end_[static_cast<size_t>(token.tag)];
  const char* stop = none_left ? nullptr : find_end_tag(at_, token.tag);
  if (stop == nullptr) {
    none_left = true;
    if (has_flag(token.tag, tag_flag::kStrict)) at_ = end_;
    return;
  }
  token.text = {at_, static_cast<size_t>(stop - at_)};
  const char* const close = find(stop, '>');
  at_ = close == nullptr ? end_ : close + 1;
}

const char* HtmlScanner::find(const char* from, char byte) {
  if (from == end_) return nullptr;
  const auto* found = static_cast<const char*>(std::memchr(from, byte, static_cast<size_t>(end_ - from)));
  work_ += (found == nullptr ? end_ : found) - from;
  return found;
}

const char* HtmlScanner::find(const char* from, std::string_view sequence) {
  const auto* found =
      static_cast<const char*>(memmem(from, static_cast<size_t>(end_ - from), sequence.data(), sequence.size()));
  work_ += (found == nullptr ? end_ : found) - from;
  return found;
}

// The "<" of "</name" followed by something that ends a name.
const char* HtmlScanner::find_end_tag(const char* from, Tag tag) {
  const std::string_view name = tag_name(tag);
  const auto length = static_cast<ptrdiff_t>(name.size());
  for (const char* at = find(from, '<'); at != nullptr; at = find(at + 1, '<')) {
    if (end_ - at < length + 3) return nullptr;
    if (at[1] == '/' && same({at + 2, name.size()}, name) && kEndsName(at[2 + length])) return at;
  }
  return nullptr;
}

}  // namespace streamvec
