#include "streamvec/source/http/crawl_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "streamvec/source/http/crawl_testing.h"
#include "streamvec/source/http/source_check.h"
#include "streamvec/source/testing_files.h"

namespace streamvec {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

TEST_F(CrawlSourceTest, AFeedBecomesItsArticlesOldestFirst) {
  make_site(3);
  const auto source = open("/feed");
  const std::vector<Document> documents = read(*source, 3);
  EXPECT_THAT(targets(documents), ElementsAre("/1", "/2", "/3"));
  ASSERT_EQ(documents.size(), 3u);
  EXPECT_THAT(documents[0].text, AllOf(StartsWith("Story 1\n"), HasSubstr("Paragraph 3 of story1"),
                                       ::testing::Not(HasSubstr("About us"))));
  const CrawlStatistics statistics = source->statistics();
  EXPECT_EQ(statistics.kind, "feed");
  EXPECT_EQ(statistics.title, "The feed");
  EXPECT_EQ(statistics.documents, 3);
  EXPECT_THAT(statistics.robots, HasSubstr("allowed"));
  EXPECT_GT(source->bytes_read(), 1'000);
  const Capabilities capabilities = source->capabilities();
  EXPECT_TRUE(capabilities.endless && capabilities.pausable && capabilities.replayable);
}

TEST_F(CrawlSourceTest, EachPageIsReadOnceAndNewOnesAreFound) {
  make_site(2);
  const auto source = open("/feed");
  EXPECT_EQ(read(*source, 2).size(), 2u);
  await_polls(*source, 2);
  make_site(3);
  EXPECT_THAT(targets(read(*source, 1)), ElementsAre("/3"));
  EXPECT_EQ(server_.count("/1"), 1u);
}

TEST_F(CrawlSourceTest, FeedsAreAskedOnlyForChanges) {
  make_site(1);
  server_.handle("/feed", [](const ScriptedRequest& request) -> ScriptedAnswer {
    if (request.header("If-None-Match") == "\"v1\"") return {.status = 304};
    return {.body = rss({{"/1"}}), .headers = {"Content-Type: application/xml", "ETag: \"v1\""}};
  });
  const auto source = open("/feed");
  EXPECT_EQ(read(*source, 1).size(), 1u);
  await_polls(*source, 3);
  const std::vector<ScriptedRequest> polls = server_.requests("/feed");
  EXPECT_EQ(polls[0].header("If-None-Match"), "");
  for (size_t i = 1; i < polls.size(); ++i) EXPECT_EQ(polls[i].header("If-None-Match"), "\"v1\"");
}

TEST_F(CrawlSourceTest, AFeedWithoutNewsIsAskedLessAndLessOften) {
  make_site(1);
  CrawlSource::Options with = options();
  with.poll_first = with.poll_min = milliseconds(10);
  with.poll_max = milliseconds(10'000);
  const auto source = open("/feed", with);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(read(*source, 1).size(), 1u);
  await_polls(*source, 9);
  // 10, 15, 22, ... ms: the waits before the ninth add up to 490 ms, a tenth less by chance. Every 10 ms it would
  // be 80.
  EXPECT_GT(std::chrono::steady_clock::now() - begin, milliseconds(300));
}

TEST_F(CrawlSourceTest, DatesAreTheFeedsAndElseThePages) {
  const std::string head = "<meta property=\"article:published_time\" content=\"2020-02-02T00:00:00Z\">";
  server_.page("/dated", article("a", head));
  server_.page("/undated", article("b", head));
  set_feed("/feed", rss({{"/undated"}, {"/dated", "Wed, 01 May 2024 12:00:00 GMT"}}));
  const std::vector<Document> documents = read(*open("/feed"), 2);
  ASSERT_EQ(documents.size(), 2u);
  EXPECT_EQ(documents[0].time_s, 1'714'564'800);
  EXPECT_EQ(documents[1].time_s, 1'580'601'600);
}

TEST_F(CrawlSourceTest, APageIsReadAndThenTheStreamEnds) {
  server_.page("/story", article("s", "<link rel=alternate type=\"application/rss+xml\" href=\"/feed\">"));
  const auto source = open("/story");
  std::vector<Document> documents;
  EXPECT_EQ(source->read(5, Deadline::after(std::chrono::seconds(60)), documents).value(), 1);
  EXPECT_EQ(source->read(5, Deadline::after(std::chrono::seconds(60)), documents).value(), 0);
  EXPECT_EQ(server_.count("/story"), 1u);
  EXPECT_THAT(source->notes(), ElementsAre(HasSubstr(server_.url("/feed"))));
  const auto resumed = open("/story");
  ASSERT_TRUE(resumed->seek(source->saved(documents[0].cursor)).ok());
  EXPECT_EQ(resumed->read(5, Deadline::after(std::chrono::seconds(60)), documents).value(), 0);
  ASSERT_TRUE(resumed->seek(source->saved("")).ok());
  EXPECT_EQ(resumed->read(5, Deadline::after(std::chrono::seconds(60)), documents).value(), 1);
}

TEST_F(CrawlSourceTest, PlainTextIsAPageToo) {
  server_.set("/notes.txt", {.body = "caf\xe9 notes\n", .headers = {"Content-Type: text/plain; charset=iso-8859-1"}});
  const std::vector<Document> documents = read(*open("/notes.txt"), 1);
  ASSERT_EQ(documents.size(), 1u);
  EXPECT_EQ(documents[0].text, "caf\xc3\xa9 notes\n");
}

TEST_F(CrawlSourceTest, AWrongOrMissingCharsetDoesNotHarmTheText) {
  std::string korean = article("k", "<meta charset=euc-kr>");
  korean.insert(korean.find("Paragraph 0"), "\xbc\xad\xbf\xef ");  // 서울
  server_.set("/declared-in-page", {.body = korean, .headers = {"Content-Type: text/html"}});
  std::string utf8 = article("u");
  utf8.insert(utf8.find("Paragraph 0"), "서울 ");
  server_.set("/none", {.body = utf8});
  server_.set("/unknown", {.body = utf8, .headers = {"Content-Type: text/html; charset=klingon"}});
  for (const std::string target : {"/declared-in-page", "/none", "/unknown"}) {
    const std::vector<Document> documents = read(*open(target), 1);
    ASSERT_EQ(documents.size(), 1u) << target;
    EXPECT_THAT(documents[0].text, HasSubstr("서울 Paragraph 0")) << target;
  }
}

TEST_F(CrawlSourceTest, SitemapsAndTheirIndexesAreRead) {
  for (int i = 1; i <= 4; ++i) server_.page("/" + std::to_string(i), article(std::to_string(i)));
  server_.set("/a.xml.gz", {.body = gzip_bytes(sitemap("urlset", "url", {{server_.url("/1")}, {server_.url("/2")}})),
                            .headers = {"Content-Type: application/gzip"}});
  set_feed("/b.xml", sitemap("urlset", "url", {{server_.url("/3")}}));
  set_feed("/index.xml", sitemap("sitemapindex", "sitemap", {{server_.url("/a.xml.gz")}, {server_.url("/b.xml")}}));
  const auto source = open("/index.xml");
  EXPECT_THAT(targets(read(*source, 3)), UnorderedElementsAre("/1", "/2", "/3"));
  EXPECT_EQ(source->statistics().kind, "sitemap index");
  EXPECT_EQ(source->statistics().feeds, 3);
  set_feed("/b.xml", sitemap("urlset", "url", {{server_.url("/3")}, {server_.url("/4")}}));
  EXPECT_THAT(targets(read(*source, 1)), ElementsAre("/4"));
}

TEST_F(CrawlSourceTest, NoFurtherSitemapIsReadWhileManyPagesWait) {
  std::vector<Entry> sitemaps;
  for (int map = 0; map < 8; ++map) {
    std::vector<Entry> pages;
    for (int i = 0; i < 30; ++i) pages.push_back({"/" + std::to_string(map) + "/" + std::to_string(i)});
    const std::string target = "/map" + std::to_string(map);
    set_feed(target, sitemap("urlset", "url", pages));
    sitemaps.push_back({target});
  }
  set_feed("/index", sitemap("sitemapindex", "sitemap", sitemaps));
  Fetcher::Options slow = testing_fetch_options();
  slow.host_delay = milliseconds(20);
  Fetcher fetcher(slow);
  CrawlSource::Options with = options();
  with.fetcher = &fetcher;
  with.queue_max = 10;
  const auto source = open("/index", with);
  const auto maps_read = [&] {
    size_t count = 0;
    for (const ScriptedRequest& request : server_.requests()) count += request.target.starts_with("/map") ? 1 : 0;
    return count;
  };
  read_in_vain_until(*source, [&] { return maps_read() > 0; });  // the pages are not there, which does not matter
  EXPECT_TRUE(read(*source, 1, milliseconds(400)).empty());
  EXPECT_LT(maps_read(), 5u);  // those asked for before the first answer came
}

TEST_F(CrawlSourceTest, OlderPagesOfAFeedAreReadAtTheBeginning) {
  server_.page("/new", article("new"));
  server_.page("/old", article("old"));
  const auto json = [](const std::string& page, const std::string& next) {
    return "{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"j\"," +
           (next.empty() ? "" : "\"next_url\":\"" + next + "\",") + "\"items\":[{\"id\":\"" + page + "\",\"url\":\"" +
           page + "\"}]}";
  };
  server_.set("/feed", {.body = json(server_.url("/new"), server_.url("/feed?page=2")),
                        .headers = {"Content-Type: application/feed+json"}});
  server_.set("/feed?page=2", {.body = json(server_.url("/old"), server_.url("/feed?page=2")),
                               .headers = {"Content-Type: application/feed+json"}});
  const auto source = open("/feed");
  EXPECT_THAT(targets(read(*source, 2)), UnorderedElementsAre("/new", "/old"));
  EXPECT_TRUE(read(*source, 1, milliseconds(100)).empty());
  EXPECT_EQ(server_.count("/feed?page=2"), 1u);
}

TEST_F(CrawlSourceTest, EntriesWithoutALinkAreReadOutOfTheFeed) {
  set_feed("/feed",
           "<rss version=\"2.0\"><channel><title>f</title><item><title>A &amp; B</title><guid "
           "isPermaLink=\"false\">x1</guid><description>&lt;p&gt;One&lt;/p&gt;&lt;p&gt;Two &lt;b&gt;bold&lt;/b&gt; "
           "word&lt;/p&gt;</description></item></channel></rss>");
  const auto source = open("/feed");
  const std::vector<Document> documents = read(*source, 1);
  ASSERT_EQ(documents.size(), 1u);
  EXPECT_EQ(documents[0].text, "A & B\nOne\nTwo bold word\n");
  EXPECT_EQ(documents[0].id, server_.url("/feed#x1"));
  EXPECT_TRUE(read(*source, 1, milliseconds(60)).empty());
  const auto resumed = open("/feed");
  ASSERT_TRUE(resumed->seek(source->saved("")).ok());
  EXPECT_EQ(read(*resumed, 1).size(), 1u);
}

TEST_F(CrawlSourceTest, OneArticleUnderSeveralAddressesIsOneDocument) {
  const std::string head = "<link rel=canonical href=\"/story\">";
  server_.page("/story?utm=1", article("s", head));
  server_.page("/story?utm=2", article("s", head));
  server_.page("/other", article("o", "<link rel=canonical href=\"/\">"));
  server_.set("/short", {.status = 301, .headers = {"Location: /other"}});
  set_feed("/feed", rss({{"/short"}, {"/other"}, {"/story?utm=2#top"}, {"/story?utm=1"}}));
  const auto source = open("/feed");
  EXPECT_THAT(targets(read(*source, 2)), UnorderedElementsAre("/story", "/other"));
  read_in_vain_until(*source, [&] { return source->statistics().pages_duplicate == 2; });
}

TEST_F(CrawlSourceTest, BadPagesAreGivenUpWithTheirReasonAndTheRestGoesOn) {
  make_site(3);
  server_.set("/2", {.status = 404});
  server_.set("/pdf", {.body = "%PDF", .headers = {"Content-Type: application/pdf"}});
  server_.page("/empty", "<html><body></body></html>");
  server_.set("/always500", {.status = 500});
  server_.set("/cut", {.body = gzip_bytes(article("cut")).substr(0, 150), .headers = {"Content-Encoding: gzip"}});
  server_.set("/to-file", {.status = 302, .headers = {"Location: file:///etc/passwd"}});
  set_feed("/feed", rss({{"/3"},
                         {"/2"},
                         {"/pdf"},
                         {"/empty"},
                         {"/always500"},
                         {"/cut"},
                         {"/to-file"},
                         {"ftp://a.org/x"},
                         {"http://u:p@a.org/"},
                         {"/1"}}));
  const auto source = open("/feed");
  EXPECT_THAT(targets(read(*source, 2)), UnorderedElementsAre("/1", "/3"));
  read_in_vain_until(*source, [&] { return source->statistics().pages_given_up == 6; });
  EXPECT_GE(source->statistics().links_refused, 2);
  EXPECT_EQ(server_.count("/always500"), 5u);
  EXPECT_EQ(server_.count("/2"), 1u);
  EXPECT_THAT(source->notes(), ::testing::Contains(HasSubstr("6 pages could not be read")));
}

TEST_F(CrawlSourceTest, PagesThatFailAtFirstAreReadOnceTheyAreWell) {
  make_site(2);
  server_.sequence("/1", {{.status = 503},
                          {.status = 429, .headers = {"Retry-After: 0"}},
                          {.body = "x", .reset = true},
                          {.body = article("1"), .headers = {"Content-Type: text/html"}}});
  const auto source = open("/feed");
  EXPECT_THAT(targets(read(*source, 2)), UnorderedElementsAre("/1", "/2"));
  EXPECT_EQ(source->statistics().pages_given_up, 0);
  EXPECT_EQ(source->statistics().pages_failed, 3);
}

TEST_F(CrawlSourceTest, AHostThatCutsEverythingShortKeepsItsPagesUntilItIsWell) {
  ScriptedServer other;
  std::atomic<bool> well = false;
  other.handle("/a", [&](const ScriptedRequest&) -> ScriptedAnswer {
    if (well) return {.body = article("a"), .headers = {"Content-Type: text/html"}};
    return {.body = gzip_bytes(article("a")).substr(0, 150), .headers = {"Content-Encoding: gzip"}};
  });
  make_site(1);
  set_feed("/feed", rss({{"/1"}, {other.url("/a")}}));
  CrawlSource::Options with = options();
  with.attempts_max = 2;
  const auto source = open("/feed", with);
  EXPECT_THAT(targets(read(*source, 1)), ElementsAre("/1"));
  read_in_vain_until(*source, [&] { return other.count("/a") > 2; });
  well = true;
  EXPECT_EQ(read(*source, 1).size(), 1u);
}

TEST_F(CrawlSourceTest, AHostThatIsDownKeepsItsPagesUntilItIsWell) {
  ScriptedServer other;
  std::atomic<bool> well = false;
  other.handle("/robots.txt", [&](const ScriptedRequest&) -> ScriptedAnswer { return {.status = well ? 404 : 503}; });
  other.page("/a", article("a"));
  make_site(1);
  set_feed("/feed", rss({{"/1"}, {other.url("/a")}}));
  CrawlSource::Options with = options();
  with.attempts_max = 2;
  const auto source = open("/feed", with);
  EXPECT_THAT(targets(read(*source, 1)), ElementsAre("/1"));
  read_in_vain_until(*source, [&] { return other.count("/robots.txt") > 5; });  // more than attempts_max
  EXPECT_EQ(source->statistics().pages_given_up, 0);
  well = true;
  EXPECT_EQ(read(*source, 1).size(), 1u);
}

TEST_F(CrawlSourceTest, RobotsTxtForbidsPagesOfAFeed) {
  make_site(3);
  server_.set("/robots.txt", {.body = "User-agent: *\nDisallow: /2\n"});
  const auto source = open("/feed");
  EXPECT_THAT(targets(read(*source, 2)), UnorderedElementsAre("/1", "/3"));
  read_in_vain_until(*source, [&] { return source->statistics().last_error.find("robots.txt") != std::string::npos; });
  EXPECT_EQ(server_.count("/2"), 0u);
}

TEST_F(CrawlSourceTest, ARootThatIsNotThereOrForbiddenIsAFinalError) {
  std::vector<Document> documents;
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  EXPECT_EQ(open("/absent")->read(1, deadline, documents).status().code(), Code::kNotFound);
  server_.page("/empty", "<html></html>");
  EXPECT_EQ(open("/empty")->read(1, deadline, documents).status().code(), Code::kInvalidArgument);
  server_.set("/image", {.body = "\x89PNG", .headers = {"Content-Type: image/png"}});
  EXPECT_THAT(open("/image")->read(1, deadline, documents).status().message(), HasSubstr("image/png"));
  std::string bytes = "<html><p>";
  for (int i = 0; i < 4'096; ++i) bytes += static_cast<char>(i * 151 % 256);
  server_.set("/noise", {.body = bytes, .headers = {"Content-Type: text/html"}});
  EXPECT_THAT(open("/noise")->read(1, deadline, documents).status().message(), HasSubstr("is not text"));
  ScriptedServer closed;
  closed.set("/robots.txt", {.body = "User-agent: *\nDisallow: /\n"});
  CrawlSource::Options with = options();
  const auto forbidden = std::move(CrawlSource::open(closed.url("/feed"), with)).value();
  EXPECT_EQ(forbidden->read(1, deadline, documents).status().code(), Code::kPermissionDenied);
  EXPECT_FALSE(CrawlSource::open("ftp://a.org/").ok());
  EXPECT_FALSE(CrawlSource::open("http://user:secret@a.org/").ok());
}

TEST_F(CrawlSourceTest, ARootThatFailsIsUnavailableAndGoesOnWhenItIsWell) {
  make_site(1);
  server_.set("/feed", {.status = 503});
  const auto source = open("/feed");
  std::vector<Document> documents;
  Status status;
  read_in_vain_until(*source, [&] {
    status = source->read(1, Deadline::after({}), documents).status();
    return status.code() == Code::kUnavailable;
  });
  EXPECT_THAT(status.message(), HasSubstr("503"));
  make_site(1);
  EXPECT_EQ(read(*source, 1).size(), 1u);
  EXPECT_EQ(source->read(1, Deadline::after(milliseconds(60)), documents).status().code(), Code::kDeadlineExceeded);
}

TEST_F(CrawlSourceTest, ASlowHostDoesNotHoldUpTheOthers) {
  ScriptedServer slow;
  std::vector<Entry> entries;
  for (int i = 0; i < 50; ++i) {
    slow.set("/" + std::to_string(i), {.wait = std::chrono::minutes(5)});
    entries.push_back({slow.url("/" + std::to_string(i))});
  }
  make_site(5);
  for (int i = 1; i <= 5; ++i) entries.insert(entries.begin(), {"/" + std::to_string(i)});
  set_feed("/feed", rss(entries));
  EXPECT_EQ(read(*open("/feed"), 5, std::chrono::seconds(30)).size(), 5u);
}

TEST_F(CrawlSourceTest, IsGoneAtOnceWithWorkUnderWay) {
  make_site(3);
  server_.set("/1", {.body = std::string(100'000, 'x'), .drip = milliseconds(10)});
  const auto begin = std::chrono::steady_clock::now();
  {
    Fetcher fetcher(testing_fetch_options());
    CrawlSource::Options with = options();
    with.fetcher = &fetcher;
    const auto source = open("/feed", with);
    read(*source, 1, milliseconds(100));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60)) << "a quarter of an hour";
}

TEST_F(CrawlSourceTest, CheckTellsWhatWouldBeRead) {
  make_site(5);
  const Result<SourceCheck> check = check_source(server_.url("/feed"), {.documents = 2, .crawl = options()},
                                                 Deadline::after(std::chrono::seconds(60)));
  ASSERT_TRUE(check.ok());
  EXPECT_TRUE(check->status.ok());
  EXPECT_EQ(check->statistics.kind, "feed");
  EXPECT_EQ(check->documents.size(), 2u);
  EXPECT_EQ(check->statistics.pages_waiting, 3);
  const Result<SourceCheck> absent = check_source(server_.url("/absent"), {.documents = 2, .crawl = options()},
                                                  Deadline::after(std::chrono::seconds(60)));
  ASSERT_TRUE(absent.ok());
  EXPECT_EQ(absent->status.code(), Code::kNotFound);
  EXPECT_FALSE(check_source("gopher://x/", {}, Deadline::never()).ok());
}

}  // namespace
}  // namespace streamvec
