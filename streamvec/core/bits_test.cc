#include "streamvec/core/bits.h"

#include <gtest/gtest.h>

#include <vector>

namespace streamvec {
namespace {

TEST(ForEachBit, GivesEveryNumberOfTheSetOnceAndInOrder) {
  std::vector<uint64_t> set(4);
  const std::vector<size_t> in_it = {0, 1, 63, 64, 130, 255};
  for (const size_t number : in_it) set[number / 64] |= uint64_t{1} << (number % 64);
  std::vector<size_t> given;
  for_each_bit(set, [&](size_t number) { given.push_back(number); });
  EXPECT_EQ(given, in_it);
}

TEST(ForEachBit, GivesNothingOfAnEmptySet) {
  for_each_bit(std::vector<uint64_t>(3), [](size_t number) { ADD_FAILURE() << number; });
}

}  // namespace
}  // namespace streamvec
