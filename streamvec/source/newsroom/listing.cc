#include "streamvec/source/newsroom/listing.h"

#include <ctime>

#include "streamvec/source/newsroom/boilerplate.h"
#include "streamvec/source/newsroom/page.h"

namespace streamvec::newsroom {
namespace {

constexpr char kXml[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

std::tm utc(int64_t time_s) {
  const auto time = static_cast<std::time_t>(time_s);
  std::tm parts = {};
  ::gmtime_r(&time, &parts);
  return parts;
}

std::string element(const std::string& tag, const std::string& content) {
  return "<" + tag + ">" + content + "</" + tag + ">";
}

std::string item(const ListedPage& page) {
  return element("item", element("title", escaped(page.title)) + element("link", escaped(page.url)) +
                             "<guid isPermaLink=\"true\">" + escaped(page.url) + "</guid>" +
                             element("pubDate", http_time(page.time_s)) +
                             element("description", "<![CDATA[<p>Continue reading on our homepage.</p>]]>")) +
         "\n";
}

}  // namespace

std::string http_time(int64_t time_s) {
  // Not strftime: its names of days and months depend on the locale.
  constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::tm parts = utc(time_s);
  char text[80];
  std::snprintf(text, sizeof(text), "%s, %02d %s %04d %02d:%02d:%02d GMT", kDays[parts.tm_wday], parts.tm_mday,
                kMonths[parts.tm_mon], parts.tm_year + 1900, parts.tm_hour, parts.tm_min, parts.tm_sec);
  return text;
}

std::string internet_time(int64_t time_s) {
  const std::tm parts = utc(time_s);
  char text[80];
  std::snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02dZ", parts.tm_year + 1900, parts.tm_mon + 1,
                parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
  return text;
}

std::string rss(const std::string& url, const std::string& next, const std::vector<ListedPage>& pages) {
  std::string text = std::string(kXml) + "<rss version=\"2.0\" xmlns:atom=\"http://www.w3.org/2005/Atom\"><channel>\n" +
                     element("title", std::string(boilerplate::kSiteName)) + element("link", escaped(url)) +
                     element("description", "Breaking headlines") + "<atom:link rel=\"self\" href=\"" + escaped(url) +
                     "\"/>\n";
  if (!next.empty()) text += "<atom:link rel=\"next\" href=\"" + escaped(next) + "\"/>\n";
  for (const ListedPage& page : pages) text += item(page);
  return text + "</channel></rss>\n";
}

std::string sitemap(const std::vector<ListedPage>& pages) {
  std::string text = std::string(kXml) + "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n";
  for (const ListedPage& page : pages)
    text += element("url", element("loc", escaped(page.url)) + element("lastmod", internet_time(page.time_s))) + "\n";
  return text + "</urlset>\n";
}

std::string sitemap_index(const std::vector<std::string>& urls) {
  std::string text = std::string(kXml) + "<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n";
  for (const std::string& url : urls) text += element("sitemap", element("loc", escaped(url))) + "\n";
  return text + "</sitemapindex>\n";
}

std::string robots(const std::string& path, const std::string& sitemap_url) {
  return "# The Loopback Herald welcomes polite readers.\nUser-agent: *\nDisallow: " + path +
         "\nAllow: /\n\nSitemap: " + sitemap_url + "\n";
}

}  // namespace streamvec::newsroom
