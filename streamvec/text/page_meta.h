// What a page says about itself outside its text: titles, dates, language, address.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "streamvec/text/html_scanner.h"

namespace streamvec {

// Filled tag by tag.
class PageMeta {
 public:
  // Start tags of html, meta, link, time, title and script, and any with an itemprop; others are passed over.
  void add(const HtmlToken& start);
  void clear() { *this = PageMeta(); }

  // The page's title without the site's name. `heading` is the page's first h1, "" for none.
  std::string title(std::string_view heading) const;
  // When it was published, seconds since 1970; 0 unknown. In this order: article:published_time and its kin, JSON-LD's
  // datePublished, itemprop datePublished, a time element; then what is said of changes.
  int64_t time_s() const;
  // The primary subtag in lower case ("en" of "en-US"); "" unknown.
  std::string language() const;
  // As written, not resolved against the page's address; "" unknown.
  const std::string& canonical() const { return canonical_.empty() ? og_url_ : canonical_; }
  // JSON-LD's articleBody, decoded, a paragraph a line; "" when there is none.
  const std::string& article_body() const { return article_body_; }

 private:
  enum DateRank { kMetaPublished, kJsonPublished, kItemPublished, kTimeElement, kMetaDate, kModified, kRankCount };

  void add_meta(const HtmlToken& start);
  void add_link(const HtmlToken& start);
  void add_json(std::string_view json);
  void add_date(DateRank rank, std::string_view text);

  std::string title_, og_title_, site_name_, canonical_, og_url_, article_body_;
  std::string language_, locale_;
  int64_t dates_[kRankCount] = {};
};

}  // namespace streamvec
