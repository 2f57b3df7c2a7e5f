#include "streamvec/cluster/portion_board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace streamvec {
namespace {

TEST(PortionBoard, HandsOutEachPortionOnceWhileSomeAreLeft) {
  PortionBoard board(4);
  std::set<int64_t> handed;
  for (const NodeId node : {1u, 2u, 1u, 2u}) handed.insert(*board.next(node));
  EXPECT_EQ(handed.size(), 4u);
  EXPECT_EQ(board.copies(), 0);
  EXPECT_EQ(board.in_work(1), 2);
}

TEST(PortionBoard, HandsTheOldestOutAgainNearTheEndAndTheFirstToFinishCounts) {
  PortionBoard board(2);
  const int64_t slow = *board.next(1), quick = *board.next(2);
  EXPECT_TRUE(board.finish(2, quick));
  ASSERT_EQ(board.next(2), slow);
  EXPECT_EQ(board.copies(), 1);
  EXPECT_EQ(board.next(3), std::nullopt);  // two nodes have it
  EXPECT_EQ(board.next(1), std::nullopt);  // it works on that already
  EXPECT_TRUE(board.finish(2, slow));
  EXPECT_TRUE(board.over());
  EXPECT_FALSE(board.finish(1, slow));
  EXPECT_EQ(board.in_work(1), 0);
}

TEST(PortionBoard, WhatOnlyALostNodeWorkedOnIsHandedOutAgain) {
  PortionBoard board(3);
  const int64_t lost = *board.next(1), shared = *board.next(2), last = *board.next(2);
  ASSERT_EQ(board.next(3), lost);
  board.leave(3);
  ASSERT_EQ(board.next(3), lost);  // a copy again: the first node still works on it
  board.leave(1);
  board.leave(3);
  EXPECT_EQ(board.next(2), lost);
  for (const int64_t portion : {lost, shared, last}) EXPECT_TRUE(board.finish(2, portion));
  EXPECT_TRUE(board.over());
}

}  // namespace
}  // namespace streamvec
