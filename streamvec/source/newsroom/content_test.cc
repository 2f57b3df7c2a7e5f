#include "streamvec/source/newsroom/content.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "streamvec/text/article.h"

namespace streamvec::newsroom {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kUrl[] = "http://127.0.0.1:99";

// A site's content under a clock that the test moves.
struct Fixture {
  explicit Fixture(Site::Options options) : content(with_clock(std::move(options)), kUrl) {}

  Answer get(const std::string& path, const Condition& condition = {}, int64_t page = 1) {
    return content.answer(path, page, condition);
  }
  std::string path(int64_t number) const { return content.article_url(number).substr(sizeof(kUrl) - 1); }
  int64_t first(PageFault fault) const {
    int64_t number = 0;
    while (content.fault(number) != fault) ++number;
    return number;
  }

  double now = 100;
  Content content;

 private:
  Site::Options with_clock(Site::Options options) {
    options.clock = [this] { return now; };
    return options;
  }
};

// Everything is out.
Site::Options everything(int64_t articles = 2'000) {
  return {.writer = {}, .articles = articles, .rate = 0};
}

int64_t count_of(const std::string& text, const std::string& part) {
  int64_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

TEST(NewsContent, ArticlesComeOutWithTimeAndThenNoMore) {
  Fixture site({.writer = {}, .articles = 25, .rate = 10});
  EXPECT_EQ(site.content.published(), 1);
  EXPECT_EQ(site.get(site.path(5)).status, 404);
  site.now += 1;
  EXPECT_EQ(site.content.published(), 11);
  EXPECT_EQ(site.get(site.path(5)).status, 200);
  site.now += 100;
  EXPECT_EQ(site.content.published(), 25);
  site.now -= 100;
  EXPECT_EQ(site.content.published(), 25) << "what is out stays out";
}

TEST(NewsContent, PublishingWaitsForReaders) {
  Fixture site({.writer = {}, .articles = 0, .rate = 1'000, .ahead_max = 5});
  site.now += 100;
  EXPECT_EQ(site.content.published(), 5);
  site.get(site.path(1));
  site.get(site.path(1));
  site.get(site.path(3));
  EXPECT_EQ(site.content.published(), 5) << "article 0 is still to be read";
  site.get(site.path(0));
  EXPECT_EQ(site.content.published(), 7);
  site.get(site.path(2));
  EXPECT_EQ(site.content.published(), 9);
  EXPECT_EQ(site.content.asked(), 4);
}

TEST(NewsContent, PublishingGoesOnWhereItWasBefore) {
  Fixture site({.writer = {}, .articles = 0, .rate = 10, .published = 50, .asked = 47, .ahead_max = 5});
  EXPECT_EQ(site.content.published(), 50);
  site.now += 100;
  EXPECT_EQ(site.content.published(), 52);
  site.get(site.path(47));
  EXPECT_EQ(site.content.published(), 53);
}

TEST(NewsContent, TheFeedListsTheNewestFirstAndOlderOnFurtherPages) {
  Fixture site(everything());
  const std::string newest = site.get("/feed.xml").body;
  EXPECT_EQ(count_of(newest, "<item>"), 200 + 4) << "four of them are traps";
  EXPECT_LT(newest.find("/news/1999-"), newest.find("/news/1998-"));
  EXPECT_THAT(newest, HasSubstr("rel=\"next\" href=\"http://127.0.0.1:99/feed.xml?page=2\""));
  const std::string last = site.get("/feed.xml", {}, 10).body;
  EXPECT_THAT(last, HasSubstr("/news/0-"));
  EXPECT_THAT(last, Not(HasSubstr("rel=\"next\"")));
  EXPECT_EQ(site.get("/feed.xml", {}, 11).status, 404);
  EXPECT_EQ(site.get("/feed.xml", {}, -1).status, 404);
}

TEST(NewsContent, AFeedThatDidNotChangeIsNotSentAgain) {
  Fixture site({.writer = {}, .articles = 1'000, .rate = 10});
  const Answer first = site.get("/feed.xml");
  EXPECT_EQ(site.get("/feed.xml", {first.etag, first.last_modified}).status, 304);
  site.now += 0.15;
  EXPECT_EQ(site.get("/feed.xml", {first.etag, first.last_modified}).status, 200);
}

TEST(NewsContent, ATimeAloneNeverHidesAnArticleOfTheSameSecond) {
  Fixture site({.writer = {}, .articles = 1'000, .rate = 10});
  const Answer first = site.get("/feed.xml");
  EXPECT_EQ(site.get("/feed.xml", {"", first.last_modified}).status, 200);
  site.now += 100;
  const Answer last = site.get("/feed.xml");
  EXPECT_EQ(site.get("/feed.xml", {"", last.last_modified}).status, 304);
}

TEST(NewsContent, TheSitemapNamesEveryArticleOnce) {
  Fixture site(everything(1'200));
  EXPECT_EQ(count_of(site.get("/sitemap.xml").body, "<loc>"), 3);
  int64_t pages = 0, traps = 0;
  for (int part = 0; part < 3; ++part) {
    const std::string body = site.get("/sitemap-" + std::to_string(part) + ".xml").body;
    pages += count_of(body, "/news/") + count_of(body, "/old/");
    traps += count_of(body, "/staff/");
  }
  EXPECT_EQ(pages, 1'200);
  EXPECT_EQ(traps, 24);
  EXPECT_EQ(site.get("/sitemap-3.xml").status, 404);
}

TEST(NewsContent, RobotsForbidsTheTrap) {
  Fixture site(everything());
  EXPECT_THAT(site.get("/robots.txt").body, HasSubstr("Disallow: /staff/\n"));
  EXPECT_THAT(site.get("/robots.txt").body, HasSubstr("Sitemap: http://127.0.0.1:99/sitemap.xml\n"));
  EXPECT_THAT(site.get("/staff/50.html").body, HasSubstr("Contrabandium"));
}

TEST(NewsContent, EveryFaultIsMetAndAboutOnePageInTwentyFiveHasOne) {
  Fixture site(everything(5'000));
  int64_t faults = 0;
  for (int64_t number = 0; number < 5'000; ++number) faults += site.content.fault(number) != PageFault::kNone;
  EXPECT_NEAR(static_cast<double>(faults), 210, 60);
  EXPECT_EQ(site.get(site.path(site.first(PageFault::kGone))).status, 404);
  EXPECT_EQ(site.get(site.path(site.first(PageFault::kEmpty))).body, "");
  EXPECT_TRUE(site.get(site.path(site.first(PageFault::kSlow))).slow);
  const int64_t moved = site.first(PageFault::kMoved);
  EXPECT_EQ(site.get("/old/" + std::to_string(moved)).location, site.content.article_url(moved));
}

TEST(NewsContent, ATruncatedPageHasMostOfItsStory) {
  Fixture site(everything(5'000));
  ArticleExtractor extractor;
  Article article;
  for (int64_t number = 0; number < 5'000; ++number) {
    if (site.content.fault(number) != PageFault::kTruncated) continue;
    const Answer answer = site.get(site.path(number));
    EXPECT_THAT(answer.body, Not(HasSubstr("</html>"))) << number;
    extractor.extract(answer.body, article);
    EXPECT_GT(article.text.size(), Writer({}).story(number).text().size() / 2) << number;
  }
}

TEST(NewsContent, FaultsThatPassAreGoneAtTheSecondRequest) {
  Fixture site(everything(5'000));
  const std::string busy = site.path(site.first(PageFault::kBusy)), cut = site.path(site.first(PageFault::kCutOff));
  EXPECT_EQ(site.get(busy).status, 500);
  EXPECT_EQ(site.get(busy).status, 200);
  EXPECT_TRUE(site.get(cut).cut_off);
  EXPECT_FALSE(site.get(cut).cut_off);
}

TEST(NewsContent, AWrongCharsetIsEitherInTheHeaderOrInTheBytes) {
  Fixture site(everything(5'000));
  int seen[2] = {0, 0};
  for (int64_t number = 0; number < 5'000; ++number) {
    if (site.content.fault(number) != PageFault::kWrongCharset) continue;
    const Answer answer = site.get(site.path(number));
    const bool in_header = answer.type.find("windows-1252") != std::string::npos;
    ++seen[in_header];
    EXPECT_TRUE(in_header || answer.body.find("“") == std::string::npos) << number;
  }
  EXPECT_GT(seen[0], 0);
  EXPECT_GT(seen[1], 0);
}

TEST(NewsContent, WithoutFaultsEveryPageIsWhole) {
  Site::Options options = everything(300);
  options.faults = 0;
  Fixture site(options);
  for (int64_t number = 0; number < 300; ++number) {
    const Answer answer = site.get(site.path(number));
    ASSERT_EQ(answer.status, 200) << number;
    ASSERT_THAT(answer.body, HasSubstr("</html>")) << number;
  }
}

}  // namespace
}  // namespace streamvec::newsroom
