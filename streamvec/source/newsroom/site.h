// A news site on this machine, for the demo and for tests: what a crawler meets in the world, with known answers.
//
//   /robots.txt            forbids /staff/ and names the sitemap
//   /feed.xml[?page=2]     RSS, the newest articles first; ETag and Last-Modified, 304 when nothing is new
//   /sitemap.xml           an index of /sitemap-0.xml, /sitemap-1.xml, ...: all articles
//   /news/17-some-title.html   an article among boilerplate, in one of four designs
//   /old/17                leads to it
//   /staff/50.html         listed in feed and sitemap, forbidden by robots.txt: kTrapWord stands in it
// About 1 article page in 25 has a fault (see page_fault.h). Bodies are compressed by gzip for who accepts it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "streamvec/core/status.h"
#include "streamvec/source/newsroom/writer.h"

namespace streamvec::newsroom {

// Articles are made when they are asked for and never kept: memory does not grow with them. Thread-safe. SIGPIPE is
// ignored in the whole process from the first start on.
class Site {
 public:
  struct Options {
    Writer::Options writer;
    int64_t articles = 6'000;         // how many there will be; 0: no end
    double rate = 300;                // articles published a second; 0: as fast as `ahead_max` lets them
    int64_t published = 1;            // when the site starts
    int64_t asked = 0;                // all articles below were asked for before the site started
    int64_t ahead_max = 0;            // publishing stops so far ahead of the lowest article nobody asked for; 0: never
    int32_t feed_items = 200;         // more: a crawler may look at the feed less often and miss none
    double faults = 1;                // multiplies the share of pages with a fault; 0: none
    int32_t port = 0;                 // 0: a free one
    int64_t start_s = 1'704'067'200;  // when the first article was written, seconds since 1970
    std::chrono::milliseconds slow{200};  // how long a slow answer takes
    std::function<double()> clock = {};   // seconds that have passed since any moment; none: the steady clock
  };
  // Listens on 127.0.0.1 from now on. kUnavailable when the port is taken, kResourceExhausted when no thread can be
  // had. REQUIRES: published, feed_items >= 1, no option is negative, and rate or ahead_max > 0 when there is no end.
  static Result<std::unique_ptr<Site>> start(Options options);
  ~Site();  // within about a second, also when readers keep connections

  int32_t port() const;
  std::string url() const;  // "http://127.0.0.1:PORT", without a slash at its end
  const Options& options() const;
  int64_t published() const;              // articles so far: those with lower numbers
  int64_t asked() const;                  // all articles below were asked for; known with ahead_max
  int64_t readable(int64_t count) const;  // how many of the first `count` articles can be read at all
  int64_t time_s(int64_t number) const;   // when an article was written, as feed and page say it
  std::string article_url(int64_t number) const;
  // The number of the article at `url`, -1 when it is no article's address on any such site.
  static int64_t article_number(const std::string& url);

 private:
  class Server;
  explicit Site(std::unique_ptr<Server> server);
  std::unique_ptr<Server> server_;
};

// The words, in lower case, of what stands around the articles and never in them: in a vocabulary they are boilerplate
// that got through.
const std::set<std::string>& boilerplate_words();

}  // namespace streamvec::newsroom
