// The saved state of a crawl (source/http/crawl_state.h): what loads is saved as the same state, and what does not load
// changes nothing.
#include "streamvec/source/http/crawl_state.h"

#include "fuzz/fuzz.h"

namespace streamvec {
namespace {

constexpr size_t kSeenMax = 8;

std::string save(const CrawlState& state, const std::vector<PageTask>& pages, const SeenPages& seen) {
  std::vector<const PageTask*> waiting;
  for (const PageTask& page : pages) waiting.push_back(&page);
  return save_crawl(state, waiting, seen);
}

// What changes with the clock is left out.
void check_same(const CrawlState& a, const CrawlState& b) {
  STREAMVEC_CHECK(a.url == b.url && a.document == b.document && a.bytes == b.bytes && a.kind == b.kind);
  STREAMVEC_CHECK_EQ(a.feeds.size(), b.feeds.size());
  for (auto x = a.feeds.begin(), y = b.feeds.begin(); x != a.feeds.end(); ++x, ++y) {
    STREAMVEC_CHECK(x->first == y->first && x->second.url == y->second.url && x->second.kind == y->second.kind);
    STREAMVEC_CHECK(x->second.etag == y->second.etag && x->second.depth == y->second.depth);
    STREAMVEC_CHECK(x->second.interval_s == y->second.interval_s && x->second.interval_s >= 0);
  }
}

}  // namespace

FuzzStart fuzz_start() {
  FuzzStart start;
  CrawlState state;
  state.url = "http://a.example/feed";
  state.kind = FeedKind::kFeed;
  state.feeds[0].url = state.url;
  state.feeds[0].etag = "\"e\"";
  state.feeds[0].interval_s = 600;
  state.feeds[1].url = "http://a.example/feed?p=2";
  state.feeds[1].once = true;
  SeenPages seen(kSeenMax);
  for (uint64_t hash = 1; hash < 5; ++hash) seen.add(hash * 0x9e3779b97f4a7c15);
  std::vector<PageTask> pages(2);
  pages[0].url = "http://a.example/1";
  pages[0].pieces_done = 2;
  pages[1].text = "all of it";
  pages[1].name = "g2";
  pages[1].again = true;
  start.seeds = {save(state, pages, seen), save(state, {}, SeenPages(kSeenMax))};
  start.words = {"\"kind\":", "\"next\":", "1e300", "-1", "null", "\"interval\":", "[[", "9223372036854775808"};
  return start;
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CrawlState state;
  state.url = "untouched";
  std::vector<PageTask> pages(1);
  SeenPages seen(kSeenMax);
  seen.add(42);
  if (const Status status = load_crawl(text, state, pages, seen); !status.ok()) {
    STREAMVEC_CHECK(status.code() == Code::kInvalidArgument);
    STREAMVEC_CHECK(state.url == "untouched" && pages.size() == 1 && seen.has(42));
    return 0;
  }
  STREAMVEC_CHECK(seen.size() <= kSeenMax);
  CrawlState again;
  std::vector<PageTask> pages_again;
  SeenPages seen_again(kSeenMax);
  STREAMVEC_CHECK(load_crawl(save(state, pages, seen), again, pages_again, seen_again).ok());
  check_same(state, again);
  STREAMVEC_CHECK(pages.size() == pages_again.size() && seen.text() == seen_again.text());
  return 0;
}
