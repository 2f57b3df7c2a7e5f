#include "streamvec/cluster/leader.h"

#include <gtest/gtest.h>

namespace streamvec {
namespace {

class LeaderOfThree : public ::testing::Test {
 protected:
  void say(NodeId from, ControlKind kind, uint32_t epoch = 1, int64_t clock = 0) {
    Control control{kind};
    control.view.epoch = epoch;
    control.clock = clock;
    leader.receive(from, control);
  }
  void all_say(ControlKind kind) {
    for (const NodeId node : {1, 2, 3}) say(node, kind);
  }
  // What is decided at a time when node 3 was heard at `third_s`, the others just now.
  std::vector<Control> decided(double now_s, double third_s) {
    Result<std::vector<Control>> orders = leader.decide(now_s, {{1, now_s}, {2, now_s}, {3, third_s}});
    EXPECT_TRUE(orders.ok());
    return orders.ok() ? *orders : std::vector<Control>{};
  }

  Leader leader{{1, {0, {1, 2, 3}, {1, 2, 3}}, 60, 10}, 0};
};

TEST_F(LeaderOfThree, BeginsWhenAllHaveCome) {
  say(1, ControlKind::kHello);
  say(3, ControlKind::kHello);
  EXPECT_TRUE(decided(1, 1).empty());
  say(2, ControlKind::kHello);
  const std::vector<Control> orders = decided(1, 1);
  ASSERT_EQ(orders.size(), 1);
  EXPECT_EQ(orders[0].kind, ControlKind::kView);
  EXPECT_EQ(orders[0].view.epoch, 1);
  EXPECT_EQ(orders[0].view.workers, (std::vector<NodeId>{1, 2, 3}));
  EXPECT_TRUE(decided(1, 1).empty());
}

TEST_F(LeaderOfThree, NamesWhoDidNotComeInTime) {
  say(1, ControlKind::kHello);
  say(3, ControlKind::kHello);
  const Result<std::vector<Control>> orders = leader.decide(61, {});
  ASSERT_FALSE(orders.ok());
  EXPECT_NE(orders.status().message().find("node 2 did not come"), std::string::npos);
}

TEST_F(LeaderOfThree, LeavesOutTheSilent) {
  all_say(ControlKind::kHello);
  decided(0, 0);
  EXPECT_TRUE(decided(10, 0).empty());
  const std::vector<Control> orders = decided(10.5, 0);
  ASSERT_EQ(orders.size(), 1);
  EXPECT_EQ(orders[0].view.epoch, 2);
  EXPECT_EQ(orders[0].view.servers, (std::vector<NodeId>{1, 2}));
}

TEST_F(LeaderOfThree, WhatOneSaysThatWasLeftOutCountsForNothing) {
  all_say(ControlKind::kHello);
  decided(0, 0);
  decided(10.5, 0);
  Control finished{ControlKind::kFinished};
  finished.trained.tokens = 5;
  leader.receive(2, finished);
  leader.receive(3, finished);
  EXPECT_EQ(leader.trained().tokens, 5);
  EXPECT_FALSE(leader.has_finished(3));
}

TEST_F(LeaderOfThree, EndsInTwoStagesAfterAllHaveFinished) {
  all_say(ControlKind::kHello);
  decided(0, 0);
  say(1, ControlKind::kFinished);
  say(2, ControlKind::kFinished);
  EXPECT_TRUE(decided(0, 0).empty());
  say(3, ControlKind::kFinished);
  ASSERT_EQ(decided(0, 0).front().kind, ControlKind::kFlush);
  say(1, ControlKind::kFlushed, 1, 7);
  say(2, ControlKind::kFlushed, 1, 9);
  say(3, ControlKind::kFlushed, 1, 8);
  const Control settle = decided(0, 0).front();
  EXPECT_EQ(settle.kind, ControlKind::kSettle);
  EXPECT_EQ(settle.clock, 9);
  all_say(ControlKind::kSettled);
  EXPECT_EQ(decided(0, 0).front().kind, ControlKind::kEnd);
}

TEST_F(LeaderOfThree, BeginsToEndAgainWhenANodeIsLostMeanwhile) {
  all_say(ControlKind::kHello);
  decided(0, 0);
  all_say(ControlKind::kFinished);
  decided(0, 0);
  say(1, ControlKind::kFlushed);
  const std::vector<Control> orders = decided(20, 0);
  ASSERT_EQ(orders.size(), 2);
  EXPECT_EQ(orders[0].kind, ControlKind::kView);
  EXPECT_EQ(orders[1].kind, ControlKind::kFlush);
  say(1, ControlKind::kFlushed, 2);
  say(2, ControlKind::kFlushed, 1);  // of the membership before
  EXPECT_TRUE(decided(20, 0).empty());
  say(2, ControlKind::kFlushed, 2);
  EXPECT_EQ(decided(20, 0).front().kind, ControlKind::kSettle);
}

TEST_F(LeaderOfThree, TakesNewcomersIntoTheNextMembership) {
  all_say(ControlKind::kHello);
  decided(0, 0);
  leader.admit(9, true);
  leader.admit(7, false);
  const std::vector<Control> orders = decided(0, 0);
  ASSERT_EQ(orders.size(), 1);
  EXPECT_EQ(orders[0].view.epoch, 2);
  EXPECT_EQ(orders[0].view.workers, (std::vector<NodeId>{1, 2, 3, 7, 9}));
  EXPECT_EQ(orders[0].view.servers, (std::vector<NodeId>{1, 2, 3, 9}));
}

TEST(SuccessorOfOne, WaitsForThoseThatAreLeftAndGoesOnWithWhoeverGreets) {
  Leader leader = Leader::successor({2, {8, {2, 3, 4, 5}, {2, 3, 4, 5}}, 10, 10}, 100);
  Control greeting{ControlKind::kGreeting};
  greeting.view.epoch = 7;
  leader.receive(4, greeting);  // to another
  greeting.view.epoch = 8;
  leader.receive(2, greeting);
  leader.receive(3, greeting);
  leader.receive(5, {ControlKind::kHello});  // was about to join
  EXPECT_TRUE(leader.decide(110, {})->empty());
  EXPECT_TRUE(leader.gathers());
  const std::vector<Control> orders = *leader.decide(110.5, {});
  ASSERT_EQ(orders.size(), 1);
  EXPECT_EQ(orders[0].view.epoch, 9);
  EXPECT_EQ(orders[0].view.workers, (std::vector<NodeId>{2, 3}));
  EXPECT_EQ(orders[0].view.servers, (std::vector<NodeId>{2, 3}));
  EXPECT_FALSE(leader.gathers());
}

TEST(SuccessorOfOne, DoesNotWaitWhenAllHaveGreeted) {
  Leader leader = Leader::successor({2, {8, {2, 3}, {2, 3}}, 10, 10}, 100);
  Control greeting{ControlKind::kGreeting};
  greeting.view.epoch = 8;
  for (const NodeId node : {2, 3}) leader.receive(node, greeting);
  EXPECT_EQ(leader.decide(100, {})->size(), 1);
}

TEST(SuccessorOfOne, FailsWhenNobodyIsLeftToOwnRows) {
  Leader leader = Leader::successor({2, {8, {2}, {3}}, 10, 10}, 100);
  Control greeting{ControlKind::kGreeting};
  greeting.view.epoch = 8;
  leader.receive(2, greeting);
  EXPECT_TRUE(leader.decide(110, {})->empty());
  EXPECT_EQ(leader.decide(111, {}).status().code(), Code::kUnavailable);
}

TEST_F(LeaderOfThree, WaitsForNewcomersToFinishAndTakesNobodyInAfterThat) {
  all_say(ControlKind::kHello);
  decided(0, 0);
  leader.admit(9, true);
  decided(0, 0);
  all_say(ControlKind::kFinished);
  const std::map<NodeId, double> now{{1, 0}, {2, 0}, {3, 0}, {9, 0}};
  EXPECT_TRUE(leader.decide(0, now)->empty());
  say(9, ControlKind::kFinished);
  EXPECT_EQ(leader.decide(0, now)->front().kind, ControlKind::kFlush);
  EXPECT_TRUE(leader.ending());
  leader.admit(10, true);
  EXPECT_TRUE(leader.decide(0, now)->empty());
}

}  // namespace
}  // namespace streamvec
