#include "streamvec/source/http/crawl_source.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "streamvec/core/json.h"
#include "streamvec/source/piece.h"

namespace streamvec {
namespace {

constexpr size_t kHandedMax = 65'536;
constexpr int kPollsAtOnce = 4;
constexpr double kRecentHalfLife_s = 60;

double seconds_between(CrawlClock::time_point from, CrawlClock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

std::string cursor_of(int64_t document) {
  return "{\"document\":" + std::to_string(document) + "}";
}

// Of sources opened by name.
CrawlSource::Options& named_options() {
  static CrawlSource::Options options;
  return options;
}

}  // namespace

void CrawlSource::set_poll_min(Milliseconds poll_min) {
  Options& options = named_options();
  options.poll_min = poll_min;
  options.poll_first = 5 * poll_min;
  options.poll_max = std::max(Options().poll_max, options.poll_first);
}

Result<std::unique_ptr<Source>> CrawlSource::open(const std::string& name) {
  STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<CrawlSource> source, open(name, named_options()));
  return std::unique_ptr<Source>(std::move(source));
}

Result<std::unique_ptr<CrawlSource>> CrawlSource::open(const std::string& name, Options options) {
  STREAMVEC_ASSIGN_OR_RETURN(Url root, Url::parse(name));
  return std::unique_ptr<CrawlSource>(new CrawlSource(std::move(root), options));
}

CrawlSource::CrawlSource(Url root, Options options)
    : root_(std::move(root)),
      options_(options),
      fetcher_(options.fetcher != nullptr ? *options.fetcher : Fetcher::process()),
      random_(options.seed),
      seen_(static_cast<size_t>(options.seen_max)),
      recent_at_(CrawlClock::now()) {
  reset();
}

CrawlSource::~CrawlSource() = default;

// To the beginning, with nothing under way.
void CrawlSource::reset() {
  channel_ = std::make_unique<Fetcher::Channel>(fetcher_);
  state_ = {};
  state_.url = root_.text;
  state_.feeds[0].url = root_.text;
  seen_ = SeenPages(static_cast<size_t>(options_.seen_max));
  last_feed_ = 0;
  hosts_.clear();
  tasks_ = text_tasks_ = pages_in_flight_ = 0;
  in_flight_.clear();
  ready_.clear();
  handed_.clear();
  root_status_ = {};
  final_ = false;
  newest_s_ = 0;
}

Result<int64_t> CrawlSource::read(int64_t count_max, Deadline deadline, std::vector<Document>& out) {
  for (;;) {
    while (std::optional<FetchResponse> response = channel_->take(Deadline::after({}))) receive(*std::move(response));
    schedule();
    const int64_t count = hand_out(count_max, out);
    publish();
    if (count > 0) return count;
    if (final_) return root_status_;
    if (ended()) {
      STREAMVEC_RETURN_IF_ERROR(end_status());
      return 0;
    }
    if (deadline.passed()) return late();
    const CrawlClock::time_point until = std::min(deadline.when(), next_due());
    const CrawlClock::duration wait = std::max(until - CrawlClock::now(), CrawlClock::duration::zero());
    if (std::optional<FetchResponse> response = channel_->take(Deadline::after(wait))) receive(*std::move(response));
  }
}

bool CrawlSource::ended() const {
  return state_.kind == FeedKind::kPage && tasks_ == 0 && pages_in_flight_ == 0 && ready_.empty();
}

Status CrawlSource::end_status() const {
  if (state_.document > 0) return {};
  return error(Code::kInvalidArgument, counts_.last_error.empty() ? root_.text + " holds no text" : counts_.last_error,
               "; try the address of a feed, a sitemap or an article");
}

Status CrawlSource::late() const {
  const bool idle = tasks_ == 0 && pages_in_flight_ == 0;
  if (idle && !root_status_.ok()) return error(Code::kUnavailable, root_status_.message());
  return error(Code::kDeadlineExceeded, "no new page came from ", root_.text, " in time");
}

void CrawlSource::schedule() {
  const CrawlClock::time_point now = CrawlClock::now();
  if (!final_) poll_feeds(now);
  submit_pages(now);
}

void CrawlSource::poll_feeds(CrawlClock::time_point now) {
  for (auto& [number, feed] : state_.feeds) {
    if (polls_in_flight() >= kPollsAtOnce || tasks_ >= options_.queue_max) return;
    if (feed.in_flight || feed.kind == FeedKind::kPage || feed.next_poll > now) continue;
    const Result<Url> url = Url::parse(feed.url);
    if (!url.ok()) continue;
    feed.in_flight = true;
    ++counts_.polls;
    FetchRequest request = {.url = *url, .etag = feed.etag, .last_modified = feed.last_modified};
    request.accept =
        "application/rss+xml, application/atom+xml, application/feed+json, application/xml;q=0.9, text/xml;q=0.9, "
        "text/html;q=0.8, */*;q=0.5";
    in_flight_[channel_->submit(std::move(request))].feed = number;
  }
}

// Hosts in turn, so that a slow one does not hold up the others.
void CrawlSource::submit_pages(CrawlClock::time_point now) {
  auto host = hosts_.upper_bound(last_host_);
  for (size_t left = hosts_.size(); left > 0; --left) {
    if (host == hosts_.end()) host = hosts_.begin();
    HostQueue& queue = host->second;
    while (!queue.tasks.empty() && queue.not_before <= now && queue.in_flight < options_.pages_per_host &&
           pages_in_flight_ + static_cast<int64_t>(ready_.size()) < options_.pages_ahead) {
      last_host_ = host->first;
      submit_page(queue);
    }
    const bool idle = queue.tasks.empty() && queue.in_flight == 0 && queue.not_before <= now;
    host = idle ? hosts_.erase(host) : std::next(host);
  }
}

void CrawlSource::submit_page(HostQueue& queue) {
  PageTask task = std::move(queue.tasks.front());
  queue.tasks.pop_front();
  --tasks_;
  if (task.url.empty()) {
    --text_tasks_;
    PageText text;
    text.text = task.text;
    return add_page(std::move(task), std::move(text), 0);
  }
  const Result<Url> url = Url::parse(task.url);
  if (!url.ok()) return give_up(task, url.status());
  ++queue.in_flight;
  ++pages_in_flight_;
  in_flight_[channel_->submit({.url = *url})].page = std::move(task);
}

// When there is something to do without an answer of the network.
CrawlClock::time_point CrawlSource::next_due() const {
  CrawlClock::time_point due = CrawlClock::time_point::max();
  if (tasks_ < options_.queue_max && polls_in_flight() < kPollsAtOnce)
    for (const auto& [number, feed] : state_.feeds)
      if (!feed.in_flight && feed.kind != FeedKind::kPage) due = std::min(due, feed.next_poll);
  if (pages_in_flight_ < options_.pages_ahead)
    for (const auto& [name, queue] : hosts_)
      if (!queue.tasks.empty() && queue.in_flight < options_.pages_per_host) due = std::min(due, queue.not_before);
  return due;
}

int64_t CrawlSource::polls_in_flight() const {
  return static_cast<int64_t>(in_flight_.size()) - pages_in_flight_;
}

int64_t CrawlSource::hand_out(int64_t count_max, std::vector<Document>& out) {
  int64_t count = 0;
  while (count < count_max && !ready_.empty()) {
    ReadyPage& page = ready_.front();
    if (page.next == 0) begin_page(page);
    Document document = {std::move(page.pieces[page.next]), cursor_of(++state_.document)};
    document.id = page.id;
    document.time_s = page.time_s;
    out.push_back(std::move(document));
    newest_s_ = std::max(newest_s_, page.time_s);
    ++count;
    if (++page.next == page.pieces.size()) ready_.pop_front();
  }
  const CrawlClock::time_point now = CrawlClock::now();
  recent_ *= std::exp2(-seconds_between(std::exchange(recent_at_, now), now) / kRecentHalfLife_s);
  recent_ += static_cast<double>(count);
  counts_.documents += count;
  return count;
}

// From here on the page counts as handed out, until a checkpoint of an older state asks for it again.
void CrawlSource::begin_page(const ReadyPage& page) {
  HandedPage handed;
  handed.task = page.task;
  handed.task.again = true;
  handed.first = state_.document + 1;
  handed.last = state_.document + static_cast<int64_t>(page.pieces.size());
  handed.bytes_before = state_.bytes;
  state_.bytes += page.bytes;
  handed_.push_back(std::move(handed));
  if (handed_.size() > kHandedMax) handed_.pop_front();
}

Result<int64_t> CrawlSource::number_of(const std::string& cursor) const {
  if (cursor.empty()) return 0;
  const nlohmann::json json = parse_json(cursor);
  const auto number = json.is_object() ? json.find("document") : json.end();
  if (!json.is_object() || number == json.end() || !number->is_number_integer())
    return error(Code::kInvalidArgument, root_.text, ": no cursor of a crawl: ", cursor.substr(0, 100));
  return number->get<int64_t>();
}

std::string CrawlSource::saved(const std::string& cursor) const {
  const Result<int64_t> number = number_of(cursor);
  if (!number.ok()) return cursor;
  CrawlState state = state_;
  state.document = std::min(*number, state_.document);
  std::deque<PageTask> again;
  for (const HandedPage& page : handed_) {
    if (page.last <= *number) continue;
    again.push_back(page.task);
    const int64_t done = std::max<int64_t>(0, *number - page.first + 1);
    again.back().pieces_done += static_cast<int32_t>(done);
    if (done == 0) state.bytes = std::min(state.bytes, page.bytes_before);
  }
  std::vector<const PageTask*> pages;
  for (const PageTask& task : again) pages.push_back(&task);
  for (const ReadyPage& page : ready_)
    if (page.next == 0) pages.push_back(&page.task);
  for (const auto& [id, flight] : in_flight_)
    if (flight.page) pages.push_back(&*flight.page);
  for (const auto& [name, queue] : hosts_)
    for (const PageTask& task : queue.tasks) pages.push_back(&task);
  return save_crawl(state, pages, seen_);
}

Status CrawlSource::commit(const std::string& cursor) {
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t number, number_of(cursor));
  while (!handed_.empty() && handed_.front().last <= number) handed_.pop_front();
  return {};
}

Status CrawlSource::seek(const std::string& cursor) {
  if (cursor.empty()) {
    reset();
    return {};
  }
  std::string text = cursor;
  if (const Result<int64_t> number = number_of(cursor); number.ok() && cursor.find("\"crawl\"") == std::string::npos) {
    const int64_t oldest = handed_.empty() ? state_.document : handed_.front().first - 1;
    if (*number < oldest || *number > state_.document)
      return error(Code::kFailedPrecondition, root_.text, ": the state at document ", *number, " was not saved");
    text = saved(cursor);
  }
  CrawlState state;
  std::vector<PageTask> pages;
  SeenPages seen(static_cast<size_t>(options_.seen_max));
  STREAMVEC_RETURN_IF_ERROR(load_crawl(text, state, pages, seen));
  if (state.url != root_.text)
    return error(Code::kFailedPrecondition, "the state is one of ", state.url, ", not of ", root_.text);
  reset();
  state_ = std::move(state);
  seen_ = std::move(seen);
  last_feed_ = state_.feeds.rbegin()->first;
  for (PageTask& task : pages) enqueue(std::move(task));
  return {};
}

std::vector<std::string> CrawlSource::notes() const {
  std::vector<std::string> notes;
  const auto note = [&](int64_t count, const std::string& what) {
    if (count > 0) notes.push_back(root_.text + ": " + std::to_string(count) + what);
  };
  if (!counts_.feeds_named.empty())
    notes.push_back(root_.text + " is one page; its site has a feed: " + counts_.feeds_named.front());
  note(counts_.pages_given_up,
       " pages could not be read" + (counts_.last_error.empty() ? "" : "; the last error: " + counts_.last_error));
  note(counts_.polls_failed, " polls failed");
  note(counts_.links_refused, " links were refused");
  return notes;
}

CrawlStatistics CrawlSource::statistics() const {
  const std::lock_guard lock(mutex_);
  return published_;
}

void CrawlSource::publish() {
  CrawlStatistics now = counts_;
  now.kind = feed_kind_name(state_.kind);
  now.documents_per_s = recent_ * std::log(2.0) / kRecentHalfLife_s;
  now.bytes = state_.bytes;
  now.pages_waiting = tasks_ + pages_in_flight_ + static_cast<int64_t>(ready_.size());
  now.feeds = static_cast<int64_t>(state_.feeds.size());
  const auto unix_now = std::chrono::system_clock::now().time_since_epoch();
  if (newest_s_ > 0) now.lag_s = std::chrono::duration<double>(unix_now).count() - static_cast<double>(newest_s_);
  now.next_poll_s = std::max(0.0, seconds_between(CrawlClock::now(), state_.feeds.begin()->second.next_poll));
  const std::lock_guard lock(mutex_);
  published_ = std::move(now);
}

}  // namespace streamvec
