// A small site and the means to crawl it, for tests of CrawlSource.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "streamvec/source/http/crawl_source.h"
#include "streamvec/source/http/http_testing.h"

namespace streamvec {

inline std::string article(const std::string& name, const std::string& head = "") {
  std::string html = "<!doctype html><html><head><title>Story " + name + "</title>" + head +
                     "</head><body><nav><a href=/>Home</a> <a href=/about>About us</a></nav><article><h1>Story " +
                     name + "</h1>";
  for (int i = 0; i < 4; ++i)
    html += "<p>Paragraph " + std::to_string(i) + " of story" + name +
            " tells at some length what happened, where it happened, and what people who saw it had to say.</p>";
  return html + "</article><footer>All rights reserved</footer></body></html>";
}

struct Entry {
  std::string link, date = "";
};

inline std::string rss(const std::vector<Entry>& entries) {
  std::string xml = "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>The feed</title>";
  for (const Entry& entry : entries) {
    xml += "<item><title>t</title><link>" + entry.link + "</link>";
    if (!entry.date.empty()) xml += "<pubDate>" + entry.date + "</pubDate>";
    xml += "</item>";
  }
  return xml + "</channel></rss>";
}

inline std::string sitemap(const std::string& tag, const std::string& item, const std::vector<Entry>& entries) {
  std::string xml = "<?xml version=\"1.0\"?><" + tag + " xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">";
  for (const Entry& entry : entries) {
    xml += "<" + item + "><loc>" + entry.link + "</loc>";
    if (!entry.date.empty()) xml += "<lastmod>" + entry.date + "</lastmod>";
    xml += "</" + item + ">";
  }
  return xml + "</" + tag + ">";
}

// A server with a feed at /feed that names pages /1 to /n, the newest first, and the means to crawl it.
class CrawlSourceTest : public ::testing::Test {
 protected:
  void make_site(int pages) {
    std::vector<Entry> entries;
    for (int i = pages; i > 0; --i) {
      server_.page("/" + std::to_string(i), article(std::to_string(i)));
      entries.push_back({"/" + std::to_string(i)});
    }
    set_feed("/feed", rss(entries));
  }
  void set_feed(const std::string& target, const std::string& xml, const std::string& etag = "") {
    ScriptedAnswer answer = {.body = xml, .headers = {"Content-Type: application/xml"}};
    if (!etag.empty()) answer.headers.push_back("ETag: " + etag);
    server_.set(target, answer);
  }
  CrawlSource::Options options() {
    CrawlSource::Options options;
    options.fetcher = &fetcher_;
    options.poll_min = std::chrono::milliseconds(5);
    options.poll_first = std::chrono::milliseconds(10);
    options.poll_max = std::chrono::milliseconds(40);
    options.sitemap_poll_min = std::chrono::milliseconds(10);
    options.sitemap_poll_max = std::chrono::milliseconds(40);
    return options;
  }
  std::unique_ptr<CrawlSource> open(const std::string& target, CrawlSource::Options with) {
    return std::move(CrawlSource::open(server_.url(target), with)).value();
  }
  std::unique_ptr<CrawlSource> open(const std::string& target) { return open(target, options()); }

  // Reads until there are `count` documents, or nothing comes for a while.
  static std::vector<Document> read(Source& source, size_t count,
                                    std::chrono::milliseconds wait = std::chrono::seconds(20)) {
    std::vector<Document> documents;
    const Deadline deadline = Deadline::after(wait);
    while (documents.size() < count) {
      const auto left = static_cast<int64_t>(count - documents.size());
      const Result<int64_t> got = source.read(left, deadline, documents);
      if (!got.ok() || *got == 0) break;
    }
    return documents;
  }
  // Reads, in vain, until `holds`.
  static void read_in_vain_until(Source& source, const std::function<bool()>& holds) {
    for (const Deadline end = Deadline::after(std::chrono::seconds(30)); !holds() && !end.passed();)
      EXPECT_TRUE(read(source, 1, std::chrono::milliseconds(10)).empty());
    EXPECT_TRUE(holds());
  }
  // Reads, in vain, until the feed was asked for so often.
  void await_polls(Source& source, size_t count) {
    read_in_vain_until(source, [&] { return server_.count("/feed") >= count; });
  }
  std::vector<std::string> targets(const std::vector<Document>& documents) const {
    std::vector<std::string> ids;
    for (const Document& document : documents) ids.push_back(document.id.substr(server_.url("").size()));
    return ids;
  }

  ScriptedServer server_;
  Fetcher fetcher_{testing_fetch_options()};
};

}  // namespace streamvec
