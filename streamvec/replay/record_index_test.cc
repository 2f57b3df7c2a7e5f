#include "streamvec/replay/record_index.h"

#include <gtest/gtest.h>

#include <unordered_map>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

TEST(RecordIndex, HoldsNothingAtFirst) {
  RecordIndex index;
  EXPECT_EQ(index.find(1), nullptr);
  index.erase(1);
  EXPECT_EQ(index.size(), 0u);
}

TEST(RecordIndex, KeepsTheFirstKeyUntilItIsChanged) {
  RecordIndex index;
  bool is_new = false;
  EXPECT_EQ(index.add(7, 1, is_new), 1u);
  EXPECT_TRUE(is_new);
  index.add(7, 2, is_new) = 3;
  EXPECT_FALSE(is_new);
  EXPECT_EQ(*index.find(7), 3u);
}

// Records that share places, come and go in any order: as std::unordered_map has it.
TEST(RecordIndex, DoesAsAMapDoes) {
  Random random(5);
  RecordIndex index;
  std::unordered_map<uint64_t, uint64_t> map;
  for (uint64_t step = 0; step < 200'000; ++step) {
    const uint64_t record = 1 + random.below(step < 100'000 ? 300 : 30'000);
    if (random.below(2) == 0) {
      bool is_new = false;
      index.add(record, step, is_new);
      EXPECT_EQ(is_new, map.emplace(record, step).second);
    } else {
      index.erase(record);
      map.erase(record);
    }
    ASSERT_EQ(index.size(), map.size());
    const uint64_t asked = 1 + random.below(300);
    const auto found = map.find(asked);
    ASSERT_EQ(index.find(asked) != nullptr, found != map.end());
    if (found == map.end()) continue;
    ASSERT_EQ(*index.find(asked), found->second);
  }
}

}  // namespace
}  // namespace streamvec
