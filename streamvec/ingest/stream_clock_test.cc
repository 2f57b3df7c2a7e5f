#include "streamvec/ingest/stream_clock.h"

#include <gtest/gtest.h>

#include <cmath>

namespace streamvec {
namespace {

TEST(HalfLife, IsTokensOrTime) {
  EXPECT_EQ(HalfLife::parse("5000000")->value, 5e6);
  EXPECT_FALSE(HalfLife::parse("5M")->seconds);
  EXPECT_EQ(HalfLife::parse("1.5M")->value, 1.5e6);
  EXPECT_EQ(HalfLife::parse("30d")->value, 30 * 86400);
  EXPECT_TRUE(HalfLife::parse("15m")->seconds);
  EXPECT_TRUE(std::isinf(HalfLife::parse("never")->value));
}

TEST(HalfLife, NamesWhatItCannotRead) {
  for (const char* text : {"", "x", "0", "-5d", "5 d", "5dd", "inf", "nan", "1e999", "5K"}) {
    const auto life = HalfLife::parse(text);
    ASSERT_FALSE(life.ok()) << text;
    EXPECT_EQ(life.status().code(), Code::kInvalidArgument);
    EXPECT_NE(life.status().message().find("half-life"), std::string::npos);
  }
}

TEST(StreamClock, CountsTokensOrFollowsTheDocuments) {
  StreamClock tokens(false), seconds(true);
  Document document;
  document.time_s = 1000;
  bool dated = false;
  EXPECT_EQ(tokens.at(document, 42, dated), 42);
  EXPECT_EQ(seconds.at(document, 42, dated), 1000);
}

constexpr int64_t kFarFuture = int64_t{1} << 40;

TEST(StreamClock, NeverGoesBackNorIntoTheFuture) {
  StreamClock clock(true);
  Document document;
  document.time_s = kFarFuture;
  bool dated = false;
  const double now = clock.at(document, 0, dated);
  EXPECT_LT(now, 1e10);
  EXPECT_GT(now, 1.7e9);
  document.time_s = 1000;
  EXPECT_EQ(clock.at(document, 0, dated), now);
}

TEST(StreamClock, AWrongDateOrNoneIsTheLatestTimeAmongDatedDocumentsOfASource) {
  StreamClock clock(true);
  Document document;
  document.time_s = 2000;
  bool dated = false, other = false;
  clock.at(document, 0, dated);
  for (const int64_t unknown : {int64_t{0}, kFarFuture}) {
    document.time_s = unknown;
    EXPECT_EQ(clock.at(document, 0, dated), 2000);
  }
  document.time_s = 3000;
  EXPECT_EQ(clock.at(document, 0, dated), 3000);
  EXPECT_GT(clock.at(Document(), 0, other), 1.7e9) << "one without any dates is of now";
}

}  // namespace
}  // namespace streamvec
