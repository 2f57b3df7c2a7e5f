// HTML bytes into tags and text, one pass, as tolerant as browsers are with tag soup.
//
// Comments, CDATA sections, doctypes and processing instructions are passed over. A quote opens an attribute value only
// after "=". A "<" that starts no tag is text. Where browsers would read to the end of the page (a comment, a quote, an
// <svg> that never closes) the scanner gives up on that construct and goes on behind it, except for <script>, <style>
// and <textarea>.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "streamvec/text/html_tags.h"

namespace streamvec {

// Attributes that anybody asks for; the others are passed over.
enum class Attribute : uint8_t {
  kAriaHidden,
  kClass,
  kContent,
  kDatetime,
  kHidden,
  kHref,
  kId,
  kItemprop,
  kLang,
  kName,
  kProperty,
  kRel,
  kRole,
  kStyle,
  kType,
  kCount,
};

struct HtmlToken {
  enum class Kind : uint8_t { kText, kStart, kEnd, kDone };

  Kind kind = Kind::kDone;
  Tag tag = Tag::kOther;
  bool self_closing = false;
  std::string_view name;  // of the tag, as written
  std::string_view text;  // kText: entities not decoded. kStart of a raw tag: all it holds, its end tag is passed

  bool has(Attribute attribute) const { return (present >> static_cast<int>(attribute) & 1) != 0; }
  // As written, entities not decoded; "" when it is not there.
  std::string_view value(Attribute attribute) const {
    return has(attribute) ? values[static_cast<size_t>(attribute)] : std::string_view();
  }

  uint32_t present = 0;
  std::array<std::string_view, static_cast<size_t>(Attribute::kCount)> values;
};

// Time is linear in the page whatever it holds: a search that fails once is not tried again. Tokens are views of it.
class HtmlScanner {
 public:
  explicit HtmlScanner(std::string_view html);

  // The next token; kDone at the end and ever after. A tag that the end of the page cuts is dropped.
  void next(HtmlToken& token);

  // Bytes looked at so far, each time counted: what tests of linear time compare.
  int64_t work() const { return work_; }

 private:
  bool scan_markup(HtmlToken& token);
  void scan_text(HtmlToken& token, const char* from);
  bool scan_tag(HtmlToken& token, bool end_tag);
  bool scan_attributes(HtmlToken& token);
  std::string_view scan_value();
  std::string_view scan_quoted(char quote);
  void take_raw(HtmlToken& token);
  void skip_declaration();
  const char* find(const char* from, char byte);
  const char* find(const char* from, std::string_view sequence);
  const char* find_end_tag(const char* from, Tag tag);

  const char* at_;
  const char* const end_;
  int64_t work_ = 0;
  bool no_comment_end_ = false;              // no --> is left
  bool no_cdata_end_ = false;                // no ]]> is left
  std::array<bool, kTagCount> no_end_ = {};  // of raw tags: no end tag is left
};

}  // namespace streamvec
