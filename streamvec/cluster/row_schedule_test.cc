#include "streamvec/cluster/row_schedule.h"

#include <gtest/gtest.h>

namespace streamvec {
namespace {

bool has(std::span<const uint64_t> due, size_t key) {
  return (due[key / 64] >> (key % 64) & 1) != 0;
}

int64_t times_due(const RowSchedule& schedule, size_t key, double steps, int64_t pushes) {
  int64_t times = 0;
  for (int64_t push = 1; push <= pushes; ++push) times += has(schedule.due(push, steps), key);
  return times;
}

// Pulls of keys 0 to 99: 1, 1/2, 1/4, ... and then none.
std::vector<float> halving_pulls() {
  std::vector<float> pulls(100, 0.0f);
  float pull = 1;
  for (size_t key = 0; key < 20; ++key, pull /= 2) pulls[key] = pull;
  return pulls;
}

TEST(RowSchedule, RowsThatMoveHalfAsFastGoHalfAsOften) {
  const std::vector<float> pulls = halving_pulls();
  const RowSchedule schedule(pulls, 1);
  const double steps = RowSchedule::kWorth;  // the fastest row moves just as far as is worth a push
  EXPECT_EQ(times_due(schedule, 0, steps, 64), 64);
  EXPECT_EQ(times_due(schedule, 1, steps, 64), 32);
  EXPECT_EQ(times_due(schedule, 2, steps, 64), 16);
  EXPECT_EQ(times_due(schedule, 4, steps, 64), 4);
}

TEST(RowSchedule, MoreTrainingBetweenPushesMakesSlowRowsGoMoreOften) {
  const std::vector<float> pulls = halving_pulls();
  const RowSchedule schedule(pulls, 1);
  EXPECT_EQ(times_due(schedule, 4, 8 * RowSchedule::kWorth, 64), 32);
  EXPECT_EQ(times_due(schedule, 4, 16 * RowSchedule::kWorth, 64), 64);
  const RowSchedule of_five(pulls, 5);  // more others move a row further, and less of it is worth a push
  EXPECT_EQ(times_due(of_five, 4, RowSchedule::kWorth, 64), 32);
  EXPECT_EQ(times_due(RowSchedule(pulls, 2), 4, 8 * RowSchedule::kWorth, 64), 32)
      << "one other moves it as far as this node does";
}

TEST(RowSchedule, EveryRowGoesNowAndThen) {
  const std::vector<float> pulls = halving_pulls();
  const RowSchedule schedule(pulls, 2);
  for (const size_t key : {size_t{0}, size_t{10}, size_t{19}})
    EXPECT_GE(times_due(schedule, key, 1e-3, 4 * RowSchedule::kAllEvery), 4) << key;
  EXPECT_EQ(times_due(schedule, 19, 1e-3, 4 * RowSchedule::kAllEvery), 4);
}

// A word of a stream that was admitted since counts were last told moves fast: it has just begun.
TEST(RowSchedule, RowsOfWhichNothingIsKnownYetGoEveryTime) {
  const std::vector<float> pulls = halving_pulls();
  const RowSchedule schedule(pulls, 2);
  EXPECT_EQ(times_due(schedule, 99, 1e-3, 40), 40);
}

TEST(RowSchedule, RowsWithoutAPullAllGoEveryTime) {
  const std::vector<float> none(100, 0.0f);
  EXPECT_EQ(times_due(RowSchedule(none, 4), 99, 1, 10), 10);
}

}  // namespace
}  // namespace streamvec
