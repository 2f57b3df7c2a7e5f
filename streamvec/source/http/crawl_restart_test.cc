// A crawl that is stopped and goes on: nothing lost, nothing twice, bounded memory of what was seen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "streamvec/core/random.h"
#include "streamvec/source/http/crawl_source.h"
#include "streamvec/source/http/crawl_testing.h"

namespace streamvec {
namespace {

using std::chrono::milliseconds;
using ::testing::UnorderedElementsAre;

TEST_F(CrawlSourceTest, LongArticlesComeInPiecesAndGoOnInTheMiddle) {
  std::string html = "<html><head><title>Long</title></head><body><article>";
  for (int i = 0; i < 2'500; ++i)
    html += "<p>Sentence number " + std::to_string(i) + " of a very long article that goes on for quite a while.</p>";
  server_.page("/long", html + "</article></body></html>");
  server_.page("/1", article("1"));
  set_feed("/feed", rss({{"/1"}, {"/long"}}));
  const auto source = open("/feed");
  const std::vector<Document> documents = read(*source, 4);
  ASSERT_EQ(documents.size(), 4u);
  for (size_t stop = 0; stop < documents.size(); ++stop) {
    const auto resumed = open("/feed");
    ASSERT_TRUE(resumed->seek(source->saved(documents[stop].cursor)).ok());
    std::multiset<std::string> expected, found;
    for (size_t i = stop + 1; i < documents.size(); ++i) expected.insert(documents[i].text);
    for (const Document& document : read(*resumed, expected.size())) found.insert(document.text);
    EXPECT_EQ(found, expected) << stop;
    EXPECT_TRUE(read(*resumed, 1, milliseconds(20)).empty()) << stop;
  }
}

TEST_F(CrawlSourceTest, AfterAnySavedStateExactlyTheRestComes) {
  constexpr int kPages = 40;
  make_site(kPages);
  for (int i = 1; i <= kPages; i += 2)  // some have another name than the feed gives them
    server_.page("/" + std::to_string(i),
                 article(std::to_string(i), "<link rel=canonical href=\"/story" + std::to_string(i) + "\">"));
  Random random(5);
  const auto whole = open("/feed");
  std::vector<Document> documents;
  std::vector<std::pair<size_t, std::string>> states;  // how many documents were read before, the state
  while (documents.size() < kPages) {
    ASSERT_TRUE(whole->read(3, Deadline::after(std::chrono::seconds(5)), documents).ok());
    const size_t behind = random.below(static_cast<uint32_t>(std::min<size_t>(documents.size(), 8)) + 1);
    const size_t at = documents.size() - behind;
    const std::string cursor = at == 0 ? "" : documents[at - 1].cursor;
    states.push_back({at, whole->saved(cursor)});
    if (random.below(3) == 0 && at > 8) {
      ASSERT_TRUE(whole->commit(documents[at - 9].cursor).ok());
    }
  }
  std::set<std::string> all;
  for (const Document& document : documents) ASSERT_TRUE(all.insert(document.id).second) << document.id;
  for (size_t i = 0; i < states.size(); i += 3) {
    const auto& [at, state] = states[i];
    const auto resumed = open("/feed");
    ASSERT_TRUE(resumed->seek(state).ok());
    const std::vector<Document> rest = read(*resumed, kPages - at);
    std::set<std::string> expected = all;
    for (size_t before = 0; before < at; ++before) expected.erase(documents[before].id);
    for (const Document& document : rest) EXPECT_EQ(expected.erase(document.id), 1u) << document.id;
    EXPECT_TRUE(expected.empty()) << at << " " << expected.size();
    EXPECT_EQ(resumed->bytes_read(), whole->bytes_read());
    EXPECT_TRUE(read(*resumed, 1, milliseconds(10)).empty());
  }
}

TEST_F(CrawlSourceTest, FeedsKeepTheirStateAcrossARestart) {
  make_site(1);
  server_.handle("/feed", [](const ScriptedRequest& request) -> ScriptedAnswer {
    if (!request.header("If-None-Match").empty()) return {.status = 304};
    return {.body = rss({{"/1"}}), .headers = {"Content-Type: application/xml", "ETag: W/\"v1\""}};
  });
  CrawlSource::Options with = options();
  with.poll_min = with.poll_first = with.poll_max = milliseconds(300);
  std::unique_ptr<CrawlSource> resumed;
  size_t polls = 0, pages = 0;
  EXPECT_TRUE(holds_once([&] {
    const auto source = open("/feed", with);
    const std::vector<Document> documents = read(*source, 1);
    polls = server_.count("/feed");
    pages = server_.count("/1");
    resumed = open("/feed", with);
    EXPECT_TRUE(resumed->seek(source->saved(documents.at(0).cursor)).ok());
    EXPECT_TRUE(read(*resumed, 1, milliseconds(50)).empty());
    return server_.count("/feed") == polls;
  })) << "it is not due yet";
  await_polls(*resumed, polls + 1);
  EXPECT_EQ(server_.requests("/feed").at(polls).header("If-None-Match"), "W/\"v1\"");
  EXPECT_EQ(server_.count("/1"), pages);
}

TEST_F(CrawlSourceTest, GoesBackToACursorOfItsOwn) {
  make_site(4);
  const auto source = open("/feed");
  const std::vector<Document> documents = read(*source, 4);
  ASSERT_EQ(documents.size(), 4u);
  ASSERT_TRUE(source->seek(documents[1].cursor).ok());
  EXPECT_THAT(targets(read(*source, 2)), UnorderedElementsAre("/3", "/4"));
  ASSERT_TRUE(source->seek("").ok());
  EXPECT_EQ(read(*source, 4).size(), 4u);
}

TEST_F(CrawlSourceTest, RefusesStatesThatAreNotItsOwn) {
  make_site(1);
  const auto source = open("/feed");
  read(*source, 1);
  const std::string state = source->saved("");
  EXPECT_EQ(open("/other")->seek(state).code(), Code::kFailedPrecondition);
  EXPECT_EQ(open("/feed")->seek("{\"document\":7}").code(), Code::kFailedPrecondition);
  for (const std::string bad : {"nonsense", "{}", "[1]", "{\"crawl\":1}", "{\"crawl\":2}", "{\"document\":\"x\"}"})
    EXPECT_EQ(source->seek(bad).code(), Code::kInvalidArgument) << bad;
  std::string damaged = state;
  damaged.replace(damaged.find("\"seen\":\"") + 8, 2, "!!");
  EXPECT_EQ(source->seek(damaged).code(), Code::kInvalidArgument);
}

TEST_F(CrawlSourceTest, PagesSeenAreBounded) {
  SeenPages seen(100);
  for (uint64_t i = 0; i < 1'000; ++i) EXPECT_TRUE(seen.add(i));
  EXPECT_EQ(seen.size(), 100u);
  EXPECT_FALSE(seen.add(950));
  EXPECT_TRUE(seen.add(5));
  SeenPages copy(100);
  ASSERT_TRUE(copy.read(seen.text()).ok());
  EXPECT_EQ(copy.text(), seen.text());
}

}  // namespace
}  // namespace streamvec
