#include "streamvec/source/http/robots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

using ::testing::ElementsAre;

bool allows(const std::string& text, const std::string& target) {
  return Robots::parse(text, "streamvec").allows(target);
}

TEST(Robots, AnEmptyFileAllowsEverything) {
  EXPECT_TRUE(allows("", "/a"));
  EXPECT_TRUE(allows("# nothing but a comment\n", "/a"));
  EXPECT_TRUE(allows("User-agent: *\nDisallow:\n", "/a"));
}

TEST(Robots, TheLongestRuleDecidesWhateverTheOrder) {
  const std::string text = "User-agent: *\nAllow: /p\nDisallow: /\nDisallow: /page/secret\nAllow: /page/secret/open\n";
  EXPECT_TRUE(allows(text, "/page"));
  EXPECT_FALSE(allows(text, "/other"));
  EXPECT_FALSE(allows(text, "/page/secret/x"));
  EXPECT_TRUE(allows(text, "/page/secret/open/x"));
}

TEST(Robots, OfEqualRulesTheAllowingOneWins) {
  EXPECT_TRUE(allows("User-agent: *\nDisallow: /page\nAllow: /page\n", "/page"));
  EXPECT_TRUE(allows("User-agent: *\nAllow: /page\nDisallow: /page\n", "/page"));
}

TEST(Robots, AStarIsAnyBytesAndADollarTheEnd) {
  const std::string text = "User-agent: *\nDisallow: /*.php$\nDisallow: /a*b*c\nDisallow: /exact$\n";
  EXPECT_FALSE(allows(text, "/x/y.php"));
  EXPECT_TRUE(allows(text, "/x/y.php?q=1"));
  EXPECT_FALSE(allows(text, "/y.php/z.php"));
  EXPECT_FALSE(allows(text, "/aXXbYYcZZ"));
  EXPECT_TRUE(allows(text, "/aXXcYYb"));
  EXPECT_FALSE(allows(text, "/exact"));
  EXPECT_TRUE(allows(text, "/exactly"));
  EXPECT_FALSE(allows("User-agent: *\nDisallow: *secret\n", "/my/secret/x"));
}

TEST(Robots, EscapesAreComparedInNormalForm) {
  EXPECT_FALSE(allows("User-agent: *\nDisallow: /%61/%e3%83%84\n", "/a/\xe3\x83\x84"));
  EXPECT_FALSE(allows("User-agent: *\nDisallow: /a/\xe3\x83\x84\n", "/%61/%E3%83%84"));
  EXPECT_FALSE(allows("User-agent: *\nDisallow: /with-a-%2A.html\n", "/with-a-*.html"));
  EXPECT_TRUE(allows("User-agent: *\nDisallow: /with-a-%2A.html\n", "/with-a-b.html"));
  EXPECT_FALSE(allows("User-agent: *\nDisallow: /a%2fb\n", "/a%2Fb"));
  EXPECT_TRUE(allows("User-agent: *\nDisallow: /a%2fb\n", "/a/b"));
  EXPECT_FALSE(allows("User-agent: *\nDisallow: /cost$5\n", "/cost$5"));
}

TEST(Robots, ItsOwnGroupsAreJoinedAndReplaceThoseForAll) {
  const std::string text =
      "User-agent: *\nDisallow: /\n\nUser-agent: other\nUser-agent: StreamVec/1.0\nDisallow: /a\n\n"
      "User-agent: streamvec\nDisallow: /b\n";
  EXPECT_FALSE(allows(text, "/a"));
  EXPECT_FALSE(allows(text, "/b"));
  EXPECT_TRUE(allows(text, "/c"));
  EXPECT_FALSE(Robots::parse(text, "nobody").allows("/c"));
  EXPECT_TRUE(Robots::parse(text, "other").allows("/b"));
}

TEST(Robots, AProductIsNotNamedByAPartOfItsName) {
  EXPECT_TRUE(allows("User-agent: stream\nDisallow: /\n", "/a"));
  EXPECT_TRUE(allows("User-agent: streamvector\nDisallow: /\n", "/a"));
  EXPECT_TRUE(allows("User-agent: other\nDisallow: /\n", "/a"));
}

TEST(Robots, AGroupForTheProductWithoutRulesAllows) {
  EXPECT_TRUE(allows("User-agent: *\nDisallow: /\nUser-agent: streamvec\nAllow:\n", "/a"));
}

TEST(Robots, LinesEndAnyWayAndBadOnesArePassedOver) {
  const std::string text =
      "\xef\xbb\xbfUSER-AGENT : * # all\r\rthis is no line\nDisallow /missing-colon\r\n: no key\n\x01\x02\xff\n"
      "disallow:/a#comment\rDISALLOW:\t/b  \nSitemap: https://a.org/map.xml\nNoindex: /c\n";
  EXPECT_FALSE(allows(text, "/a"));
  EXPECT_FALSE(allows(text, "/b"));
  EXPECT_TRUE(allows(text, "/missing-colon"));
  EXPECT_TRUE(allows(text, "/c"));
  EXPECT_THAT(Robots::parse(text, "streamvec").sitemaps(), ElementsAre("https://a.org/map.xml"));
}

TEST(Robots, ARuleBeforeAnyGroupIsForNobody) {
  EXPECT_TRUE(allows("Disallow: /\nUser-agent: *\nDisallow: /a\n", "/b"));
}

TEST(Robots, LinesThatAreNoRulesDoNotPartAGroupsAgents) {
  const std::string text = "User-agent: streamvec\nSitemap: https://a.org/map.xml\nUser-agent: other\nDisallow: /a\n";
  EXPECT_FALSE(allows(text, "/a"));
}

TEST(Robots, CrawlDelayIsThatOfTheGroup) {
  const std::string text = "User-agent: *\nCrawl-delay: 7\nUser-agent: streamvec\nCrawl-delay: 2.5\nDisallow: /x\n";
  EXPECT_EQ(Robots::parse(text, "streamvec").crawl_delay_s(), 2.5);
  EXPECT_EQ(Robots::parse(text, "other").crawl_delay_s(), 7);
  EXPECT_EQ(Robots::parse("User-agent: *\nCrawl-delay: soon\n", "streamvec").crawl_delay_s(), 0);
  EXPECT_EQ(Robots::parse("User-agent: *\nCrawl-delay: -3\n", "streamvec").crawl_delay_s(), 0);
}

TEST(Robots, ADelayWithoutEndIsNone) {
  EXPECT_EQ(Robots::parse("User-agent: *\nCrawl-delay: inf\n", "streamvec").crawl_delay_s(), 0);
  EXPECT_EQ(Robots::parse("User-agent: *\nCrawl-delay: nan\n", "streamvec").crawl_delay_s(), 0);
}

TEST(Robots, WhatIsBehindTheLimitIsNotLookedAt) {
  std::string text = "User-agent: *\nDisallow: /a\n";
  while (text.size() < Robots::kBytesMax) text += "# padding that says nothing at all\n";
  text += "Disallow: /b\n";
  EXPECT_FALSE(allows(text, "/a"));
  EXPECT_TRUE(allows(text, "/b"));
}

TEST(Robots, RobotsTxtItselfIsAlwaysAllowed) {
  EXPECT_TRUE(Robots::disallow_all().allows("/robots.txt"));
  EXPECT_FALSE(Robots::disallow_all().allows("/"));
  EXPECT_TRUE(Robots::allow_all().allows("/"));
}

// Every split of the target against every star, by trying all of them.
bool matches_by_trying(std::string_view pattern, std::string_view target) {
  if (pattern.empty()) return true;
  if (pattern == "$") return target.empty();
  if (pattern[0] != '*')
    return !target.empty() && pattern[0] == target[0] && matches_by_trying(pattern.substr(1), target.substr(1));
  for (size_t skip = 0; skip <= target.size(); ++skip)
    if (matches_by_trying(pattern.substr(1), target.substr(skip))) return true;
  return false;
}

TEST(Robots, MatchingAgreesWithTryingAllWays) {
  Random random(7);
  for (int round = 0; round < 20'000; ++round) {
    std::string pattern = "/", target = "/";
    for (uint32_t i = random.below(7); i > 0; --i) pattern += "ab*"[random.below(3)];
    if (random.below(3) == 0) pattern += '$';
    for (uint32_t i = random.below(8); i > 0; --i) target += "ab"[random.below(2)];
    ASSERT_EQ(!allows("User-agent: *\nDisallow: " + pattern + "\n", target), matches_by_trying(pattern, target))
        << pattern << " " << target;
  }
}

TEST(Robots, HostilePatternsAreMatchedInTime) {
  std::string text = "User-agent: *\n";
  while (text.size() + 100 < Robots::kBytesMax) text += "Disallow: /*a*a*a*a*a*a*a*a*b$\n";
  EXPECT_TRUE(allows(text, "/" + std::string(1'500, 'a')));
}

}  // namespace
}  // namespace streamvec
