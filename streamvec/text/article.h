// The article of a web page: its text without menus, banners, related links, comments and footers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace streamvec {

struct Article {
  std::string title;      // without the site's name; "" when the page has none
  std::string text;       // a paragraph, heading, list item, table row or line of code a line, LF between; no title
  std::string language;   // what the page says: "en", "ko"; "" when it does not
  std::string canonical;  // the page's own address as written in it (may be relative); "" when it does not say
  int64_t time_s = 0;     // when it was published, seconds since 1970; 0 unknown
};

// Kept: paragraphs, sub-headings, lists, quotations, code, tables, forum posts and answers. Left out: captions of
// pictures, footnote marks, what is not shown, and all that is around the article. Text is valid UTF-8 with white space
// collapsed and character references decoded; bad bytes are U+FFFD, NULs are dropped. A page whose text comes from
// scripts gives JSON-LD's articleBody when it has one.
// Not thread-safe (it keeps scratch memory): one per thread. Equal bytes give equal articles.
class ArticleExtractor {
 public:
  ArticleExtractor();
  ~ArticleExtractor();
  ArticleExtractor(ArticleExtractor&&) noexcept;
  ArticleExtractor& operator=(ArticleExtractor&&) noexcept;

  // Replaces what `out` holds. Never fails; a page without an article gives an empty text. Time and memory are linear
  // in the page, which may be cut or broken anywhere. REQUIRES: html_utf8.size() < 2^31.
  void extract(std::string_view html_utf8, Article& out);

  // Bytes and elements looked at in the last call, each time counted: tests of linear time compare it.
  int64_t work() const;

 private:
  struct Scratch;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace streamvec
