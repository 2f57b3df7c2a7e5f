#include "streamvec/cluster/staleness_finder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace streamvec {
namespace {

// Two workers that push every `own_s` and `other_s`, the first of which finds its bound; time goes by as it says.
class Pair {
 public:
  void run(int pushes, double own_s, double other_s) {
    for (int i = 0; i < pushes; ++i) {
      const double ready = now_ + own_s;
      // The push that may go is at most `staleness` ahead of the other's last.
      double held = 0;
      while (finder.staleness() != StalenessFinder::kFreely && own_ - other_ > finder.staleness()) {
        const double next = other_due_ + other_s;
        held = std::max(0.0, next - ready);
        other_due_ = next;
        ++other_;
      }
      now_ = ready + held;
      while (other_due_ + other_s <= now_) {
        other_due_ += other_s;
        ++other_;
      }
      ++own_;
      const WorkerClock clocks[] = {{1, 1, own_}, {1, 2, other_}};
      finder.pushed(now_, held, clocks);
    }
  }
  StalenessFinder finder;

 private:
  double now_ = 0, other_due_ = 0;
  int64_t own_ = 0, other_ = 0;
};

TEST(StalenessFinder, NodesThatPushEquallyOftenStayInStep) {
  Pair pair;
  pair.run(500, 0.1, 0.1);
  EXPECT_EQ(pair.finder.staleness(), StalenessFinder::kInStep);
  EXPECT_THAT(pair.finder.reasons(), ::testing::IsEmpty());
}

TEST(StalenessFinder, ANodeFarAheadOfAnotherEndsFreeAndSaysWhy) {
  Pair pair;
  pair.run(500, 0.1, 0.4);
  EXPECT_EQ(pair.finder.staleness(), StalenessFinder::kFreely);
  ASSERT_THAT(pair.finder.reasons(), ::testing::SizeIs(4));  // 2, 4, 8, freely
  EXPECT_THAT(pair.finder.reasons().front(), ::testing::HasSubstr("from in step (bsp) to up to 2 pushes apart (ssp)"));
  EXPECT_THAT(pair.finder.reasons().back(), ::testing::HasSubstr("node 2 pushes at"));
}

TEST(StalenessFinder, ComesBackIntoStepWhenTheSlowOneIsFastAgain) {
  Pair pair;
  pair.run(300, 0.1, 0.4);
  ASSERT_EQ(pair.finder.staleness(), StalenessFinder::kFreely);
  pair.run(1'000, 0.1, 0.1);
  EXPECT_EQ(pair.finder.staleness(), StalenessFinder::kInStep);
}

}  // namespace
}  // namespace streamvec
