#include "streamvec/source/newsroom/site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "streamvec/source/newsroom/page_fault.h"

namespace streamvec::newsroom {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Site> start(Site::Options options) {
  Result<std::unique_ptr<Site>> site = Site::start(std::move(options));
  EXPECT_TRUE(site.ok()) << site.status().message();
  return std::move(site).value();
}

Site::Options everything_with_faults() {
  return {.writer = {}, .articles = 3'000, .rate = 0, .faults = 1, .slow = std::chrono::milliseconds(20)};
}

int64_t first(PageFault fault) {
  int64_t number = 0;
  while (page_fault(1, number, 1) != fault) ++number;
  return number;
}

std::string path(const Site& site, int64_t number) {
  return site.article_url(number).substr(site.url().size());
}

TEST(NewsSite, TakesAFreePortAndServes) {
  const auto one = start(everything_with_faults()), other = start(everything_with_faults());
  EXPECT_NE(one->port(), other->port());
  httplib::Client client("127.0.0.1", one->port());
  const auto robots = client.Get("/robots.txt");
  ASSERT_TRUE(robots);
  EXPECT_EQ(robots->status, 200);
  EXPECT_THAT(robots->body, HasSubstr(one->url() + "/sitemap.xml"));
}

TEST(NewsSite, RefusesAPortThatIsTaken) {
  const auto site = start(everything_with_faults());
  Site::Options options = everything_with_faults();
  options.port = site->port();
  EXPECT_EQ(Site::start(options).status().code(), Code::kUnavailable);
}

TEST(NewsSite, SendsTheSamePageCompressedToWhoAcceptsIt) {
  const auto site = start(everything_with_faults());
  httplib::Client client("127.0.0.1", site->port());
  const std::string target = path(*site, first(PageFault::kNone));
  const auto plain = client.Get(target.c_str(), {{"Accept-Encoding", "identity"}});
  const auto small = client.Get(target.c_str(), {{"Accept-Encoding", "gzip, br"}});
  ASSERT_TRUE(plain && small);
  EXPECT_EQ(small->get_header_value("Content-Encoding"), "gzip");
  EXPECT_EQ(small->body, plain->body) << "the client decodes it";
  EXPECT_LT(std::stoul(small->get_header_value("Content-Length")), plain->body.size() / 2);
}

TEST(NewsSite, AnUnchangedFeedIsNotSentAgain) {
  const auto site = start(everything_with_faults());
  httplib::Client client("127.0.0.1", site->port());
  const auto first_answer = client.Get("/feed.xml");
  ASSERT_TRUE(first_answer);
  const auto second = client.Get("/feed.xml", {{"If-None-Match", first_answer->get_header_value("ETag")}});
  ASSERT_TRUE(second);
  EXPECT_EQ(second->status, 304);
  EXPECT_EQ(second->body, "");
  EXPECT_THAT(client.Get("/feed.xml?page=2")->body, HasSubstr("page=3"));
}

TEST(NewsSite, AnAnswerThatIsCutOffFailsOnceAndThenArrives) {
  const auto site = start(everything_with_faults());
  httplib::Client client("127.0.0.1", site->port());
  const std::string target = path(*site, first(PageFault::kCutOff));
  EXPECT_FALSE(client.Get(target.c_str()));
  const auto again = client.Get(target.c_str());
  ASSERT_TRUE(again);
  EXPECT_THAT(again->body, HasSubstr("</html>"));
}

TEST(NewsSite, ServesManyReadersAtOnce) {
  const auto site = start(everything_with_faults());
  std::vector<std::thread> readers;
  std::atomic<int> good = 0;
  for (int reader = 0; reader < 4; ++reader)
    readers.emplace_back([&, reader] {
      httplib::Client client("127.0.0.1", site->port());
      client.set_keep_alive(true);
      for (int64_t number = reader; number < 200; number += 4) {
        const auto answer = client.Get(path(*site, number).c_str());
        good += answer && answer->status == 200;
      }
    });
  for (std::thread& reader : readers) reader.join();
  EXPECT_GE(good, 180);
}

TEST(NewsSite, StopsWithinSecondsWhileReadersKeepConnectionsAndWaitForSlowAnswers) {
  Site::Options options = everything_with_faults();
  options.slow = std::chrono::hours(1);
  auto site = start(options);
  httplib::Client idle("127.0.0.1", site->port());
  idle.set_keep_alive(true);
  ASSERT_TRUE(idle.Get("/robots.txt"));
  std::thread waiting([port = site->port(), target = path(*site, first(PageFault::kSlow))] {
    (void)httplib::Client("127.0.0.1", port).Get(target.c_str());
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto begin = std::chrono::steady_clock::now();
  site.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60)) << "about one, on a quiet machine";
  waiting.join();
}

TEST(NewsSite, KnowsItsArticlesByTheirAddresses) {
  const auto site = start(everything_with_faults());
  EXPECT_EQ(Site::article_number(site->article_url(1'234)), 1'234);
  EXPECT_EQ(Site::article_number("http://127.0.0.1:1/old/7"), 7);
  EXPECT_EQ(Site::article_number("http://127.0.0.1:1/staff/50.html"), -1);
  EXPECT_EQ(Site::article_number("http://127.0.0.1:1/news/x"), -1);
  EXPECT_NEAR(static_cast<double>(site->readable(3'000)), 2'979, 15);
}

}  // namespace
}  // namespace streamvec::newsroom
