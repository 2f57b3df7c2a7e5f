// What a crawl remembers: feeds, pages to be read, pages seen. All of it goes into a checkpoint. Private to the
// crawler.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "streamvec/core/deadline.h"
#include "streamvec/core/status.h"

namespace streamvec {

using CrawlClock = Deadline::Clock;

// The newest pages by the hash of their names, the oldest going first when there are too many.
class SeenPages {
 public:
  explicit SeenPages(size_t size_max) : size_max_(size_max) {}

  static uint64_t hash_of(std::string_view name);
  // Whether it is new; it is no longer then.
  bool add(uint64_t hash);
  bool has(uint64_t hash) const { return hashes_.contains(hash); }
  size_t size() const { return hashes_.size(); }

  std::string text() const;  // base64
  Status read(std::string_view text);

 private:
  size_t size_max_;
  std::unordered_set<uint64_t> hashes_;
  std::deque<uint64_t> order_;
};

// A page found and not handed out yet.
struct PageTask {
  std::string url;            // "" when the feed itself has the text
  std::string text;           // that text
  std::string name;           // its id, then
  int64_t time_s = 0;         // what the feed says
  bool time_is_sure = false;  // it is when the page was published, not when it was changed
  bool again = false;         // it was handed out before the state was saved, so it is no duplicate of itself
  int32_t pieces_done = 0;    // of its text, handed out before

  int32_t attempts = 0;  // from here on not saved
  CrawlClock::time_point failed_first{};
};

enum class FeedKind { kUnknown, kFeed, kSitemap, kSitemapIndex, kPage };
std::string_view feed_kind_name(FeedKind kind);  // "feed", "sitemap", "sitemap index", "page", ""

// An address that is asked again and again.
struct FeedState {
  std::string url;
  FeedKind kind = FeedKind::kUnknown;
  std::string etag, last_modified;
  double interval_s = 0;               // between polls; 0 before the first
  int64_t read_s = 0;                  // when it was last read whole, seconds since 1970; 0 never
  int32_t depth = 0;                   // older pages of a feed, sitemaps of an index: how far from the root
  bool once = false;                   // an older page of a feed, not asked again
  CrawlClock::time_point next_poll{};  // saved as time since 1970

  int32_t failures = 0;  // in a row; from here on not saved
  bool in_flight = false;
};

struct CrawlState {
  std::string url;       // the root
  int64_t document = 0;  // handed out so far
  int64_t bytes = 0;     // of pages handed out, as fetched
  FeedKind kind = FeedKind::kUnknown;
  std::map<uint64_t, FeedState> feeds;  // the root is number 0
};

// As JSON. `pages` in the order in which they are to be read.
std::string save_crawl(const CrawlState& state, const std::vector<const PageTask*>& pages, const SeenPages& seen);
// kInvalidArgument for what save_crawl() did not write; then nothing has changed.
Status load_crawl(std::string_view text, CrawlState& state, std::vector<PageTask>& pages, SeenPages& seen);

}  // namespace streamvec
