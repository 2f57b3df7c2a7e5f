// What a crawl does with answers: feeds become pages to read, pages become documents, failures are tried again.
#include <algorithm>
#include <utility>

#include "streamvec/source/http/content_decoder.h"
#include "streamvec/source/http/crawl_source.h"
#include "streamvec/source/piece.h"

namespace streamvec {
namespace {

constexpr int32_t kDepthMax = 2;        // an index of indexes is the deepest that is read
constexpr int64_t kTextTasksMax = 256;  // entries waiting with their text
constexpr int64_t kDay_s = 86'400;

bool may_pass(Code code) {
  return code == Code::kUnavailable || code == Code::kDeadlineExceeded || code == Code::kDataLoss;
}

int64_t unix_now_s() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

CrawlClock::time_point after_s(double seconds) {
  return CrawlClock::now() + std::chrono::duration_cast<CrawlClock::duration>(std::chrono::duration<double>(seconds));
}

double seconds_of(CrawlSource::Milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

FeedKind kind_of(FeedDocument::Kind kind) {
  if (kind == FeedDocument::Kind::kSitemap) return FeedKind::kSitemap;
  return kind == FeedDocument::Kind::kSitemapIndex ? FeedKind::kSitemapIndex : FeedKind::kFeed;
}

std::vector<std::string> cut(std::string text) {
  std::vector<std::string> pieces;
  std::string_view rest = text;
  while (rest.size() > kPieceBytes) {
    const size_t size = piece_bytes(rest.substr(0, kPieceBytes + 1));
    pieces.emplace_back(rest.substr(0, size));
    rest.remove_prefix(size);
  }
  if (pieces.empty()) {
    pieces.push_back(std::move(text));
  } else if (!rest.empty()) {
    pieces.emplace_back(rest);
  }
  return pieces;
}

// The text of an entry, cut to what is kept of it, not inside a character.
std::string kept_text(const FeedEntry& entry) {
  std::string text = entry.title.empty() ? "" : entry.title + "\n";
  text += fragment_text(entry.summary_html);
  if (text.size() <= kPieceBytes) return text;
  size_t size = kPieceBytes;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  text.resize(size);
  return text;
}

}  // namespace

void CrawlSource::receive(FetchResponse response) {
  const auto found = in_flight_.find(response.id);
  if (found == in_flight_.end()) return;
  InFlight flight = std::move(found->second);
  in_flight_.erase(found);
  if (!response.robots.empty()) counts_.robots = response.robots;
  if (!response.status.ok()) counts_.last_error = response.status.message();
  if (const auto host = hosts_.find(response.url.authority()); host != hosts_.end() && response.host_answers) {
    host->second.answered = CrawlClock::now();
    host->second.not_before = {};  // it is well again
  }
  if (flight.page) return receive_page(*std::move(flight.page), response);
  receive_feed(flight.feed, std::move(response));
}

void CrawlSource::receive_feed(uint64_t number, FetchResponse response) {
  FeedState& feed = state_.feeds.at(number);
  feed.in_flight = false;
  if (!response.status.ok()) return feed_failed(number, response);
  if (response.http_status == 304) {
    feed.failures = 0;
    if (number == 0) root_status_ = {};
    return set_next_poll(feed, response.max_age_s, false);
  }
  Result<std::string> bytes =
      decoded_file(std::move(response.body), static_cast<size_t>(fetcher_.options().body_bytes_max));
  response.status = bytes.status();
  if (bytes.ok()) response.body = *std::move(bytes);
  if (!response.status.ok()) return feed_failed(number, response);
  const Result<FeedDocument> document = parse_feed(response.body, response.content_type);
  if (!document.ok() && number == 0 && feed.kind == FeedKind::kUnknown) return become_page(response);
  response.status = document.status();
  if (!document.ok()) return feed_failed(number, response);
  feed.failures = 0;
  if (number == 0) root_status_ = {};
  take_document(number, response, *document);
}

void CrawlSource::feed_failed(uint64_t number, const FetchResponse& response) {
  FeedState& feed = state_.feeds.at(number);
  counts_.last_error = response.status.message();
  ++counts_.polls_failed;
  ++feed.failures;
  const bool passing = may_pass(response.status.code());
  if (number == 0) {
    root_status_ = response.status;
    final_ = !passing && feed.read_s == 0;
  }
  if (feed.once && (!passing || feed.failures >= options_.attempts_max)) {
    state_.feeds.erase(number);
    return;
  }
  if (!passing) return set_next_poll(feed, 0, false);
  // The host's wait grows with its failures; a fault that the host is not blamed for waits a sixtieth of poll_min.
  feed.next_poll = after_s(std::max(response.host_wait_s, seconds_of(options_.poll_min) / 60));
}

void CrawlSource::set_next_poll(FeedState& feed, double least_s, bool news) {
  const bool sitemap = feed.kind == FeedKind::kSitemap || feed.kind == FeedKind::kSitemapIndex;
  const double min_s = seconds_of(sitemap ? options_.sitemap_poll_min : options_.poll_min);
  const double max_s = seconds_of(sitemap ? options_.sitemap_poll_max : options_.poll_max);
  const double first_s = sitemap ? min_s : seconds_of(options_.poll_first);
  if (feed.interval_s <= 0) {
    feed.interval_s = first_s;
  } else {
    feed.interval_s *= news ? 0.5 : 1.5;
  }
  feed.interval_s = std::clamp(feed.interval_s, min_s, max_s);
  const double wait_s = std::min(std::max(feed.interval_s, least_s), max_s);
  feed.next_poll = after_s(wait_s * (0.9 + 0.2 * static_cast<double>(random_.uniform())));
}

// The root is neither feed nor sitemap: it is the one page to read.
void CrawlSource::become_page(const FetchResponse& response) {
  state_.kind = state_.feeds[0].kind = FeedKind::kPage;
  seen_.add(SeenPages::hash_of(root_.text));
  counts_.feeds_named = feeds_named(response.url, response.body);
  PageTask task;
  task.url = root_.text;
  task.again = true;
  PageText text;
  const Status status = reader_.read(response, text);
  if (!status.ok()) return give_up(task, status);
  ++counts_.pages_read;
  add_page(std::move(task), std::move(text), response.bytes);
}

void CrawlSource::take_document(uint64_t number, const FetchResponse& response, const FeedDocument& document) {
  FeedState& feed = state_.feeds.at(number);
  feed.kind = kind_of(document.kind);
  if (number == 0) {
    state_.kind = feed.kind;
    counts_.title = document.title;
  }
  bool whole = true;
  int64_t news = 0;
  if (feed.kind == FeedKind::kSitemapIndex) {
    news = take_index(feed, response.url, document);
  } else {
    // Feeds begin with the newest entry, and text is read in the order in which it was written.
    for (auto entry = document.entries.rbegin(); entry != document.entries.rend(); ++entry)
      news += take_entry(feed, response.url, *entry, whole) ? 1 : 0;
  }
  const bool first = feed.read_s == 0;
  feed.read_s = unix_now_s();
  feed.etag = whole ? response.etag : "";
  feed.last_modified = whole ? response.last_modified : "";
  if (feed.kind == FeedKind::kFeed && first && news > 0 && !document.next.empty())
    follow_next(feed, response.url, document.next);
  if (feed.once) {
    state_.feeds.erase(number);
    return;
  }
  set_next_poll(feed, std::max(document.poll_after_s, response.max_age_s), news > 0);
}

// Older entries of a feed stand on pages of their own (RFC 5005); they are read once.
void CrawlSource::follow_next(const FeedState& feed, const Url& base, const std::string& next) {
  const Result<Url> url = base.resolve(next);
  if (!url.ok() || feed.depth + 1 >= options_.feed_pages_max || !seen_.add(SeenPages::hash_of("feed " + url->text)))
    return;
  FeedState older;
  older.url = url->text;
  older.kind = FeedKind::kFeed;
  older.depth = feed.depth + 1;
  older.once = true;
  state_.feeds[++last_feed_] = std::move(older);
}

// Whether the entry is new. `whole` is taken back when there is no room for it now.
bool CrawlSource::take_entry(const FeedState& feed, const Url& base, const FeedEntry& entry, bool& whole) {
  if (entry.url.empty()) return take_text_entry(entry, whole);
  const Result<Url> url = base.resolve(entry.url);
  if (!url.ok()) {
    ++counts_.links_refused;
    return false;
  }
  const uint64_t hash = SeenPages::hash_of(url->text);
  // Of a sitemap that was read before, an old page that is not remembered was forgotten, not added.
  const bool old =
      feed.kind == FeedKind::kSitemap && feed.read_s > 0 && entry.time_s > 0 && entry.time_s < feed.read_s - kDay_s;
  if (old || !seen_.add(hash)) return false;
  PageTask task;
  task.url = url->text;
  task.time_s = entry.time_s;
  task.time_is_sure = feed.kind == FeedKind::kFeed;
  enqueue(std::move(task));
  return true;
}

bool CrawlSource::take_text_entry(const FeedEntry& entry, bool& whole) {
  const std::string name = root_.text + "#" + (entry.id.empty() ? entry.title : entry.id);
  const uint64_t hash = SeenPages::hash_of(name);
  if (entry.summary_html.empty() || seen_.has(hash)) return false;
  if (text_tasks_ >= kTextTasksMax) {
    whole = false;
    return false;
  }
  seen_.add(hash);
  PageTask task;
  task.text = kept_text(entry);
  task.name = name;
  task.time_s = entry.time_s;
  task.time_is_sure = true;
  enqueue(std::move(task));
  return true;
}

// Sitemaps that are new or changed are due at once. Returns how many.
int64_t CrawlSource::take_index(const FeedState& index, const Url& base, const FeedDocument& document) {
  if (index.depth >= kDepthMax) return 0;
  std::unordered_map<std::string, uint64_t> known;
  for (const auto& [number, feed] : state_.feeds) known.emplace(feed.url, number);
  int64_t news = 0;
  for (const FeedEntry& entry : document.entries) {
    const Result<Url> url = base.resolve(entry.url);
    if (!url.ok()) {
      ++counts_.links_refused;
      continue;
    }
    const auto [found, added] = known.emplace(url->text, last_feed_ + 1);
    if (added && static_cast<int64_t>(state_.feeds.size()) <= options_.sitemaps_max) {
      FeedState& sitemap = state_.feeds[++last_feed_];
      sitemap.url = url->text;
      sitemap.depth = index.depth + 1;
      ++news;
    } else if (!added && entry.time_s > state_.feeds.at(found->second).read_s) {
      state_.feeds.at(found->second).next_poll = {};
      ++news;
    } else if (added) {
      known.erase(found);
    }
  }
  return news;
}

void CrawlSource::receive_page(PageTask task, const FetchResponse& response) {
  --pages_in_flight_;
  if (const Result<Url> url = Url::parse(task.url); url.ok()) --hosts_[url->authority()].in_flight;
  if (!response.status.ok()) return page_failed(std::move(task), response);
  PageText text;
  const Status status = reader_.read(response, text);
  if (!status.ok()) return give_up(task, status);
  ++counts_.pages_read;
  if (is_duplicate(task, response.url, text.url)) {
    ++counts_.pages_duplicate;
    return;
  }
  add_page(std::move(task), std::move(text), response.bytes);
}

// Whether the address it was redirected to, or the name it gives itself, is that of a page seen before.
bool CrawlSource::is_duplicate(const PageTask& task, const Url& reached, const Url& own) {
  bool duplicate = false;
  for (const Url* url : {&reached, &own})
    if (url->text != task.url && (url == &reached || url->text != reached.text))
      duplicate |= !seen_.add(SeenPages::hash_of(url->text));
  return duplicate && !task.again;
}

void CrawlSource::page_failed(PageTask task, const FetchResponse& response) {
  const CrawlClock::time_point now = CrawlClock::now();
  const Code code = response.status.code();
  if (task.attempts++ == 0) task.failed_first = now;
  const Result<Url> url = Url::parse(task.url);
  if (!may_pass(code) || !url.ok()) return give_up(task, response.status);
  HostQueue& host = hosts_[url->authority()];
  // A host that is down, or cuts everything short, takes no page's tries: they wait with it.
  const bool page_to_blame = host.answered > task.failed_first;
  const bool tried_enough = task.attempts >= options_.attempts_max && page_to_blame;
  if (tried_enough || now - task.failed_first > options_.give_up_after) return give_up(task, response.status);
  ++counts_.pages_failed;
  host.not_before = std::max(host.not_before, after_s(response.host_wait_s));
  enqueue(std::move(task));
}

void CrawlSource::give_up(const PageTask&, const Status& why) {
  ++counts_.pages_given_up;
  counts_.last_error = why.message();
}

void CrawlSource::enqueue(PageTask task) {
  const Result<Url> url = Url::parse(task.url);
  if (task.url.empty()) ++text_tasks_;
  hosts_[url.ok() ? url->authority() : ""].tasks.push_back(std::move(task));
  ++tasks_;
}

void CrawlSource::add_page(PageTask task, PageText text, int64_t bytes) {
  ReadyPage page;
  page.pieces = cut(std::move(text.text));
  page.id = task.url.empty() ? task.name : text.url.text;
  const bool feed_first = task.time_is_sure || text.time_s == 0;
  page.time_s = feed_first && task.time_s != 0 ? task.time_s : text.time_s;
  page.bytes = task.pieces_done > 0 ? 0 : bytes;
  const auto done = static_cast<std::ptrdiff_t>(
      std::min<size_t>(static_cast<size_t>(std::max(task.pieces_done, 0)), page.pieces.size()));
  page.pieces.erase(page.pieces.begin(), page.pieces.begin() + done);
  page.task = std::move(task);
  if (!page.pieces.empty() && !page.pieces.front().empty()) ready_.push_back(std::move(page));
}

}  // namespace streamvec
