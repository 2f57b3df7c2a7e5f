#include "streamvec/core/deadline.h"

#include <gtest/gtest.h>

#include <thread>

namespace streamvec {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(Deadline, NeverDoesNotPass) {
  EXPECT_FALSE(Deadline::never().passed());
  EXPECT_EQ(Deadline::never().when(), Deadline::Clock::time_point::max());
}

TEST(Deadline, PassesOnceItsTimeHasCome) {
  const Deadline deadline = Deadline::after(milliseconds(20));
  EXPECT_FALSE(Deadline::after(hours(1)).passed());
  std::this_thread::sleep_until(deadline.when());
  EXPECT_TRUE(deadline.passed());
}

TEST(Deadline, NoTimeOrLessHasPassedAtOnce) {
  EXPECT_TRUE(Deadline::after(milliseconds(0)).passed());
  EXPECT_TRUE(Deadline::after(milliseconds(-5)).passed());
}

TEST(Deadline, TheLongestWaitIsNeverOver) {
  EXPECT_FALSE(Deadline::after(Deadline::Clock::duration::max()).passed());
}

}  // namespace
}  // namespace streamvec
