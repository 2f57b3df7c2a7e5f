#include "streamvec/source/splits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace streamvec {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kSplits = 64;

TEST(Splits, EachHasExactlyOneReaderWhoeverTakesPart) {
  for (const std::vector<uint64_t>& readers :
       {std::vector<uint64_t>{1}, {1, 2}, {2, 5, 9}, {0, 1, 2, 3, 4, 5, 6, 7}, {3, 70'000, 4'000'000'000}})
    for (uint64_t split = 0; split < kSplits; ++split)
      EXPECT_EQ(std::count_if(readers.begin(), readers.end(),
                              [&](uint64_t self) {
                                return Splits{self, readers}.has(split);
                              }),
                1);
}

TEST(Splits, OfAReaderThatIsLostMoveAndNoOthersDo) {
  const std::vector<uint64_t> before = {1, 2, 3, 4};
  for (const uint64_t lost : before) {
    std::vector<uint64_t> after = before;
    std::erase(after, lost);
    std::set<uint64_t> heirs;
    for (uint64_t split = 0; split < kSplits; ++split) {
      const uint64_t had = Splits::reader_of(split, before), has = Splits::reader_of(split, after);
      if (had == lost) {
        heirs.insert(has);
      } else {
        EXPECT_EQ(had, has) << split;
      }
    }
    EXPECT_EQ(heirs.size(), 3u);  // they do not all go to one
  }
}

TEST(Splits, AreSpreadOverTheReaders) {
  std::map<uint64_t, int> counted;
  for (uint64_t split = 0; split < kSplits; ++split) ++counted[Splits::reader_of(split, {1, 2, 3, 4})];
  for (const uint64_t reader : {1, 2, 3, 4}) EXPECT_GE(counted[reader], 8) << reader;
}

TEST(Splits, AreAllReadWhereNobodySharesThem) {
  for (uint64_t split = 0; split < kSplits; ++split) EXPECT_TRUE(Splits().has(split));
}

TEST(SharedCursor, OfSeveralReadersIsTheFurthestSplitBySplit) {
  SharedCursor one{{5, -1, 7}, 30};
  one.merge({{4, 2, 9, 1}, 20});
  EXPECT_THAT(one.splits, ElementsAre(5, 2, 9, 1));
  EXPECT_EQ(one.bytes, 30);
  const Result<SharedCursor> same = SharedCursor::parse(one.text());
  ASSERT_TRUE(same.ok()) << same.status().message();
  EXPECT_EQ(same->splits, one.splits);
}

TEST(SharedCursor, ThatIsNoneIsRefused) {
  for (const char* text :
       {"", "{}", "{\"shared\":[1]}", "{\"shared\":[\"1\"],\"bytes\":1}", "{\"sequence\":1,\"bytes\":1}"})
    EXPECT_EQ(SharedCursor::parse(text).status().code(), Code::kInvalidArgument) << text;
}

}  // namespace
}  // namespace streamvec
