#include "streamvec/model/step_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace streamvec {
namespace {

TEST(StepSums, HasOneSumForEachRowHoweverOftenItIsNamed) {
  StepSums sums;
  for (int batch = 0; batch < 2; ++batch) {  // the second finds nothing of the first
    sums.begin(6, 16);
    for (const Slot slot : {7, 7, 1'000'000, 0, 7, 0}) sums.name(slot);
    EXPECT_THAT(sums.slots(), ::testing::ElementsAre(7, 1'000'000, 0));
    EXPECT_EQ(sums.times(7), 3);
    EXPECT_EQ(sums.times(1'000'000), 1);
    EXPECT_EQ(sums.times(0), 2);
    sums.row(7)[0] += 1;
    sums.row(7)[15] += 2;
    sums.row(0)[3] += 4;
    EXPECT_EQ(sums.sum(0)[0], 1);
    EXPECT_EQ(sums.sum(0)[15], 2);
    EXPECT_EQ(sums.sum(1)[0], 0);
    EXPECT_EQ(sums.sum(2)[3], 4);
  }
}

TEST(StepSums, TellsApartAsManyRowsAsWereAnnounced) {
  StepSums sums;
  sums.begin(1'000, 16);
  for (Slot slot = 0; slot < 1'000; ++slot) sums.name(slot * 128);  // whose hashes have much in common
  for (Slot slot = 0; slot < 1'000; ++slot) *sums.row(slot * 128) = static_cast<float>(slot);
  for (Slot slot = 0; slot < 1'000; ++slot) EXPECT_EQ(*sums.row(slot * 128), static_cast<float>(slot));
}

}  // namespace
}  // namespace streamvec
