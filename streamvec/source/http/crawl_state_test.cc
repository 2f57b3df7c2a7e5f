#include "streamvec/source/http/crawl_state.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace streamvec {
namespace {

std::string state_with(const std::string& kind, const std::string& document, const std::string& feed_depth) {
  return R"({"crawl":1,"url":"http://a/","bytes":0,"pages":[],"seen":"","kind":)" + kind + R"(,"document":)" +
         document +
         R"(,"feeds":[{"url":"http://a/","kind":1,"etag":"","modified":"","interval":-5,"read":0,"once":false,"next":0,)" +
         R"("depth":)" + feed_depth + "}]}";
}

Status load(const std::string& text, CrawlState& state) {
  std::vector<PageTask> pages;
  SeenPages seen(4);
  return load_crawl(text, state, pages, seen);
}

TEST(CrawlState, NumbersThatCannotBeAreRefusedOrBroughtIntoRange) {
  CrawlState state;
  ASSERT_TRUE(load(state_with("99", "7", "9000000000"), state).ok());
  EXPECT_EQ(state.kind, FeedKind::kPage);
  EXPECT_EQ(state.document, 7);
  EXPECT_EQ(state.feeds.at(0).depth, INT32_MAX);
  EXPECT_EQ(state.feeds.at(0).interval_s, 0);
  for (const std::string& text : {state_with("1e300", "7", "0"), state_with("1", "1e300", "0"),
                                  state_with("1", "92233720368547758080", "0"), state_with("1", "7", "0.5")})
    EXPECT_EQ(load(text, state).code(), Code::kInvalidArgument) << text;
}

}  // namespace
}  // namespace streamvec
