#include "streamvec/source/newsroom/newsroom_source.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "streamvec/core/json.h"
#include "streamvec/source/location.h"

namespace streamvec {
namespace {

using Json = nlohmann::json;
using newsroom::Site;
using std::chrono::milliseconds;

constexpr int32_t kFeedItems = 200;
constexpr milliseconds kPoll{40};     // of the feed: 200 articles may come between two looks
constexpr milliseconds kBackoff{20};  // the site gets well at once
constexpr milliseconds kSlice{100};   // between looks at whether the end was reached

Fetcher::Options fetcher_options(const Site& site) {
  Fetcher::Options options;
  options.host_delay = milliseconds(0);
  options.backoff_first = kBackoff;
  options.backoff_max = 4 * kBackoff;
  options.private_hosts = {"127.0.0.1:" + std::to_string(site.port())};
  return options;
}

CrawlSource::Options crawl_options(Fetcher& fetcher) {
  CrawlSource::Options options;
  options.fetcher = &fetcher;
  options.poll_min = options.poll_first = options.poll_max = kPoll;
  options.pages_per_host = 8;
  return options;
}

int64_t now_s() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// "17:REST": articles handed out, and the crawler's own cursor.
struct Cursor {
  int64_t articles = 0;
  std::string crawl;

  std::string text() const { return std::to_string(articles) + ":" + crawl; }
  static Result<Cursor> parse(const std::string& text) {
    Cursor cursor;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), cursor.articles);
    if (failure != std::errc() || end == text.data() + text.size() || *end != ':' || cursor.articles < 0)
      return error(Code::kInvalidArgument, "not a cursor of a newsroom: ", text.substr(0, 200));
    cursor.crawl = end + 1;
    return cursor;
  }
};

}  // namespace

Result<std::unique_ptr<Source>> NewsroomSource::open(const std::string& name) {
  STREAMVEC_ASSIGN_OR_RETURN(const Location location, Location::parse(name));
  STREAMVEC_RETURN_IF_ERROR(location.check_keys({"articles", "seed", "rate", "change", "endless", "faults", "port"}));
  if (!location.host.empty() || !location.path.empty())
    return error(Code::kInvalidArgument, name, ": only settings may follow; try newsroom:?articles=6000&seed=1");
  const auto number = [&](const char* key, int64_t otherwise, int64_t least, int64_t most) {
    return location.integer(key, otherwise, least, most);
  };
  Options options;
  STREAMVEC_ASSIGN_OR_RETURN(options.articles, number("articles", options.articles, 1, 1'000'000'000));
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t seed, number("seed", 1, 0, int64_t{1} << 53));
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t rate, number("rate", 300, 0, 1'000'000));
  STREAMVEC_ASSIGN_OR_RETURN(options.change_at, number("change", 0, 0, 1'000'000'000));
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t endless, number("endless", 0, 0, 1));
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t faults, number("faults", 1, 0, 10));
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t port, number("port", 0, 0, 65'535));
  options.seed = static_cast<uint64_t>(seed);
  options.rate = static_cast<double>(rate);
  options.endless = endless == 1;
  options.faults = static_cast<double>(faults);
  options.port = static_cast<int32_t>(port);
  STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<NewsroomSource> source, open(options));
  return std::unique_ptr<Source>(std::move(source));
}

Result<std::unique_ptr<NewsroomSource>> NewsroomSource::open(Options options) {
  STREAMVEC_CHECK(options.articles > 0 && options.rate >= 0 && options.change_at >= 0);
  if (options.change_at == 0) options.change_at = options.articles / 2;
  std::unique_ptr<NewsroomSource> source(new NewsroomSource(options));
  STREAMVEC_RETURN_IF_ERROR(source->start({.port = options.port, .start_s = now_s()}));
  return source;
}

Status NewsroomSource::start(const Place& place) {
  crawl_.reset();
  fetcher_.reset();
  site_.reset();
  Site::Options options;
  options.writer = {.seed = options_.seed, .change_at = options_.change_at};
  options.articles = options_.endless ? 0 : options_.articles;
  options.rate = options_.rate;
  options.published = place.published;
  options.asked = place.asked;
  options.ahead_max = options.feed_items = kFeedItems;
  options.faults = options_.faults;
  options.port = place.port;
  options.start_s = place.start_s;
  STREAMVEC_ASSIGN_OR_RETURN(site_, Site::start(std::move(options)));
  fetcher_ = std::make_unique<Fetcher>(fetcher_options(*site_));
  STREAMVEC_ASSIGN_OR_RETURN(crawl_, CrawlSource::open(site_->url() + "/feed.xml", crawl_options(*fetcher_)));
  if (!options_.endless && readable_ == 0) readable_ = site_->readable(options_.articles);
  articles_read_ = 0;
  waited_ = {};
  return {};
}

bool NewsroomSource::ended() const {
  if (options_.endless) return false;
  return articles_read_ >= readable_ || waited_ >= options_.quiet;
}

Result<int64_t> NewsroomSource::read(int64_t count_max, Deadline deadline, std::vector<Document>& out) {
  while (!ended()) {
    const Deadline slice = std::min(deadline, Deadline::after(kSlice),
                                    [](const Deadline& a, const Deadline& b) { return a.when() < b.when(); });
    const size_t before = out.size();
    const Deadline::Clock::time_point begin = Deadline::Clock::now();
    const Result<int64_t> count = crawl_->read(count_max, slice, out);
    for (size_t i = before; i < out.size(); ++i) {
      articles_read_ += Site::article_number(out[i].id) >= 0;
      out[i].cursor = Cursor{articles_read_, out[i].cursor}.text();
    }
    // A slice that took far longer tells that this process was not running, not that the site was quiet.
    waited_ += std::min<Deadline::Clock::duration>(Deadline::Clock::now() - begin, 2 * kSlice);
    if (out.size() > before) {
      waited_ = {};
      return static_cast<int64_t>(out.size() - before);
    }
    if (count.ok()) return count;
    const Code code = count.status().code();
    if ((code != Code::kDeadlineExceeded && code != Code::kUnavailable) || deadline.passed()) return count.status();
  }
  return 0;
}

std::string NewsroomSource::saved(const std::string& cursor) const {
  const Result<Cursor> own = Cursor::parse(cursor);
  if (!own.ok()) return cursor;
  const Json json = {{"source", name()},
                     {"port", site_->port()},
                     {"start_s", site_->options().start_s},
                     {"published", site_->published()},
                     {"asked", site_->asked()},
                     {"articles", own->articles},
                     {"crawl", crawl_->saved(own->crawl)}};
  return json_text(json);
}

Status NewsroomSource::seek_saved(const std::string& saved) {
  const Json json = parse_json(saved);
  const auto number = [&](const char* key) -> int64_t {
    const auto found = json.find(key);
    return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : -1;
  };
  if (!json.is_object() || !json.value("source", Json()).is_string() || !json.value("crawl", Json()).is_string() ||
      number("port") <= 0 || number("port") > 65'535 || number("published") < 1 || number("asked") < 0 ||
      number("articles") < 0)
    return error(Code::kInvalidArgument, "not a cursor of a newsroom: ", saved.substr(0, 200));
  if (json["source"] != name())
    return error(Code::kFailedPrecondition, "the run stopped in ", json["source"].get<std::string>(),
                 ", but the source is now ", name(), "; name the same source, or start anew");
  STREAMVEC_RETURN_IF_ERROR(start({.port = static_cast<int32_t>(number("port")),
                                   .start_s = number("start_s"),
                                   .published = number("published"),
                                   .asked = number("asked")}));
  STREAMVEC_RETURN_IF_ERROR(crawl_->seek(json["crawl"].get<std::string>()));
  articles_read_ = number("articles");
  return {};
}

Status NewsroomSource::seek(const std::string& cursor) {
  if (cursor.empty()) return start({.port = options_.port, .start_s = now_s()});
  if (cursor.front() == '{') return seek_saved(cursor);
  STREAMVEC_ASSIGN_OR_RETURN(const Cursor own, Cursor::parse(cursor));
  STREAMVEC_RETURN_IF_ERROR(crawl_->seek(own.crawl));
  articles_read_ = own.articles;
  return {};
}

Status NewsroomSource::commit(const std::string& cursor) {
  STREAMVEC_ASSIGN_OR_RETURN(const Cursor own, Cursor::parse(cursor));
  return crawl_->commit(own.crawl);
}

std::string NewsroomSource::name() const {
  std::string text = "newsroom:?articles=" + std::to_string(options_.articles) +
                     "&seed=" + std::to_string(options_.seed) + "&change=" + std::to_string(options_.change_at);
  return text + (options_.endless ? "&endless=1" : "");
}

}  // namespace streamvec
