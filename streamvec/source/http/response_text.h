// The text of a page that was fetched.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/source/http/fetcher.h"
#include "streamvec/text/article.h"

namespace streamvec {

struct PageText {
  std::string text;  // the title on a line of its own, then a paragraph a line
  std::string title;
  Url url;             // the page's own name: its canonical address where that is on the same host, else its address
  int64_t time_s = 0;  // when it was written, 0 unknown
};

// Not thread-safe (it keeps scratch memory).
class ResponseReader {
 public:
  // HTML by article extraction, plain text as it is; any charset, by header, document or look. kInvalidArgument when
  // it is something else (the message says what) or holds no text. REQUIRES: response.status.ok().
  Status read(const FetchResponse& response, PageText& out);

 private:
  void read_html(std::string_view html_utf8, PageText& out);

  ArticleExtractor extractor_;
  Article article_;
  std::string utf8_;
};

// The text of a piece of HTML out of a feed: all of it, a block a line.
std::string fragment_text(std::string_view html_utf8);

// The feeds that a page says are its site's (<link rel=alternate>), 10 at most.
std::vector<std::string> feeds_named(const Url& page, std::string_view html);

}  // namespace streamvec
