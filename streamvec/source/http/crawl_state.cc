#include "streamvec/source/http/crawl_state.h"

#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include "streamvec/core/clock.h"
#include "streamvec/core/json.h"

namespace streamvec {
namespace {

using Json = nlohmann::json;
using Seconds = std::chrono::duration<double>;

constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr double kNextPollMax_s = 86'400;  // a clock that was wrong when the state was saved does no more harm

std::string base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i)
      group = group << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0);
    for (size_t i = 0; i < 4; ++i) text += at + i <= bytes.size() ? kDigits[group >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

bool from_base64(std::string_view text, std::string& bytes) {
  if (text.size() % 4 != 0) return false;
  while (text.ends_with('=')) text.remove_suffix(1);
  uint32_t group = 0, bits = 0;
  for (const char c : text) {
    const char* digit = c == '\0' ? nullptr : std::strchr(kDigits, c);
    if (digit == nullptr) return false;
    group = group << 6 | static_cast<uint32_t>(digit - kDigits);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(group >> bits & 0xff);
  }
  return true;
}

Json json_of(const FeedState& feed) {
  const double wait_s = std::max(0.0, Seconds(feed.next_poll - CrawlClock::now()).count());
  return {{"url", feed.url},
          {"kind", static_cast<int>(feed.kind)},
          {"etag", feed.etag},
          {"modified", feed.last_modified},
          {"interval", feed.interval_s},
          {"read", feed.read_s},
          {"depth", feed.depth},
          {"once", feed.once},
          {"next", unix_now() + wait_s}};
}

// Throws as the library does for what is no whole number. (Its own get<int64_t>() takes 1e300 for one.)
int64_t whole(const Json& json) {
  return json.get_ref<const Json::number_integer_t&>();
}

FeedKind kind_of(const Json& json) {
  return static_cast<FeedKind>(std::clamp<int64_t>(whole(json), 0, static_cast<int64_t>(FeedKind::kPage)));
}

FeedState feed_of(const Json& json) {
  FeedState feed;
  feed.url = json.at("url").get<std::string>();
  feed.kind = kind_of(json.at("kind"));
  feed.etag = json.at("etag").get<std::string>();
  feed.last_modified = json.at("modified").get<std::string>();
  feed.interval_s = std::max(0.0, json.at("interval").get<double>());
  feed.read_s = whole(json.at("read"));
  feed.depth = static_cast<int32_t>(std::clamp<int64_t>(whole(json.at("depth")), 0, INT32_MAX));
  feed.once = json.at("once").get<bool>();
  const double wait_s = std::clamp(json.at("next").get<double>() - unix_now(), 0.0, kNextPollMax_s);
  feed.next_poll = CrawlClock::now() + std::chrono::duration_cast<CrawlClock::duration>(Seconds(wait_s));
  return feed;
}

Json json_of(const PageTask& page) {
  Json json = {{"time", page.time_s}, {"sure", page.time_is_sure}};
  if (!page.url.empty()) json["url"] = page.url;
  if (page.url.empty()) json["text"] = page.text, json["name"] = page.name;
  if (page.again) json["again"] = true;
  if (page.pieces_done > 0) json["pieces"] = page.pieces_done;
  return json;
}

PageTask page_of(const Json& json) {
  PageTask page;
  page.url = json.value("url", "");
  page.text = json.value("text", "");
  page.name = json.value("name", "");
  page.time_s = whole(json.at("time"));
  page.time_is_sure = json.at("sure").get<bool>();
  page.again = json.value("again", false);
  if (json.contains("pieces"))
    page.pieces_done = static_cast<int32_t>(std::clamp<int64_t>(whole(json["pieces"]), 0, INT32_MAX));
  return page;
}

}  // namespace

uint64_t SeenPages::hash_of(std::string_view name) {
  return XXH3_64bits(name.data(), name.size());
}

bool SeenPages::add(uint64_t hash) {
  if (!hashes_.insert(hash).second) return false;
  order_.push_back(hash);
  if (order_.size() > size_max_) {
    hashes_.erase(order_.front());
    order_.pop_front();
  }
  return true;
}

std::string SeenPages::text() const {
  std::string bytes;
  bytes.reserve(order_.size() * sizeof(uint64_t));
  for (const uint64_t hash : order_)
    for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(hash >> shift & 0xff);
  return base64(bytes);
}

Status SeenPages::read(std::string_view text) {
  std::string bytes;
  if (!from_base64(text, bytes) || bytes.size() % sizeof(uint64_t) != 0)
    return error(Code::kInvalidArgument, "the list of pages seen is damaged");
  hashes_.clear();
  order_.clear();
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof(uint64_t); ++i)
      hash |= uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
    add(hash);
  }
  return {};
}

std::string_view feed_kind_name(FeedKind kind) {
  constexpr std::string_view kNames[] = {"", "feed", "sitemap", "sitemap index", "page"};
  return kNames[static_cast<size_t>(kind)];
}

std::string save_crawl(const CrawlState& state, const std::vector<const PageTask*>& pages, const SeenPages& seen) {
  Json feeds = Json::array(), waiting = Json::array();
  for (const auto& [number, feed] : state.feeds) feeds.push_back(json_of(feed));
  for (const PageTask* page : pages) waiting.push_back(json_of(*page));
  const Json json = {{"crawl", 1},
                     {"url", state.url},
                     {"document", state.document},
                     {"bytes", state.bytes},
                     {"kind", static_cast<int>(state.kind)},
                     {"feeds", std::move(feeds)},
                     {"pages", std::move(waiting)},
                     {"seen", seen.text()}};
  return json_text(json);
}

Status load_crawl(std::string_view text, CrawlState& state, std::vector<PageTask>& pages, SeenPages& seen) {
  const Status damaged = error(Code::kInvalidArgument, "this is no state of a crawl: ", text.substr(0, 100));
  const Json json = parse_json(text);
  if (!json.is_object() || json.value("crawl", Json()) != Json(1)) return damaged;
  CrawlState loaded;
  std::vector<PageTask> waiting;
  std::string seen_text;
  try {  // the JSON library throws when a field is missing or of another type
    loaded.url = json.at("url").get<std::string>();
    loaded.document = whole(json.at("document"));
    loaded.bytes = whole(json.at("bytes"));
    loaded.kind = kind_of(json.at("kind"));
    for (const Json& feed : json.at("feeds")) loaded.feeds.emplace(loaded.feeds.size(), feed_of(feed));
    for (const Json& page : json.at("pages")) waiting.push_back(page_of(page));
    seen_text = json.at("seen").get<std::string>();
  } catch (const Json::exception&) {
    return damaged;
  }
  if (loaded.feeds.empty()) return damaged;
  STREAMVEC_RETURN_IF_ERROR(seen.read(seen_text));
  state = std::move(loaded);
  pages = std::move(waiting);
  return {};
}

}  // namespace streamvec
