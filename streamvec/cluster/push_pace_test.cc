#include "streamvec/cluster/push_pace.h"

#include <gtest/gtest.h>

#include <vector>

namespace streamvec {
namespace {

constexpr int64_t kLater = 1'000'000;  // words: past the beginning, when nodes push more often

PushPace make(double talking_share = 0.2) {
  static const std::vector<float> pull(64, 1.0f);
  return PushPace({.words_min = 1'000, .words_max = 50'000, .threads = 2, .talking_share = talking_share}, pull);
}

TEST(PushPace, APushWantsEnoughWordsAtFirstFewer) {
  PushPace pace = make();
  EXPECT_FALSE(pace.is_time({.words = 249}));
  EXPECT_TRUE(pace.is_time({.words = 250}));
  pace.begin({.words = kLater});
  EXPECT_FALSE(pace.is_time({.words = kLater + 999}));
  EXPECT_TRUE(pace.is_time({.words = kLater + 1'000}));
}

TEST(PushPace, ANodeWithoutWordsPushesNowAndThen) {
  PushPace pace = make();
  pace.begin({.words = kLater, .now_s = 10});
  EXPECT_FALSE(pace.is_time({.words = kLater, .now_s = 10.1}));
  EXPECT_TRUE(pace.is_time({.words = kLater, .now_s = 10.3}));
}

TEST(PushPace, TalkingTakesItsShareOfTheTimeOfAllThreads) {
  PushPace pace = make(0.2);
  pace.begin({.words = kLater, .now_s = 10, .talking_s = 5});
  EXPECT_FALSE(pace.can_afford({.words = kLater, .now_s = 10.1, .talking_s = 5.05}));
  EXPECT_TRUE(pace.can_afford({.words = kLater, .now_s = 10.2, .talking_s = 5.05}));
}

TEST(PushPace, ThreadsThatWaitAreNotMadeToWaitForTheShare) {
  PushPace pace = make(0.2);
  pace.begin({.words = kLater, .now_s = 10, .talking_s = 5});
  EXPECT_TRUE(pace.can_afford({.words = kLater + 50'001, .now_s = 10.1, .talking_s = 6}));
}

TEST(PushPace, MoreNodesMayTalkMoreUpToAPoint) {
  EXPECT_DOUBLE_EQ(talking_share_of(2), 0.1);
  EXPECT_DOUBLE_EQ(talking_share_of(3), 0.15);
  EXPECT_DOUBLE_EQ(talking_share_of(4), 0.2);
  EXPECT_DOUBLE_EQ(talking_share_of(64), 0.2);
  EXPECT_DOUBLE_EQ(talking_share_of(1), 0.1);  // a server that all others have left
}

}  // namespace
}  // namespace streamvec
