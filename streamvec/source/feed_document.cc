#include "streamvec/source/feed_document.h"

#include <simdjson.h>

#include <algorithm>
#include <string>
#include <utility>

#include "streamvec/source/feed_text.h"
#include "streamvec/source/feed_xml.h"
#include "streamvec/source/time_text.h"
#include "streamvec/text/charset.h"

namespace streamvec {
namespace {

namespace dom = simdjson::dom;

constexpr size_t kDocumentBytesMax = size_t{64} << 20;  // sitemaps may have 50 MB

std::string field(dom::element object, std::string_view key) {
  std::string_view text;
  if (object[key].get(text) == simdjson::SUCCESS) return std::string(text.substr(0, feed::kFieldBytesMax));
  int64_t number = 0;  // version 1 let ids be numbers
  return object[key].get(number) == simdjson::SUCCESS ? std::to_string(number) : "";
}

FeedEntry json_entry(dom::element item) {
  FeedEntry entry;
  entry.url = field(item, "url");
  if (entry.url.empty()) entry.url = field(item, "external_url");
  entry.id = field(item, "id");
  if (entry.id.empty()) entry.id = entry.url;
  entry.title = field(item, "title");
  entry.summary_html = field(item, "content_html");
  for (const char* key : {"content_text", "summary"})
    if (entry.summary_html.empty()) feed::append_escaped(field(item, key), entry.summary_html);
  for (const char* key : {"date_published", "date_modified"})
    if (const Result<int64_t> time = parse_time(field(item, key)); time.ok() && entry.time_s == 0) entry.time_s = *time;
  return entry;
}

Result<FeedDocument> parse_json_feed(std::string_view utf8) {
  dom::parser parser;
  dom::element root;
  const auto failure = parser.parse(utf8.data(), utf8.size(), true).get(root);
  if (failure != simdjson::SUCCESS)
    return error(Code::kInvalidArgument, "not a feed: begins like JSON, but ", simdjson::error_message(failure));
  dom::array items;
  if (field(root, "version").find("jsonfeed.org/version/1") == std::string::npos ||
      root["items"].get(items) != simdjson::SUCCESS)
    return error(Code::kInvalidArgument, "not a feed: JSON without \"version\": \"https://jsonfeed.org/version/1...\" ",
                 "and \"items\"");
  FeedDocument document;
  document.title = field(root, "title");
  document.next = field(root, "next_url");
  for (dom::element item : items) {
    if (document.entries.size() >= feed::kEntriesMax) break;
    FeedEntry entry = json_entry(item);
    if (entry.url.empty() && entry.title.empty() && entry.summary_html.empty()) continue;
    document.entries.push_back(std::move(entry));
  }
  return document;
}

bool is_address(std::string_view line) {
  return (line.starts_with("http://") || line.starts_with("https://")) &&
         line.find_first_of(" \t<>\"") == std::string_view::npos;
}

// The text form of a sitemap: one address a line and nothing else.
Result<FeedDocument> parse_address_list(std::string_view text) {
  FeedDocument document;
  document.kind = FeedDocument::Kind::kSitemap;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = feed::trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    if (!is_address(line)) return error(Code::kInvalidArgument, "not a feed or sitemap: neither XML nor JSON");
    if (document.entries.size() >= feed::kEntriesMax) break;
    document.entries.push_back({.url = std::string(line), .id = std::string(line), .title = "", .summary_html = ""});
  }
  if (document.entries.empty()) return error(Code::kInvalidArgument, "not a feed or sitemap: it is empty");
  return document;
}

}  // namespace

Result<FeedDocument> parse_feed(std::string_view bytes, std::string_view content_type) {
  if (bytes.size() > kDocumentBytesMax)
    return error(Code::kResourceExhausted, "a feed of ", bytes.size(), " bytes; the limit is ", kDocumentBytesMax);
  std::string scratch;
  const std::string_view text = feed::trimmed(to_utf8(bytes, content_type, false, scratch));
  if (text.starts_with('{') || text.starts_with('[')) return parse_json_feed(text);
  if (text.find('<') == std::string_view::npos) return parse_address_list(text);
  return feed::parse_feed_xml(text);
}

}  // namespace streamvec
