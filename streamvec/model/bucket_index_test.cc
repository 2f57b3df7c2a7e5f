#include "streamvec/model/bucket_index.h"

#include <gtest/gtest.h>

#include <map>

namespace streamvec {
namespace {

TEST(BucketIndex, FindsEveryBucketThatWasAddedAndNoOther) {
  BucketIndex index;
  std::map<uint32_t, uint32_t> rows;
  Random random(3);
  for (int i = 0; i < 20'000; ++i) {
    const uint32_t bucket = random.below(100'000);
    const auto known = rows.find(bucket);
    EXPECT_EQ(index.find(bucket), known == rows.end() ? BucketIndex::kNone : known->second);
    if (known == rows.end()) rows[bucket] = index.add(bucket);
  }
  for (uint32_t bucket = 0; bucket < 100'000; ++bucket)
    ASSERT_EQ(index.find(bucket), rows.count(bucket) == 0 ? BucketIndex::kNone : rows[bucket]);
}

TEST(BucketIndex, RowsAreGivenInTheOrderOfBuckets) {
  BucketIndex index;
  for (const uint32_t bucket : {7u, 0u, 4'294'967'294u}) index.add(bucket);
  EXPECT_EQ(std::vector<uint32_t>(index.buckets().begin(), index.buckets().end()),
            (std::vector<uint32_t>{7, 0, 4'294'967'294}));
  EXPECT_EQ(index.find(0), 1u);
}

}  // namespace
}  // namespace streamvec
