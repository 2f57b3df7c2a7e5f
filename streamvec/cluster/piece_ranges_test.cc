#include "streamvec/cluster/piece_ranges.h"

#include <gtest/gtest.h>

#include <limits>

namespace streamvec {
namespace {

using Ranges = std::vector<PieceRange>;

TEST(PieceRanges, AreJoinedWhereTheyTouchOrOverlap) {
  EXPECT_EQ(joined({{8, 9}, {2, 4}, {3, 6}, {5, 5}, {7, 1}, {6, 7}}), (Ranges{{2, 7}, {8, 9}}));
  EXPECT_EQ(joined({}), Ranges());
}

TEST(PieceRanges, AreCutAtTheirBoundsAndCountedFromAnotherNumber) {
  const Ranges ranges{{0, 3}, {5, 8}, {20, 30}};
  EXPECT_EQ(renumbered(ranges, {2, 25}, 0), (Ranges{{0, 1}, {3, 6}, {18, 23}}));
  EXPECT_EQ(renumbered(ranges, {0, 6}, 100), (Ranges{{100, 103}, {105, 106}}));
  EXPECT_EQ(renumbered(ranges, {9, 9}, 0), Ranges());
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(renumbered(Ranges{{kMost - 1, kMost}}, {0, kMost - 5}, 5), Ranges());
}

TEST(PieceRanges, KnowWhichPiecesTheyHaveAndHowMany) {
  const Ranges ranges{{2, 4}, {7, 8}};
  for (const int64_t piece : {2, 3, 7}) EXPECT_TRUE(has(ranges, piece)) << piece;
  for (const int64_t piece : {-1, 1, 4, 6, 8}) EXPECT_FALSE(has(ranges, piece)) << piece;
  EXPECT_EQ(piece_count(ranges), 3);
}

}  // namespace
}  // namespace streamvec
