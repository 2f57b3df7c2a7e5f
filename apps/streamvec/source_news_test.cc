#include "apps/streamvec/source_news.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace streamvec::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

SourceMetrics source_in(const std::string& state, const std::string& error = "") {
  SourceMetrics source;
  source.name = "redis://h/s";
  source.state = state;
  source.last_error = error;
  return source;
}

std::vector<std::string> told_of(SourceNews& news, const SourceMetrics& source) {
  return news.tell(std::span(&source, 1));
}

TEST(SourceNews, AFaultIsToldOnceAndItsEndToo) {
  SourceNews news;
  EXPECT_THAT(told_of(news, source_in("reading")), IsEmpty());
  EXPECT_THAT(told_of(news, source_in("waiting", "nobody answers")),
              ElementsAre("redis://h/s: nobody answers; it is tried again"));
  EXPECT_THAT(told_of(news, source_in("waiting", "nobody answers")), IsEmpty());
  EXPECT_THAT(told_of(news, source_in("reading", "nobody answers")), ElementsAre("redis://h/s can be read again"));
  EXPECT_THAT(told_of(news, source_in("ended")), IsEmpty());
}

TEST(SourceNews, ASourceThatIsGivenUpIsNamedWithItsReasonWhileOthersOfItsNameAreRead) {
  SourceNews news;
  const SourceMetrics both[] = {source_in("failed", "redis://h/s: no such stream"), source_in("reading")};
  EXPECT_THAT(news.tell(both), ElementsAre("redis://h/s is given up: no such stream"));
  EXPECT_THAT(news.tell(both), IsEmpty());
}

TEST(SourceNews, WhatTheRunEndsWithIsNotToldTwice) {
  SourceNews news;
  EXPECT_THAT(told_of(news, source_in("failed", "no such stream")), IsEmpty());
}

TEST(SourceNews, AFaultThatComesAndGoesDoesNotFillTheLog) {
  SourceNews news;
  size_t lines = 0;
  for (int i = 0; i < 100; ++i)
    lines += told_of(news, source_in("waiting", "away")).size() + told_of(news, source_in("reading")).size();
  EXPECT_EQ(lines, 5);
}

}  // namespace
}  // namespace streamvec::cli
