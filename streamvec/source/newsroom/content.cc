#include "streamvec/source/newsroom/content.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

namespace streamvec::newsroom {
namespace {

constexpr std::string_view kNews = "/news/", kOld = "/old/", kStaff = "/staff/", kSitemap = "/sitemap-";
constexpr int64_t kTrapEvery = 50;
constexpr int64_t kSitemapArticles = 500, kSitemapsMax = 1'000;
constexpr int64_t kFrontLinks = 20, kRelatedLinks = 6;
constexpr size_t kFailedMax = 10'000;
constexpr double kRateOfTimes = 300;  // articles a second where no rate tells when they were written

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The number at the front of `text`, -1 when there is none.
int64_t leading_number(std::string_view text) {
  int64_t number = -1;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc() && number >= 0 ? number : -1;
}

std::string slug(const std::string& title) {
  std::string text = title.substr(0, 40);
  for (char& c : text) c = c == ' ' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
}

// UTF-8 as windows-1252, as far as stories need it.
void write_windows_1252(std::string& text) {
  replace_all(text, "“", "\x93");
  replace_all(text, "”", "\x94");
  replace_all(text, "—", "\x97");
}

// Where in `html` a paragraph is: just after its first words that have no mark-up in them.
size_t somewhere_in(std::string_view paragraph, std::string_view html) {
  constexpr size_t kBytes = 20;
  for (size_t begin = 0; begin + kBytes <= paragraph.size(); ++begin)
    if (const size_t at = html.find(paragraph.substr(begin, kBytes)); at != std::string_view::npos) return at + kBytes;
  return html.size() / 2;
}

Answer not_found() {
  return {.status = 404, .body = "<!DOCTYPE html><title>Not found</title><h1>Page not found</h1>"};
}

Answer xml(std::string body, std::string type = "application/xml; charset=utf-8") {
  return {.type = std::move(type), .body = std::move(body)};
}

}  // namespace

Content::Content(const Site::Options& options, std::string url)
    : options_(options),
      url_(std::move(url)),
      writer_(options.writer),
      publisher_({options.articles, options.rate, options.published, options.asked, options.ahead_max},
                 options.clock ? options.clock : steady_seconds) {}

int64_t Content::time_s(int64_t number) const {
  const double rate = options_.rate > 0 ? options_.rate : kRateOfTimes;
  return options_.start_s + static_cast<int64_t>(static_cast<double>(number) / rate);
}

std::string Content::article_url(int64_t number) const {
  return url_ + std::string(kNews) + std::to_string(number) + "-" + slug(writer_.title(number)) + ".html";
}

void Content::list(int64_t number, std::vector<ListedPage>& pages) const {
  const bool is_moved = fault(number) == PageFault::kMoved;
  pages.push_back({is_moved ? url_ + std::string(kOld) + std::to_string(number) : article_url(number),
                   writer_.title(number), time_s(number)});
  if (number % kTrapEvery == 0)
    pages.push_back(
        {url_ + std::string(kStaff) + std::to_string(number) + ".html", writer_.trap(number).title, time_s(number)});
}

Answer Content::answer(std::string_view path, int64_t page, const Condition& condition) {
  if (path == "/feed.xml") return feed(page, condition);
  if (path.starts_with(kNews)) return article(path.substr(kNews.size()));
  if (path.starts_with(kOld)) return moved(path.substr(kOld.size()));
  if (path.starts_with(kStaff)) return trap(path.substr(kStaff.size()));
  if (path.starts_with(kSitemap)) return sitemap_part(path.substr(kSitemap.size()));
  if (path == "/sitemap.xml") return sitemap_parts();
  if (path == "/robots.txt") return {.type = "text/plain", .body = robots(std::string(kStaff), url_ + "/sitemap.xml")};
  if (path == "/") return front();
  return not_found();
}

// Whether the reader's copy of a list that ends with `newest` is the same. A time has whole seconds: it says so only
// once no further article can fall into that second.
bool Content::is_same(const Answer& answer, int64_t newest, const Condition& condition) const {
  if (!condition.etag.empty()) return condition.etag == answer.etag;
  return condition.modified_since == answer.last_modified &&
         (newest + 1 == options_.articles || time_s(newest + 1) > time_s(newest));
}

Answer Content::feed(int64_t page, const Condition& condition) const {
  const int64_t count = published();
  const int64_t end = count - (page - 1) * options_.feed_items;
  if (page < 1 || end <= 0) return not_found();
  Answer answer = xml("", "application/rss+xml; charset=utf-8");
  answer.etag = "\"" + std::to_string(options_.writer.seed) + "-" + std::to_string(end) + "\"";
  answer.last_modified = http_time(time_s(end - 1));
  if (is_same(answer, end - 1, condition)) {
    answer.status = 304;
    return answer;
  }
  std::vector<ListedPage> pages;
  const int64_t begin = std::max<int64_t>(0, end - options_.feed_items);
  for (int64_t number = end; number-- > begin;) list(number, pages);
  const auto address = [&](int64_t which) {
    return url_ + "/feed.xml" + (which == 1 ? "" : "?page=" + std::to_string(which));
  };
  answer.body = rss(address(page), begin > 0 ? address(page + 1) : "", pages);
  return answer;
}

Answer Content::sitemap_parts() const {
  const int64_t parts = (published() + kSitemapArticles - 1) / kSitemapArticles;
  std::vector<std::string> urls;
  for (int64_t part = std::max<int64_t>(0, parts - kSitemapsMax); part < parts; ++part)
    urls.push_back(url_ + std::string(kSitemap) + std::to_string(part) + ".xml");
  return xml(sitemap_index(urls));
}

Answer Content::sitemap_part(std::string_view path) const {
  const int64_t part = leading_number(path), count = published();
  if (part < 0 || part > count / kSitemapArticles) return not_found();
  std::vector<ListedPage> pages;
  const int64_t end = std::min(count, (part + 1) * kSitemapArticles);
  for (int64_t number = part * kSitemapArticles; number < end; ++number) list(number, pages);
  return xml(sitemap(pages));
}

Answer Content::front() const {
  const int64_t count = published();
  std::vector<Link> links;
  for (int64_t number = count; number-- > std::max<int64_t>(0, count - kFrontLinks);)
    links.push_back({article_url(number), writer_.title(number)});
  return {.body = front_html(links)};
}

Page Content::page(Story story, const std::string& url) const {
  Page page{url, internet_time(time_s(story.number)), std::move(story), {}};
  const int64_t newest = published() - 1;
  for (int64_t i = 1; i <= kRelatedLinks; ++i) {
    const int64_t other = page.story.number - i * 7;
    if (other >= 0 && other <= newest) page.related.push_back({article_url(other), writer_.title(other)});
  }
  return page;
}

Answer Content::article_page(int64_t number, PageFault fault) const {
  const Story story = writer_.story(number);
  Answer answer{.body = page_html(page(story, article_url(number)))};
  answer.etag = "\"" + std::to_string(options_.writer.seed) + "-" + std::to_string(number) + "\"";
  answer.last_modified = http_time(time_s(number));
  if (fault == PageFault::kTruncated) answer.body.resize(somewhere_in(story.paragraphs.back(), answer.body));
  if (fault == PageFault::kWrongCharset && number % 2 == 0) write_windows_1252(answer.body);
  if (fault == PageFault::kWrongCharset && number % 2 == 1) answer.type = "text/html; charset=windows-1252";
  if (fault == PageFault::kEmpty) answer.body.clear();
  answer.slow = fault == PageFault::kSlow;
  return answer;
}

// Whether this request meets a fault that passes: the first one for its page does.
bool Content::fails_now(int64_t number, PageFault fault) {
  if (fault != PageFault::kBusy && fault != PageFault::kCutOff) return false;
  const std::lock_guard guard(lock_);
  if (!failed_.insert(number).second) return false;
  if (failed_.size() > kFailedMax) failed_.erase(failed_.begin());
  return true;
}

Answer Content::article(std::string_view path) {
  const int64_t number = leading_number(path);
  if (number < 0 || number >= published()) return not_found();
  publisher_.note_asked(number);
  const PageFault fault = this->fault(number);
  const bool fails = fails_now(number, fault);
  if (fault == PageFault::kGone) return not_found();
  if (fails && fault == PageFault::kBusy) return {.status = 500, .body = "<h1>Internal server error</h1>"};
  Answer answer = article_page(number, fault);
  answer.cut_off = fails;
  return answer;
}

Answer Content::moved(std::string_view path) const {
  const int64_t number = leading_number(path);
  if (number < 0 || number >= published()) return not_found();
  return {.status = 301, .location = article_url(number)};
}

Answer Content::trap(std::string_view path) const {
  const int64_t number = leading_number(path);
  if (number < 0 || number >= published() || number % kTrapEvery != 0) return not_found();
  return {.body = page_html(page(writer_.trap(number), url_ + std::string(kStaff) + std::to_string(number) + ".html"))};
}

}  // namespace streamvec::newsroom
