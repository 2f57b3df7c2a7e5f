#include "streamvec/source/archive/wikitext.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <cctype>

#include "streamvec/text/html_entities.h"

namespace streamvec {
namespace {

constexpr size_t kDepthMax = 200;

// Elements that hold no text of the page.
constexpr std::string_view kDroppedElements[] = {
    "ref",          "references",      "gallery",   "math",          "chem",     "ce",       "timeline",
    "score",        "syntaxhighlight", "source",    "code",          "pre",      "imagemap", "hiero",
    "templatedata", "graph",           "mapframe",  "maplink",       "inputbox", "section",  "style",
    "script",       "categorytree",    "indicator", "templatestyles"};
// Elements that end a line.
constexpr std::string_view kBreaks[] = {"br",         "p",    "div", "li", "ul", "ol", "tr",
                                        "table",      "h1",   "h2",  "h3", "h4", "h5", "h6",
                                        "blockquote", "poem", "hr",  "dd", "dt", "dl", "center"};

template <size_t N>
bool is_among(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool is_name_byte(char byte) {
  return std::isalnum(static_cast<unsigned char>(byte)) != 0;
}

void append_utf8(char32_t c, std::string& out) {
  char bytes[U8_MAX_LENGTH];
  int32_t size = 0;
  U8_APPEND_UNSAFE(bytes, size, static_cast<UChar32>(c));
  out.append(bytes, static_cast<size_t>(size));
}

// Where "</name" begins at or after `from`, in any case of letters.
size_t find_end_tag(std::string_view text, size_t from, std::string_view name) {
  for (size_t at = text.find("</", from); at != std::string_view::npos; at = text.find("</", at + 2)) {
    const std::string_view found = text.substr(at + 2, name.size());
    const bool same = found.size() == name.size() &&
                      std::equal(found.begin(), found.end(), name.begin(),
                                 [](unsigned char a, unsigned char b) { return std::tolower(a) == b; });
    if (same && (at + 2 + name.size() >= text.size() || !is_name_byte(text[at + 2 + name.size()]))) return at;
  }
  return std::string_view::npos;
}

}  // namespace

WikiText::WikiText() : dropped_{"file", "image", "category", "media", "special"} {}

// Names of namespaces in any script.
std::string WikiText::lower(std::string_view text) {
  std::string low;
  const auto size = static_cast<int32_t>(std::min<size_t>(text.size(), 200));
  for (int32_t i = 0; i < size;) {
    UChar32 c = 0;
    U8_NEXT_OR_FFFD(text.data(), i, size, c);
    append_utf8(static_cast<char32_t>(u_tolower(c == '_' ? ' ' : c)), low);
  }
  return low;
}

void WikiText::extract(std::string_view wikitext, std::string& out) {
  text_ = wikitext;
  at_ = 0;
  out_.clear();
  open_.clear();
  unclosed_.clear();
  tables_ = templates_ = 0;
  begin_line();
  while (at_ < text_.size()) {
    const size_t plain = std::min(text_.find_first_of("\n{}[]|<&'_h", at_), text_.size());
    out_ += text_.substr(at_, plain - at_);
    at_ = plain;
    if (at_ < text_.size() && !step()) out_ += text_[at_++];
  }
  tidy(out);
}

// Takes the construct that begins here; false when the byte is text.
bool WikiText::step() {
  const std::string_view next = rest();
  switch (next[0]) {
    case '\n':
      newline();
      return true;
    case '{':
      return next.starts_with("{{") && open(Kind::kTemplate, 2);
    case '}':
      return next.starts_with("}}") && close_template();
    case '[':
      if (next.starts_with("[[")) {
        begin_link();
        return true;
      }
      if (!next.starts_with("[http") && !next.starts_with("[//") && !next.starts_with("[ftp:")) return false;
      external_link();
      return true;
    case ']':
      if (inside(Kind::kAddress)) {
        open_.pop_back();
        ++at_;
        return true;
      }
      return next.starts_with("]]") && close_link();
    case '|':
      if (!inside(Kind::kLink)) return false;
      out_.resize(open_.back().out_size);  // what came was the target, or a picture's setting
      ++at_;
      return true;
    case '<':
      tag();
      return true;
    case '&':
      reference();
      return true;
    case '\'':
      apostrophes();
      return true;
    case '_':
      return next.starts_with("__") && magic_word();
    case 'h':
      if (!next.starts_with("http://") && !next.starts_with("https://")) return false;
      skip_address();
      return true;
    default:
      return false;
  }
}

// Marks that mean something at the beginning of a line only.
void WikiText::begin_line() {
  size_t at = at_;
  while (at < text_.size() && (text_[at] == '*' || text_[at] == '#' || text_[at] == ':' || text_[at] == ';' ||
                               text_[at] == ' ' || text_[at] == '\t'))
    ++at;
  const std::string_view line = text_.substr(at);
  if (line.starts_with("{|")) {
    at_ = at;
    open(Kind::kTable, 2);
    return;
  }
  if (line.starts_with("|}") && tables_ > 0 && !(line.starts_with("|}}") && inside(Kind::kTemplate))) {
    at_ = at + 2;
    close_table();
    return;
  }
  at_ = at;
  if (line.starts_with("----")) at_ += std::min(line.find_first_not_of('-'), line.size());
}

void WikiText::newline() {
  // A link's name has no line end; only the caption of a picture may.
  while ((inside(Kind::kLink) && !open_.back().dropped) || inside(Kind::kAddress)) open_.pop_back();
  out_ += '\n';
  ++at_;
  begin_line();
}

bool WikiText::open(Kind kind, size_t mark_size) {
  if (open_.size() >= kDepthMax) return false;
  open_.push_back({kind, out_.size()});
  tables_ += kind == Kind::kTable ? 1 : 0;
  templates_ += kind == Kind::kTemplate ? 1 : 0;
  at_ += mark_size;
  return true;
}

bool WikiText::close_template() {
  if (templates_ == 0) return false;
  for (bool found = false; !found; open_.pop_back()) {
    found = open_.back().kind == Kind::kTemplate;
    tables_ -= open_.back().kind == Kind::kTable ? 1 : 0;
    out_.resize(std::min(out_.size(), open_.back().out_size));
  }
  --templates_;
  at_ += 2;
  return true;
}

// REQUIRES: a table is open. at_ is behind its mark already.
bool WikiText::close_table() {
  for (bool found = false; !found; open_.pop_back()) {
    found = open_.back().kind == Kind::kTable;
    templates_ -= open_.back().kind == Kind::kTemplate ? 1 : 0;
    out_.resize(std::min(out_.size(), open_.back().out_size));
  }
  --tables_;
  return true;
}

bool WikiText::is_dropped_link(std::string_view target) const {
  if (target.starts_with(':')) return false;  // "[[:Category:X]]" is an ordinary link
  const size_t colon = target.find(':');
  if (colon == std::string_view::npos || colon > 60) return false;
  const std::string space = lower(target.substr(0, colon));
  if (dropped_.contains(space)) return true;
  // "[[de:Berlin]]", "[[zh-yue:X]]": the page in another language.
  const bool language = space.size() >= 2 && std::all_of(space.begin(), space.end(),
                                                         [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
  return language && (space.find('-') == std::string::npos ? space.size() <= 3 : space.find('-') <= 3);
}

void WikiText::begin_link() {
  const std::string_view target = text_.substr(at_ + 2, text_.substr(at_ + 2, 300).find_first_of("|]\n[{"));
  if (!open(Kind::kLink, 2)) {
    at_ += 2;
    return;
  }
  open_.back().dropped = is_dropped_link(target);
  if (target.starts_with(':')) ++at_;
}

bool WikiText::close_link() {
  at_ += 2;
  if (!inside(Kind::kLink)) return true;
  if (open_.back().dropped) out_.resize(std::min(out_.size(), open_.back().out_size));
  open_.pop_back();
  return true;
}

// "[http://x label]" is its label.
void WikiText::external_link() {
  const size_t end = std::min(text_.find_first_of(" \t\n]", at_), text_.size());
  if (end < text_.size() && text_[end] != '\n') open(Kind::kAddress, 0);
  at_ = end;
}

void WikiText::skip_address() {
  at_ = std::min(text_.find_first_of(" \t\n]|}<[{\"", at_), text_.size());
}

void WikiText::tag() {
  const std::string_view next = rest();
  if (next.starts_with("<!--")) {
    const size_t end = unclosed_.contains("!--") ? std::string_view::npos : text_.find("-->", at_ + 4);
    if (end == std::string_view::npos) unclosed_.insert("!--");
    at_ = end == std::string_view::npos ? at_ + 4 : end + 3;
    return;
  }
  const size_t name_at = at_ + (next.starts_with("</") ? 2 : 1);
  size_t name_end = name_at;
  while (name_end < text_.size() && is_name_byte(text_[name_end])) ++name_end;
  const std::string name = lower(text_.substr(name_at, name_end - name_at));
  const size_t end = std::min(text_.find_first_of("<>", name_end), text_.size());
  if (name.empty() || std::isalpha(static_cast<unsigned char>(name[0])) == 0 || end == text_.size() ||
      text_[end] != '>') {
    out_ += text_[at_++];  // "a < b"
    return;
  }
  const bool opens = name_at == at_ + 1 && text_[end - 1] != '/';
  at_ = end + 1;
  if (is_among(kBreaks, name)) out_ += '\n';
  if (opens && name == "nowiki") literal(name);
  if (opens && is_among(kDroppedElements, name)) skip_element(name);
}

// To the end of an element whose beginning was taken; when there is no end, only the tag goes.
bool WikiText::skip_element(std::string_view name) {
  if (unclosed_.contains(name)) return false;
  const size_t close = find_end_tag(text_, at_, name);
  if (close == std::string_view::npos) {
    unclosed_.insert(std::string(name));
    return false;
  }
  at_ = std::min(text_.find('>', close), text_.size() - 1) + 1;
  return true;
}

void WikiText::literal(std::string_view name) {
  const size_t begin = at_;
  if (!skip_element(name)) return;
  const size_t end = text_.rfind("</", at_ - 1);
  append_decoded(text_.substr(begin, end - begin), out_);
}

void WikiText::apostrophes() {
  const size_t end = std::min(text_.find_first_not_of('\'', at_), text_.size());
  if (end - at_ == 1) out_ += '\'';
  at_ = end;
}

void WikiText::reference() {
  const CharacterReference found = read_reference(rest());
  if (found.length == 0 || rest()[found.length - 1] != ';') {
    out_ += '&';
    ++at_;
    return;
  }
  append_utf8(found.code_point == 0xa0 ? U' ' : found.code_point, out_);
  at_ += found.length;
}

// "__NOTOC__"
bool WikiText::magic_word() {
  size_t end = at_ + 2;
  while (end < text_.size() && text_[end] >= 'A' && text_[end] <= 'Z') ++end;
  if (end == at_ + 2 || !text_.substr(end).starts_with("__")) return false;
  at_ = end + 2;
  return true;
}

// Headings without their signs, lines trimmed, empty ones and rests of tables dropped, empty parentheses removed.
void WikiText::tidy(std::string& out) const {
  out.clear();
  for (std::string_view all = out_; !all.empty();) {
    const size_t end = std::min(all.find('\n'), all.size());
    std::string_view line = all.substr(0, end);
    all.remove_prefix(std::min(end + 1, all.size()));
    const auto trim = [&](std::string_view marks) {
      line.remove_prefix(std::min(line.find_first_not_of(marks), line.size()));
      line.remove_suffix(line.size() - std::min(line.find_last_not_of(marks) + 1, line.size()));
    };
    trim(" \t\r");
    if (line.starts_with('=') && line.ends_with('=')) trim("= \t");
    if (line.empty() || line[0] == '|' || line[0] == '!') continue;
    const size_t line_begin = out.size();
    for (const char byte : line) {
      const bool after_blank = out.size() > line_begin && out.back() == ' ';
      if (byte == ' ' && (after_blank || out.ends_with('('))) continue;
      if (byte == ')' && out.size() > line_begin && out.back() == '(') {
        out.pop_back();
        continue;
      }
      out += byte == '\0' ? ' ' : byte;
    }
    if (out.size() > line_begin) out += '\n';
  }
}

}  // namespace streamvec
