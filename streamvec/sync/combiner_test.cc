#include "streamvec/sync/combiner.h"

#include <gtest/gtest.h>

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

TEST(Combine, UnknownNamesAreNamed) {
  EXPECT_EQ(parse_combine("mean").value(), Combine::kMean);
  EXPECT_NE(parse_combine("max").status().message().find("max"), std::string::npos);
}

}  // namespace
}  // namespace streamvec
