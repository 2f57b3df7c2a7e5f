#include "streamvec/cluster/piece_queue.h"

#include <gtest/gtest.h>

namespace streamvec {
namespace {

using Next = PieceQueue::Next;

// Takes and finishes so many pieces, a token each.
void train(PieceQueue& queue, int64_t count, TrainedTotals& own) {
  for (int64_t i = 0; i < count; ++i) {
    int64_t piece = 0;
    ASSERT_EQ(queue.take(piece), Next::kPiece);
    own.tokens += 1;
    queue.finish(piece, own);
  }
}

TEST(PieceQueue, AsksOnceAndAgainWhenHalfOfWhatLiesAheadIsTaken) {
  PieceQueue queue(1);
  int64_t piece = 0;
  EXPECT_EQ(queue.take(piece), Next::kNotYet);
  const auto first = queue.report(0.1);
  ASSERT_TRUE(first.has_value());
  EXPECT_GT(first->wanted, 4);
  EXPECT_FALSE(queue.report(0.1).has_value()) << "one request is under way";
  const std::vector<PieceRange> given{{0, first->wanted}};
  queue.give(given, {}, 2);
  TrainedTotals own;
  train(queue, first->wanted / 2 - 1, own);
  EXPECT_FALSE(queue.report(0.15).has_value());
  train(queue, 2, own);
  EXPECT_GT(queue.report(0.15)->wanted, 0);
}

TEST(PieceQueue, AsksForFewWhereFewAreToBeAhead) {
  PieceQueue queue(3, {.seconds = 0.5, .least = 2});
  EXPECT_EQ(queue.report(0.1)->wanted, 6);
  queue.give(std::vector<PieceRange>{{0, 40}}, {}, 2);
  TrainedTotals own;
  train(queue, 40, own);
  EXPECT_EQ(queue.report(1.1)->wanted, 18);  // half a second's worth of 40 in 1.1 s
}

TEST(PieceQueue, AFastNodeAsksForSecondsOfWork) {
  PieceQueue queue(1);
  queue.report(0);
  queue.give(std::vector<PieceRange>{{0, 1000}}, {}, 2);
  TrainedTotals own;
  train(queue, 400, own);
  queue.report(1);  // 400 a second
  train(queue, 500, own);
  const auto report = queue.report(2);
  ASSERT_TRUE(report.has_value());
  EXPECT_NEAR(static_cast<double>(report->wanted), 2 * 500 - 100, 2);
  EXPECT_EQ(report->finished, (std::vector<PieceRange>{{400, 900}}));
  EXPECT_EQ(report->trained.tokens, 900);
}

TEST(PieceQueue, WhatIsFinishedIsToldSoonAndAtOnceWhenNothingIsLeft) {
  PieceQueue queue(1);
  queue.report(0);
  queue.give(std::vector<PieceRange>{{0, 3}}, {}, 2);
  EXPECT_TRUE(queue.report(0.01).has_value());  // asks for more, and gets none
  TrainedTotals own;
  train(queue, 2, own);
  EXPECT_FALSE(queue.report(0.02).has_value());
  EXPECT_EQ(queue.report(0.3)->finished, (std::vector<PieceRange>{{0, 2}}));
  EXPECT_FALSE(queue.dry(0.3));
  train(queue, 1, own);
  EXPECT_TRUE(queue.dry(0.3));
  EXPECT_EQ(queue.report(0.31)->finished, (std::vector<PieceRange>{{2, 3}}));
}

TEST(PieceQueue, IsDryWhenOthersHaveAllThePieces) {
  PieceQueue queue(1);
  EXPECT_FALSE(queue.dry(0));
  ASSERT_GT(queue.report(10)->wanted, 0);
  EXPECT_FALSE(queue.dry(10.01));
  EXPECT_TRUE(queue.dry(10.1));
  queue.give(std::vector<PieceRange>{{7, 8}}, {}, 2);  // which one that has died had
  EXPECT_FALSE(queue.dry(10.2));
}

TEST(PieceQueue, TakesTheOthersForAsFastAsItselfUntilItIsToldTheirWords) {
  PieceQueue queue(1);
  queue.report(0);
  queue.give(std::vector<PieceRange>{{0, 30}}, {0, 50, 0}, 3);
  TrainedTotals own;
  train(queue, 10, own);
  EXPECT_EQ(queue.tokens_of_all(), 80);
  ASSERT_TRUE(queue.report(0.3).has_value());
  EXPECT_EQ(queue.tokens_of_all(), 80) << "nothing was told yet that has them";
  queue.give({}, {0, 75, 0}, 3);
  EXPECT_EQ(queue.tokens_of_all(), 75);
  train(queue, 1, own);
  EXPECT_EQ(queue.tokens_of_all(), 78);
}

TEST(PieceQueue, TellsTheNextLeaderWhatItHasAndWhatNobodyElseMayKnowOf) {
  PieceQueue queue(1);
  queue.report(0);
  queue.give(std::vector<PieceRange>{{0, 6}}, {0, 50, 0, {}, {{1, {50, 0, 0, 0}}}}, 2);
  TrainedTotals own;
  train(queue, 3, own);
  queue.report(0.3);  // which may be lost
  queue.give({}, {1, 51, 0, {{2, 3}}, {{1, {50, 0, 0, 0}}, {2, {1, 0, 0, 0}}}}, 2);
  int64_t in_work = 0;
  ASSERT_EQ(queue.take(in_work), Next::kPiece);
  const KnownText known = queue.known(2);
  EXPECT_EQ(known.held, (std::vector<PieceRange>{{3, 6}}));
  EXPECT_EQ(known.standing.finished, (std::vector<PieceRange>{{2, 3}, {1, 2}}));
  EXPECT_EQ(known.standing.trained.at(2).tokens, own.tokens);
  EXPECT_EQ(known.standing.tokens, 50 + own.tokens);
  EXPECT_GT(queue.report(0.4)->wanted, 0) << "it asks again";
}

TEST(PieceQueue, EndsForEverybodyAtOnce) {
  PieceQueue over(2), failed(2);
  over.end(Next::kOver);
  failed.end(Next::kStopped);
  over.end(Next::kStopped);
  int64_t piece = 0;
  over.await(std::chrono::milliseconds(60'000));
  EXPECT_EQ(over.take(piece), Next::kOver);
  EXPECT_EQ(failed.take(piece), Next::kStopped);
}

}  // namespace
}  // namespace streamvec
