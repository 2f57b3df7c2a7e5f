#include "streamvec/core/deadline.h"

#include <gtest/gtest.h>

#include <cmath>
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

TEST(Deadline, IsToldInSecondsAsWell) {
  const Deadline::Clock::time_point now = Deadline::Clock::now();
  EXPECT_GE(Deadline::after_s(1.5).when(), now + milliseconds(1'500));
  EXPECT_LT(Deadline::after_s(1.5).when(), now + hours(1));
  for (const double none : {0.0, -1.0, -1e300, std::nan("")}) EXPECT_TRUE(Deadline::after_s(none).passed()) << none;
  for (const double long_s : {4e9, 1e300, HUGE_VAL}) EXPECT_FALSE(Deadline::after_s(long_s).passed()) << long_s;
}

TEST(Deadline, TheLongestWaitIsNeverOver) {
  EXPECT_FALSE(Deadline::after(Deadline::Clock::duration::max()).passed());
}

}  // namespace
}  // namespace streamvec
