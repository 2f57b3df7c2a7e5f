#include "streamvec/optim/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace streamvec {
namespace {

TEST(Schedule, LinearFallsInProportionToWhatIsLeft) {
  EXPECT_FLOAT_EQ(scheduled_rate(Schedule::kLinear, 0.05, 0), 0.05f);
  EXPECT_FLOAT_EQ(scheduled_rate(Schedule::kLinear, 0.05, 0.25), 0.0375f);
  EXPECT_FLOAT_EQ(scheduled_rate(Schedule::kLinear, 0.05, 0.5), 0.025f);
}

TEST(Schedule, CosineIsHalfInTheMiddleAndFlatAtBothEnds) {
  EXPECT_FLOAT_EQ(scheduled_rate(Schedule::kCosine, 0.1, 0), 0.1f);
  EXPECT_FLOAT_EQ(scheduled_rate(Schedule::kCosine, 0.1, 0.5), 0.05f);
  EXPECT_FLOAT_EQ(scheduled_rate(Schedule::kCosine, 0.1, 1.0 / 3), 0.075f);
  EXPECT_GT(scheduled_rate(Schedule::kCosine, 0.1, 0.1), scheduled_rate(Schedule::kLinear, 0.1, 0.1));
  EXPECT_LT(scheduled_rate(Schedule::kCosine, 0.1, 0.9), scheduled_rate(Schedule::kLinear, 0.1, 0.9));
}

TEST(Schedule, ConstantNeverFalls) {
  for (double fraction : {0.0, 0.5, 1.0}) EXPECT_FLOAT_EQ(scheduled_rate(Schedule::kConstant, 0.05, fraction), 0.05f);
}

TEST(Schedule, NeverFallsBelowATenThousandthNorPastTheEnd) {
  for (Schedule schedule : {Schedule::kLinear, Schedule::kCosine})
    for (double fraction : {0.99999, 1.0, 1.0001}) {
      EXPECT_FLOAT_EQ(scheduled_rate(schedule, 0.05, fraction), 0.05f * 1e-4f) << fraction;
    }
}

TEST(Schedule, StaysAtItsEndWhereMoreIsReadThanExpected) {
  for (Schedule schedule : {Schedule::kLinear, Schedule::kCosine})
    for (double fraction : {1.5, 2.0, 10.0}) {
      EXPECT_FLOAT_EQ(scheduled_rate(schedule, 0.05, fraction), 0.05f * 1e-4f) << fraction;
    }
}

TEST(Schedule, NeverRises) {
  for (Schedule schedule : {Schedule::kLinear, Schedule::kCosine, Schedule::kConstant})
    for (int i = 0; i < 1'000; ++i)
      EXPECT_LE(scheduled_rate(schedule, 0.05, (i + 1) / 1e3), scheduled_rate(schedule, 0.05, i / 1e3));
}

TEST(Schedule, IsConstantWhereTheLengthIsUnknown) {
  for (Schedule schedule : {Schedule::kLinear, Schedule::kCosine, Schedule::kConstant})
    EXPECT_FLOAT_EQ(scheduled_rate(schedule, 0.05, -1), 0.05f);
}

TEST(Schedule, NamesAreReadAndOthersRefusedWithTheKnownOnes) {
  EXPECT_EQ(parse_schedule("linear").value(), Schedule::kLinear);
  EXPECT_EQ(parse_schedule("cosine").value(), Schedule::kCosine);
  EXPECT_EQ(parse_schedule("constant").value(), Schedule::kConstant);
  const auto unknown = parse_schedule("step");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(unknown.status().message(), ::testing::HasSubstr("linear, cosine or constant"));
}

}  // namespace
}  // namespace streamvec
