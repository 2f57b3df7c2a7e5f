#include "streamvec/sync/combiner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "streamvec/core/matrix.h"

namespace streamvec {
namespace {

Matrix rows_of(std::initializer_list<std::initializer_list<float>> rows) {
  Matrix matrix =
      std::move(Matrix::make(static_cast<int64_t>(rows.size()), static_cast<int64_t>(rows.begin()->size()))).value();
  int64_t i = 0;
  for (const auto& row : rows) std::copy(row.begin(), row.end(), matrix.row(i++));
  return matrix;
}

std::vector<float> combined(Combine rule, Matrix rows) {
  std::vector<float*> changes;
  for (int64_t i = 0; i < rows.rows(); ++i) changes.push_back(rows.row(i));
  combine_rows(rule, changes, static_cast<int32_t>(rows.cols()));
  return {rows.row(0), rows.row(0) + rows.cols()};
}

TEST(Adasum, AddsChangesAtRightAngles) {
  EXPECT_EQ(combined(Combine::kAdasum, rows_of({{2, 0}, {0, 3}})), (std::vector<float>{2, 3}));
}

TEST(Adasum, TakesTheMeanOfEqualChanges) {
  EXPECT_EQ(combined(Combine::kAdasum, rows_of({{2, 4}, {2, 4}})), (std::vector<float>{2, 4}));
  EXPECT_EQ(combined(Combine::kAdasum, rows_of({{2, 4}, {2, 4}, {2, 4}, {2, 4}})), (std::vector<float>{2, 4}));
}

TEST(Adasum, IsItsFormulaInBetween) {
  // a = (1, 0), b = (1, 1): a.b = 1, |a|^2 = 1, |b|^2 = 2.
  EXPECT_EQ(combined(Combine::kAdasum, rows_of({{1, 0}, {1, 1}})), (std::vector<float>{0.5f + 0.75f, 0.75f}));
}

TEST(Adasum, ARowThatDidNotMoveChangesNothing) {
  EXPECT_EQ(combined(Combine::kAdasum, rows_of({{0, 0}, {5, 1}})), (std::vector<float>{5, 1}));
}

TEST(Combine, SumAndMeanAreWhatTheyAreCalled) {
  EXPECT_EQ(combined(Combine::kSum, rows_of({{1, 2}, {3, 4}, {5, 6}})), (std::vector<float>{9, 12}));
  EXPECT_EQ(combined(Combine::kMean, rows_of({{1, 2}, {3, 4}, {5, 6}})), (std::vector<float>{3, 4}));
}

TEST(Combine, ALateChangeIsCombinedWithWhatItMissed) {
  Matrix rows = rows_of({{2, 0}, {0, 3}});
  combine_late(Combine::kAdasum, rows.row(0), 2, rows.row(1));
  EXPECT_EQ(rows.row(1)[0], 2);
  EXPECT_EQ(rows.row(1)[1], 3);
}

TEST(Damped, AddsSlowRowsInFullAndTakesTheMeanOfRowsAtRest) {
  EXPECT_EQ(damped_share(0, 4), 1);
  EXPECT_NEAR(damped_share(1e-4, 4), 1, 1e-3);
  EXPECT_NEAR(damped_share(50, 4), 0.25, 1e-6);
  EXPECT_EQ(damped_share(3, 1), 1);
}

// A row drawn to 1, by each of 3 nodes from 0: together they end where one would after all their steps in a row.
TEST(Damped, EndsWhereOneNodeWouldHaveEnded) {
  for (const double pull : {0.05, 0.3, 1.0, 4.0}) {
    const double alone = 1 - std::exp(-pull);
    EXPECT_NEAR(3 * alone * damped_share(pull, 3), 1 - std::exp(-3 * pull), 1e-6) << pull;
  }
}

TEST(Damped, ALateCorrectionIsWorthWhatTrainingHasLeftOfIt) {
  EXPECT_EQ(late_share(0), 1);
  EXPECT_EQ(late_share(0.01), 1);
  EXPECT_NEAR(late_share(2), std::exp(-2.0), 1e-6);
}

TEST(Damped, AddsThePartsAlongADirectionAndAcrossItByTheirShares) {
  Matrix rows = rows_of({{5, 10}, {0.6f, 0.8f}, {1, 0}});
  float* to = rows.row(2);
  add_by_shares(rows.row(0), {.across = 0.5f, .along = 0.1f}, rows.row(1), 2, to);  // along: 11 of it, (6.6, 8.8)
  EXPECT_NEAR(to[0], 1 + 0.5 * (5 - 6.6) + 0.1 * 6.6, 1e-5);
  EXPECT_NEAR(to[1], 0.5 * (10 - 8.8) + 0.1 * 8.8, 1e-5);
}

TEST(Damped, SharesPassThroughAByte) {
  for (const float share : {1.0f, 0.5f, 0.25f, 1.0f / 256}) EXPECT_EQ(unpack_share(pack_share(share)), share);
  EXPECT_GT(unpack_share(pack_share(0)), 0);
  EXPECT_EQ(unpack_share(pack_share(2)), 1);
}

TEST(Combine, UnknownNamesAreNamed) {
  EXPECT_EQ(parse_combine("mean").value(), Combine::kMean);
  EXPECT_NE(parse_combine("max").status().message().find("max"), std::string::npos);
}

}  // namespace
}  // namespace streamvec
