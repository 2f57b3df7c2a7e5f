#include "streamvec/cluster/slow_owner_finder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace streamvec {
namespace {

// A node that pushes every 10 ms, or as soon as all have answered, to owners 2, 3 and 4; `late` is what the answer of
// number 4 takes, the others' take 2 and 3 ms.
class Pushes {
 public:
  using Late = std::function<double(int push)>;
  void go_on(double seconds, const Late& late, double others_times = 1) {
    for (const double end_s = now_s_ + seconds; now_s_ < end_s; ++push_) {
      finder.pushed(now_s_, 3);
      const double took_s = late(push_);
      finder.answered(2, now_s_ + 0.002 * others_times);
      finder.answered(3, now_s_ + 0.003 * others_times);
      finder.answered(4, now_s_ + took_s);
      now_s_ += std::max({0.01, took_s, 0.003 * others_times});
    }
  }

  SlowOwnerFinder finder;

 private:
  double now_s_ = 100;
  int push_ = 0;
};

TEST(SlowOwnerFinder, FindsAnOwnerThatAnswersFarLaterThanTheOthersForSeconds) {
  Pushes pushes;
  pushes.go_on(3.5, [](int push) { return push % 2 == 0 ? 0.09 : 0.003; });
  EXPECT_TRUE(pushes.finder.slow().empty());
  pushes.go_on(2.5, [](int push) { return push % 2 == 0 ? 0.09 : 0.003; });
  const std::vector<SlowOwner> slow = pushes.finder.slow();
  ASSERT_EQ(slow.size(), 1);
  EXPECT_EQ(slow[0].node, 4);
  EXPECT_NEAR(slow[0].took_s, 0.0465, 0.002);
  EXPECT_NEAR(slow[0].others_s, 0.003, 0.0001);
}

TEST(SlowOwnerFinder, OneThatRecoversIsSlowNoLonger) {
  Pushes pushes;
  pushes.go_on(6, [](int) { return 0.09; });
  EXPECT_EQ(pushes.finder.slow().size(), 1);
  pushes.go_on(3, [](int) { return 0.003; });
  EXPECT_TRUE(pushes.finder.slow().empty());
}

TEST(SlowOwnerFinder, PausesAreNotSlowness) {
  Pushes pushes;
  for (int pause = 0; pause < 10; ++pause) {
    bool paused = false;
    pushes.go_on(4, [&](int) { return std::exchange(paused, true) ? 0.003 : 2.5; });
    EXPECT_TRUE(pushes.finder.slow().empty());
  }
}

TEST(SlowOwnerFinder, ABusyMachineMakesAllLate) {
  Pushes pushes;
  pushes.go_on(
      20, [](int push) { return push % 2 == 0 ? 0.18 : 0.01; }, 20);
  EXPECT_TRUE(pushes.finder.slow().empty());
}

TEST(SlowOwnerFinder, AFewMillisecondsOrATenthOfTheTimeAreNotWorthIt) {
  Pushes pushes;
  pushes.go_on(20, [](int) { return 0.015; });
  pushes.go_on(20, [](int push) { return push % 50 == 0 ? 0.06 : 0.003; });
  EXPECT_TRUE(pushes.finder.slow().empty());
}

TEST(SlowOwnerFinder, OfTwoOwnersNeitherIsSlowForThereIsNoneToCompareWith) {
  SlowOwnerFinder finder;
  for (int push = 0; push < 200; ++push) {
    finder.pushed(0.1 * push, 1);
    finder.answered(2, 0.1 * push + 0.09);
  }
  EXPECT_TRUE(finder.slow().empty());
}

TEST(SlowOwnerFinder, OwnersThatAreFarAreNotSlowWhereHalfOfThemAre) {
  SlowOwnerFinder finder;
  for (int push = 0; push < 400; ++push) {
    finder.pushed(0.05 * push, 3);
    finder.answered(2, 0.05 * push + 0.0002);
    finder.answered(3, 0.05 * push + 0.045);
    finder.answered(4, 0.05 * push + 0.045);
  }
  EXPECT_TRUE(finder.slow().empty());
}

}  // namespace
}  // namespace streamvec
