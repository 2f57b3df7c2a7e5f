// Feed, sitemap and robots.txt of the newsroom's site, as text. Private to the newsroom.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace streamvec::newsroom {

struct ListedPage {
  std::string url, title;
  int64_t time_s = 0;
};

std::string http_time(int64_t time_s);      // "Sun, 06 Nov 1994 08:49:37 GMT"
std::string internet_time(int64_t time_s);  // RFC 3339: "1994-11-06T08:49:37Z"

// RSS 2.0; `url` is its own address, `next` that of the page with older items, "" when there is none.
std::string rss(const std::string& url, const std::string& next, const std::vector<ListedPage>& pages);
std::string sitemap(const std::vector<ListedPage>& pages);
std::string sitemap_index(const std::vector<std::string>& urls);
// Forbids `path` to everybody and names the sitemap.
std::string robots(const std::string& path, const std::string& sitemap_url);

}  // namespace streamvec::newsroom
