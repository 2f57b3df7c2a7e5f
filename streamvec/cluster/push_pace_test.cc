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

PushPace make_far_apart() {
  static const std::vector<float> pull(64, 1.0f);
  return PushPace({.words_min = 800'000, .words_max = 2'400'000, .threads = 2}, pull);
}

TEST(PushPace, PushesThatAreToBeFarApartBecomeSoStepByStep) {
  PushPace pace = make_far_apart();
  EXPECT_FALSE(pace.is_time({.words = 2'499}));
  EXPECT_TRUE(pace.is_time({.words = 2'500}));  // at first as ever
  int64_t words = 200'000, pushes = 0;
  while (words < 3'200'000) {
    pace.begin({.words = words});
    int64_t next = words;
    while (!pace.is_time({.words = next})) next += 1'000;
    EXPECT_GE(next - words, words / 4);
    words = next;
    ++pushes;
  }
  EXPECT_GE(pushes, 8);
  EXPECT_LE(pushes, 14);
  pace.begin({.words = 4'000'000});
  EXPECT_FALSE(pace.is_time({.words = 4'799'999}));
  EXPECT_TRUE(pace.is_time({.words = 4'800'000}));
}

TEST(PushPace, PushesThatAreToBeFarApartAreSoOnSlowNodesToo) {
  PushPace pace = make_far_apart();
  pace.begin({.words = 4'000'000, .now_s = 10});
  EXPECT_FALSE(pace.is_time({.words = 4'500'000, .now_s = 11.9}));
  EXPECT_TRUE(pace.is_time({.words = 4'500'000, .now_s = 12}));  // as 800,000 words at 2.5 us
  EXPECT_NEAR(pace.due_in({.words = 4'000'000, .now_s = 11}), 1, 1e-9);
}

TEST(PushPace, WherePushesAreFarApartSlowRowsWaitForMoreOfThem) {
  std::vector<float> pull(2, 1);
  pull[1] = 1.0f / 64;
  const auto pushes_of_slow_row = [&](int64_t words_min, int64_t words) {
    PushPace pace({.words_min = words_min, .words_max = 3 * words_min, .workers = 2}, pull);
    int64_t count = 0;
    for (int64_t push = 1; push < 32; ++push) {
      pace.begin({.words = words + push * 800'000, .steps = 26.0 * static_cast<double>(push)});
      EXPECT_TRUE(pace.rows(push, 1)[0] & 1) << "the fast one always goes";
      count += pace.rows(push, 1)[0] >> 1 & 1;
    }
    return count;
  };
  EXPECT_EQ(pushes_of_slow_row(10'000, 1'000'000), 31) << "each time";
  EXPECT_EQ(pushes_of_slow_row(800'000, 10'000'000), 1) << "every 16th time";
  EXPECT_GT(pushes_of_slow_row(400'000, 10'000'000), 2) << "the nearer, the more often";
  EXPECT_LT(pushes_of_slow_row(400'000, 10'000'000), 31);
  EXPECT_EQ(pushes_of_slow_row(160'000, 10'000'000), 31) << "each time where the run is not long";
}

TEST(PushPace, ANodeWithoutWordsPushesNowAndThen) {
  PushPace pace = make();
  pace.begin({.words = kLater, .now_s = 10});
  EXPECT_FALSE(pace.is_time({.words = kLater, .now_s = 10.1}));
  EXPECT_TRUE(pace.is_time({.words = kLater, .now_s = 10.3}));
}

TEST(PushPace, OneThatHasNothingToTrainOnFollowsTheOthers) {
  PushPace pace = make();
  pace.begin({.words = kLater, .now_s = 10});
  EXPECT_FALSE(pace.is_time({.words = kLater, .now_s = 10.04, .dry = true}));
  EXPECT_TRUE(pace.is_time({.words = kLater, .now_s = 10.04, .awaited = true, .dry = true}));
  EXPECT_TRUE(pace.is_time({.words = kLater, .now_s = 10.06, .dry = true}));
}

TEST(PushPace, TalkingTakesItsShareOfTheTimeOfAllThreads) {
  PushPace pace = make(0.2);
  pace.begin({.words = kLater, .now_s = 10, .talking_s = 5});
  EXPECT_FALSE(pace.can_afford({.words = kLater, .now_s = 10.1, .talking_s = 5.05}));
  EXPECT_TRUE(pace.can_afford({.words = kLater, .now_s = 10.2, .talking_s = 5.05}));
}

TEST(PushPace, BeforeThreadsWouldWaitForAPushItBeginsWhateverTheLastOneCost) {
  PushPace pace = make(0.2);
  pace.begin({.words = kLater, .now_s = 10, .talking_s = 5});
  const int64_t most = 50'000 - 50'000 / 16;
  EXPECT_FALSE(pace.can_afford({.words = kLater + most, .now_s = 10.1, .talking_s = 6}));
  EXPECT_TRUE(pace.can_afford({.words = kLater + most + 1, .now_s = 10.1, .talking_s = 6}));
  EXPECT_DOUBLE_EQ(pace.due_in({.words = kLater + most + 1, .now_s = 10.1, .talking_s = 6}), 0);
}

TEST(PushPace, OneThatOthersWaitForWantsNoWordsAndMayTakeThreeTimesTheShare) {
  PushPace pace = make(0.2);
  pace.begin({.words = kLater, .now_s = 10, .talking_s = 5});
  const PushPace::Done alone{.words = kLater + 1, .now_s = 10.1, .talking_s = 5.11};
  EXPECT_FALSE(pace.is_time(alone) || pace.can_afford(alone));
  PushPace::Done awaited = alone;
  awaited.awaited = true;
  EXPECT_TRUE(pace.is_time(awaited) && pace.can_afford(awaited));
  EXPECT_DOUBLE_EQ(pace.due_in(awaited), 0);
  awaited.talking_s = 5.15;
  EXPECT_FALSE(pace.can_afford(awaited));
  EXPECT_NEAR(pace.due_in(awaited), 0.025, 1e-9);
}

TEST(PushPace, TellsWhenAPushWillBeDueIfAllGoesOnAsItDid) {
  PushPace pace = make(0.2);
  pace.begin({.words = kLater, .now_s = 10, .talking_s = 5});
  // 600 of 1,000 words in 0.06 s; what talking has cost is paid for after 0.05 s, or after 0.25 s.
  EXPECT_NEAR(pace.due_in({.words = kLater + 600, .now_s = 10.06, .talking_s = 5.02}), 0.04, 1e-9);
  EXPECT_NEAR(pace.due_in({.words = kLater + 600, .now_s = 10.06, .talking_s = 5.1}), 0.19, 1e-9);
  // Without words after a while; threads that will soon wait do not wait for the share.
  EXPECT_NEAR(pace.due_in({.words = kLater, .now_s = 10.05, .talking_s = 5}), 0.2, 1e-9);
  EXPECT_NEAR(pace.due_in({.words = kLater + 40'000, .now_s = 10.4, .talking_s = 6}), 0.06875, 1e-4);
}

TEST(PushPace, APushThatIsDueIsDueNow) {
  PushPace pace = make(0.2);
  pace.begin({.words = kLater, .now_s = 10, .talking_s = 5});
  const PushPace::Done done{.words = kLater + 2'000, .now_s = 10.2, .talking_s = 5.05};
  EXPECT_TRUE(pace.is_time(done) && pace.can_afford(done));
  EXPECT_DOUBLE_EQ(pace.due_in(done), 0);
}

TEST(PushPace, MoreNodesMayTalkMoreUpToAPoint) {
  EXPECT_DOUBLE_EQ(talking_share_of(2), 0.05);
  EXPECT_DOUBLE_EQ(talking_share_of(3), 0.075);
  EXPECT_DOUBLE_EQ(talking_share_of(64), talking_share_of(4));
  EXPECT_DOUBLE_EQ(talking_share_of(1), talking_share_of(2));  // a server that all others have left
}

}  // namespace
}  // namespace streamvec
