// Text from the web: a feed, a sitemap or a page, found out by looking.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/source/feed_document.h"
#include "streamvec/source/http/crawl_state.h"
#include "streamvec/source/http/fetcher.h"
#include "streamvec/source/http/response_text.h"
#include "streamvec/source/source.h"

namespace streamvec {

// How a crawl goes: for a dashboard.
struct CrawlStatistics {
  std::string kind;            // "feed", "sitemap", "sitemap index", "page"; "" not known yet
  std::string title;           // of the feed
  int64_t documents = 0;       // handed out by this process
  double documents_per_s = 0;  // lately: over about a minute
  int64_t bytes = 0;           // of pages, as they came
  int64_t polls = 0;           // of feeds and sitemaps, and how many of them failed
  int64_t polls_failed = 0;
  int64_t pages_read = 0;    // fetched and turned into text
  int64_t pages_failed = 0;  // fetches of pages that failed, to be tried again
  int64_t pages_given_up = 0;
  int64_t pages_duplicate = 0;           // other addresses of a page seen before
  int64_t links_refused = 0;             // no http or https, too long, with credentials
  int64_t pages_waiting = 0;             // found, not handed out yet
  int64_t feeds = 0;                     // asked again and again: the root, and the sitemaps of an index
  std::vector<std::string> feeds_named;  // by a page that is the whole source: perhaps what was meant
  std::string robots;                    // what robots.txt said last
  std::string last_error;                // "" when there was none
  double lag_s = 0;                      // from the time of the newest document until now; 0 unknown
  double next_poll_s = 0;                // until the root is asked again; 0 now or never
};

// A feed (RSS, Atom, JSON Feed) or sitemap (an index, .gz too) is asked again and again, with conditional requests,
// more often while it brings news and less often while it does not; each page it names is read once, its article is the
// document. An URL that is neither is one page, and the stream ends after it.
//
// Document: text as response_text.h has it, cut as piece.h says; `id` the page's own address, `time_s` the feed's date
// or else the page's. Pages of one feed come in the order of the feed's dates as far as hosts answer in that order.
//
// A page that fails for a reason that may pass is tried again (after the host's wait, see Fetcher) and given up after
// `attempts_max` tries if its host answers otherwise, or after `give_up_after`. One bad page is never an error of
// read(). kUnavailable: the root itself cannot be had and nothing else is left to read. Final: the root is not there,
// forbidden, or no text, and never was otherwise.
//
// Cursors are short; saved() holds the feeds' states, all pages found but not handed out, and the pages seen. It can be
// asked for the last 65,536 pages handed out and not committed. seek(saved) hands out again exactly the documents after
// that cursor, as far as the site still has them. seek() also takes a cursor of this object.
//
// Memory: at most about queue_max + 50,000 addresses of up to 2 KB, seen_max hashes of about 40 bytes, pages_ahead
// pages of up to 8 MiB. A site with more than seen_max pages is read again in part only where its sitemap gives no
// dates.
class CrawlSource : public Source {
 public:
  using Milliseconds = std::chrono::milliseconds;
  struct Options {
    Fetcher* fetcher = nullptr;        // the process's own when there is none; outlives the source
    Milliseconds poll_min{60'000};     // a feed that brings news each time is asked this often
    Milliseconds poll_first{300'000};  // the first wait
    Milliseconds poll_max{3'600'000};  // a feed that brings none
    Milliseconds sitemap_poll_min{3'600'000};
    Milliseconds sitemap_poll_max{86'400'000};
    int32_t pages_ahead = 32;             // fetched or under way, not handed out
    int32_t pages_per_host = 2;           // under way or waiting their turn at the fetcher
    int64_t queue_max = 10'000;           // no further sitemap is read while more pages wait
    int64_t seen_max = int64_t{1} << 18;  // pages remembered
    int64_t sitemaps_max = 10'000;        // of an index
    int32_t feed_pages_max = 8;           // older pages of a feed that are read at the beginning
    int32_t attempts_max = 5;
    Milliseconds give_up_after{3'600'000};
    uint64_t seed = 1;  // of the jitter of polls
  };
  // "https://example.org/feed". Does not use the network. kInvalidArgument when it is no URL that can be read.
  static Result<std::unique_ptr<Source>> open(const std::string& name);
  static Result<std::unique_ptr<CrawlSource>> open(const std::string& name, Options options);
  // poll_min of the sources that are opened by name from now on; their first wait is five times that. Not thread-safe.
  static void set_poll_min(Milliseconds poll_min);
  ~CrawlSource() override;

  Result<int64_t> read(int64_t count_max, Deadline deadline, std::vector<Document>& out) override;
  Status seek(const std::string& cursor) override;
  std::string saved(const std::string& cursor) const override;
  Status commit(const std::string& cursor) override;
  Capabilities capabilities() const override { return {.endless = true}; }
  int64_t bytes_total() const override { return -1; }
  int64_t bytes_read() const override { return state_.bytes; }
  std::string name() const override { return state_.url; }
  std::string permission() const override { return statistics().robots; }
  std::vector<std::string> notes() const override;

  CrawlStatistics statistics() const;  // thread-safe

 private:
  struct HostQueue {
    std::deque<PageTask> tasks;
    int32_t in_flight = 0;
    CrawlClock::time_point not_before{}, answered{};
  };
  struct InFlight {
    std::optional<PageTask> page;
    uint64_t feed = 0;  // when it is no page
  };
  // A page whose text is there.
  struct ReadyPage {
    PageTask task;
    std::vector<std::string> pieces;
    size_t next = 0;  // piece to be handed out
    std::string id;
    int64_t time_s = 0, bytes = 0;
  };
  // A page of which at least one piece was handed out.
  struct HandedPage {
    PageTask task;
    int64_t first = 0, last = 0;  // numbers of its documents
    int64_t bytes_before = 0;
  };

  CrawlSource(Url root, Options options);
  void reset();

  void schedule();
  void poll_feeds(CrawlClock::time_point now);
  void submit_pages(CrawlClock::time_point now);
  void submit_page(HostQueue& queue);
  CrawlClock::time_point next_due() const;
  int64_t polls_in_flight() const;
  bool ended() const;
  Status end_status() const;
  Status late() const;

  void receive(FetchResponse response);
  void receive_feed(uint64_t number, FetchResponse response);
  void receive_page(PageTask task, const FetchResponse& response);
  void feed_failed(uint64_t number, const FetchResponse& response);
  void set_next_poll(FeedState& feed, double least_s, bool news);
  void become_page(const FetchResponse& response);
  void take_document(uint64_t number, const FetchResponse& response, const FeedDocument& document);
  void follow_next(const FeedState& feed, const Url& base, const std::string& next);
  bool take_entry(const FeedState& feed, const Url& base, const FeedEntry& entry, bool& whole);
  bool take_text_entry(const FeedEntry& entry, bool& whole);
  int64_t take_index(const FeedState& index, const Url& base, const FeedDocument& document);
  void page_failed(PageTask task, const FetchResponse& response);
  void give_up(const PageTask& task, const Status& why);
  void add_page(PageTask task, PageText text, int64_t bytes);
  void enqueue(PageTask task);
  bool is_duplicate(const PageTask& task, const Url& reached, const Url& own);

  int64_t hand_out(int64_t count_max, std::vector<Document>& out);
  void begin_page(const ReadyPage& page);
  Result<int64_t> number_of(const std::string& cursor) const;
  void publish();

  const Url root_;
  const Options options_;
  Fetcher& fetcher_;
  Random random_;
  std::unique_ptr<Fetcher::Channel> channel_;
  ResponseReader reader_;

  CrawlState state_;
  SeenPages seen_;
  uint64_t last_feed_ = 0;                  // the highest number given to one
  std::map<std::string, HostQueue> hosts_;  // by authority
  std::string last_host_;                   // whose turn was last
  int64_t tasks_ = 0;                       // in all of hosts_
  int64_t text_tasks_ = 0;                  // of them with their text
  int64_t pages_in_flight_ = 0;
  std::unordered_map<uint64_t, InFlight> in_flight_;
  std::deque<ReadyPage> ready_;
  std::deque<HandedPage> handed_;
  Status root_status_;  // why the root cannot be had
  bool final_ = false;  // and never will
  int64_t newest_s_ = 0;

  CrawlStatistics counts_;  // the reader's own
  double recent_ = 0;       // documents, those of a minute ago counting half
  CrawlClock::time_point recent_at_{};
  mutable std::mutex mutex_;
  CrawlStatistics published_;
};

}  // namespace streamvec
