#include "streamvec/vocab/row_pace.h"

#include <gtest/gtest.h>

namespace streamvec {
namespace {

TEST(RowPace, RowsOfRareWordsTakeLongerStepsUpToABound) {
  const std::vector<double> counts = {5000, 1000, 250, 25, 4, 1};
  const RowPace pace(counts, {.pace_max = 8});
  const std::vector<double> input = {1, 1, 2, 6.325, 8, 8}, output = {1, 1, 1, 2, 4, 4};
  for (Slot slot = 0; slot < 6; ++slot) {
    EXPECT_NEAR(pace.input(slot), input[static_cast<size_t>(slot)], 1e-3) << slot;
    EXPECT_NEAR(pace.output(slot), output[static_cast<size_t>(slot)], 1e-3) << slot;
  }
  EXPECT_TRUE(pace.any());
}

TEST(RowPace, SeveralPassesMeetAWordMoreOften) {
  const std::vector<double> counts = {50};
  const RowPace five(counts, {.pace_max = 8, .passes = 5});
  EXPECT_FLOAT_EQ(five.input(0), 2);
  EXPECT_FLOAT_EQ(five.output(0), 1);
}

TEST(RowPace, ANewWordOfAStreamTakesTheLongestSteps) {
  const std::vector<double> counts = {5000};
  const RowPace pace(counts, {.pace_max = 6});
  EXPECT_FLOAT_EQ(pace.input(1), 6);
  EXPECT_FLOAT_EQ(pace.output(1), 3);
}

TEST(RowPace, WithoutCountsOrWithAPaceMaxOfOneAllRowsAreAlike) {
  const std::vector<double> none = {0, 0}, some = {3, 0};
  for (const RowPace& pace : {RowPace(), RowPace(none, {.pace_max = 8}), RowPace(some, {.pace_max = 1})}) {
    EXPECT_FALSE(pace.any());
    for (Slot slot = 0; slot < 5; ++slot) {
      EXPECT_EQ(pace.input(slot), 1);
      EXPECT_EQ(pace.output(slot), 1);
    }
  }
}

TEST(RowPace, OfAWordWithoutACountNothingIsKnown) {
  const std::vector<double> counts = {10, 0};
  const RowPace pace(counts, {.pace_max = 8});
  EXPECT_EQ(pace.input(0), 8);
  EXPECT_EQ(pace.input(1), 1);
  EXPECT_EQ(pace.output(1), 1);
}

TEST(RowPace, SlotsOfAPartTakeThePacesOfTheWhole) {
  const std::vector<double> counts = {5000, 250, 1};
  const RowPace whole(counts, {.pace_max = 8});
  RowPace part;
  part.take(0, whole, 2);
  part.take(1, whole, 7);
  part.take(2, whole, 1);
  EXPECT_FLOAT_EQ(part.input(0), 8);
  EXPECT_FLOAT_EQ(part.input(1), 8);
  EXPECT_FLOAT_EQ(part.input(2), 2);
  EXPECT_FLOAT_EQ(part.output(2), 1);
  EXPECT_TRUE(part.any());
}

}  // namespace
}  // namespace streamvec
