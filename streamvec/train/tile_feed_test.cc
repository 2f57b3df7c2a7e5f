#include "streamvec/train/tile_feed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

// 10 tiles: four blocks of slots.
CellStore small_store() {
  Random random(1);
  Chunk chunk;
  for (int i = 0; i < 2'000; ++i) chunk.slots.push_back(static_cast<Slot>(random.below(1'000)));
  chunk.sentence_ends = {2'000};
  std::vector<CellCounter> counters;
  counters.emplace_back(CellCounter::Options{3, 1 << 24, ::testing::TempDir()});
  EXPECT_TRUE(counters[0].add(chunk).ok());
  return CellStore::merge(std::move(counters), 1 << 24, ::testing::TempDir()).value();
}

StepStats stats_of(int64_t pairs, double loss) {
  StepStats stats;
  stats.pairs = pairs;
  stats.loss = loss;
  return stats;
}

std::vector<TilePiece> all_of(TileFeed& feed) {
  std::vector<TilePiece> pieces;
  for (TilePiece piece; feed.next(piece); feed.finish(piece, stats_of(2, 1))) pieces.push_back(piece);
  return pieces;
}

TEST(TileFeed, GivesEveryTileOnceAnIterationInAnOrderOfItsOwn) {
  const CellStore store = small_store();
  ASSERT_EQ(store.tiles().size(), 10u);
  TileFeed feed(store, 3, 1, RunState(), 0);
  const std::vector<TilePiece> pieces = all_of(feed);
  ASSERT_EQ(pieces.size(), 30u);
  std::set<std::vector<int64_t>> orders;
  for (size_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<int64_t> order;
    for (size_t i = 0; i < 10; ++i) {
      EXPECT_EQ(pieces[epoch * 10 + i].epoch, static_cast<int32_t>(epoch));
      order.push_back(pieces[epoch * 10 + i].tile);
    }
    EXPECT_EQ(std::set<int64_t>(order.begin(), order.end()).size(), 10u);
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 3u);
  EXPECT_TRUE(feed.over());
  EXPECT_EQ(feed.fraction(), 1);
  EXPECT_EQ(feed.state().pairs, 60);
  EXPECT_EQ(feed.state().mean_loss(), 0.5);
}

TEST(TileFeed, GoesOnAfterTheTilesThatWereDone) {
  const CellStore store = small_store();
  TileFeed whole(store, 2, 7, RunState(), 0), first(store, 2, 7, RunState(), 0);
  const std::vector<TilePiece> pieces = all_of(whole);
  TilePiece piece;
  for (int i = 0; i < 13; ++i) {
    ASSERT_TRUE(first.next(piece));
    first.finish(piece, stats_of(1, 1));
  }
  first.stop();
  EXPECT_FALSE(first.next(piece));
  EXPECT_EQ(first.tiles_done(), 3);
  TileFeed second(store, 2, 7, first.state(), first.tiles_done());
  EXPECT_EQ(second.fraction(), first.fraction());
  const std::vector<TilePiece> rest = all_of(second);
  ASSERT_EQ(rest.size(), 7u);
  for (size_t i = 0; i < 7; ++i) EXPECT_EQ(rest[i].tile, pieces[13 + i].tile);
}

TEST(TileFeed, EndsWithTheFirstFailure) {
  const CellStore store = small_store();
  TileFeed feed(store, 2, 1, RunState(), 0);
  TilePiece piece;
  ASSERT_TRUE(feed.next(piece));
  feed.fail(error(Code::kDataLoss, "gone"));
  EXPECT_FALSE(feed.next(piece));
  EXPECT_TRUE(feed.over());
  EXPECT_EQ(feed.status().code(), Code::kDataLoss);
}

}  // namespace
}  // namespace streamvec
