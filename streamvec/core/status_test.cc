#include "streamvec/core/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace streamvec {
namespace {

Status fail_if(bool fails) {
  return fails ? error(Code::kNotFound, "page ", 7, " is not there") : Status();
}

Result<int> half(int number) {
  if (number % 2 != 0) return error(Code::kInvalidArgument, number, " is odd; try ", number + 1);
  return number / 2;
}

TEST(Status, IsOkUnlessItSaysWhy) {
  EXPECT_TRUE(Status().ok());
  EXPECT_EQ(Status().code(), Code::kOk);
  EXPECT_EQ(Status().message(), "");
}

TEST(Status, ErrorJoinsItsPartsAsAStreamPrintsThem) {
  const Status status = error(Code::kDataLoss, "row ", 3, " of ", 1.5, " at ", std::string("offset"), ' ', true);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), Code::kDataLoss);
  EXPECT_EQ(status.message(), "row 3 of 1.5 at offset 1");
}

TEST(Status, CodesHaveGrpcsNumbers) {
  EXPECT_EQ(static_cast<int>(Code::kInvalidArgument), 3);
  EXPECT_EQ(static_cast<int>(Code::kNotFound), 5);
  EXPECT_EQ(static_cast<int>(Code::kResourceExhausted), 8);
  EXPECT_EQ(static_cast<int>(Code::kFailedPrecondition), 9);
  EXPECT_EQ(static_cast<int>(Code::kOutOfRange), 11);
  EXPECT_EQ(static_cast<int>(Code::kUnavailable), 14);
  EXPECT_EQ(static_cast<int>(Code::kUnauthenticated), 16);
}

TEST(Result, HoldsAValueOrTheReasonWhyNot) {
  const Result<int> good = half(8), bad = half(7);
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(good.value(), 4);
  EXPECT_TRUE(good.status().ok());
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.status().message(), "7 is odd; try 8");
}

TEST(Result, GivesUpAValueThatCannotBeCopied) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(5));
  EXPECT_EQ(**result, 5);
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 5);
}

Status return_if_error(bool fails, bool& went_on) {
  STREAMVEC_RETURN_IF_ERROR(fail_if(fails));
  went_on = true;
  return {};
}

TEST(ReturnIfError, StopsAtTheErrorAndGoesOnWithoutOne) {
  bool went_on = false;
  EXPECT_EQ(return_if_error(true, went_on).message(), "page 7 is not there");
  EXPECT_FALSE(went_on);
  EXPECT_TRUE(return_if_error(false, went_on).ok());
  EXPECT_TRUE(went_on);
}

Result<int> quarter(int number) {
  STREAMVEC_ASSIGN_OR_RETURN(const int once, half(number));
  STREAMVEC_ASSIGN_OR_RETURN(int twice, half(once));
  return twice;
}

TEST(AssignOrReturn, PassesTheFirstErrorOn) {
  EXPECT_EQ(quarter(12).value(), 3);
  EXPECT_EQ(quarter(7).status().message(), "7 is odd; try 8");
  EXPECT_EQ(quarter(6).status().message(), "3 is odd; try 4");
}

TEST(CheckDeathTest, PrintsWhatBrokeWithBothValuesAndStops) {
  EXPECT_DEATH(STREAMVEC_CHECK(1 > 2), "broken invariant: 1 > 2");
  EXPECT_DEATH(STREAMVEC_CHECK_EQ(1 + 1, 3), "1 \\+ 1 == 3 \\(2 against 3\\)");
  STREAMVEC_CHECK(true);
  STREAMVEC_CHECK_EQ(2, 2);
}

}  // namespace
}  // namespace streamvec
