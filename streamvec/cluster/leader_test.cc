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

class LeaderOfFour : public ::testing::Test {
 protected:
  LeaderOfFour() {
    for (const NodeId node : {1, 2, 3, 4}) leader.receive(node, {ControlKind::kHello});
    decided();
  }
  // Node `by` finds `owner` slow; 0: none.
  void find(NodeId by, NodeId owner, uint32_t epoch) {
    Control alive;
    alive.view.epoch = epoch;
    if (owner != 0) alive.slow = {{owner, 0.06, 0.002}};
    leader.receive(by, alive);
  }
  std::vector<Control> decided(double now_s = 0, std::map<NodeId, double> heard_s = {{1, 0}, {2, 0}, {3, 0}, {4, 0}}) {
    Result<std::vector<Control>> orders = leader.decide(now_s, heard_s);
    EXPECT_TRUE(orders.ok());
    return orders.ok() ? *orders : std::vector<Control>{};
  }

  Leader leader{{1, {0, {1, 2, 3, 4}, {1, 2, 3, 4}}, 60, 10}, 0};
};

TEST_F(LeaderOfFour, TakesTheRowsFromAnOwnerThatMostOthersFindSlow) {
  find(1, 4, 1);
  find(4, 4, 1);  // counts for nothing
  EXPECT_TRUE(decided().empty());
  find(1, 0, 1);
  find(2, 4, 1);
  EXPECT_TRUE(decided().empty()) << "node 1 does so no longer";
  find(3, 4, 1);
  const std::vector<Control> orders = decided();
  ASSERT_EQ(orders.size(), 1);
  EXPECT_EQ(orders[0].kind, ControlKind::kView);
  EXPECT_EQ(orders[0].view.epoch, 2);
  EXPECT_EQ(orders[0].view.workers, (std::vector<NodeId>{1, 2, 3, 4}));
  EXPECT_EQ(orders[0].view.servers, (std::vector<NodeId>{1, 2, 3}));
  EXPECT_EQ(orders[0].view.retired, (std::vector<NodeId>{4}));
  EXPECT_EQ(orders[0].text,
            "node 4 answered for its rows after 60 ms in the mean where the others took 2 ms, by the measure of 2 of 3 "
            "nodes: its rows went to the others, and it trains on");
  EXPECT_TRUE(decided().empty());
}

TEST_F(LeaderOfFour, LeavesHalfOfTheOwnersTheirRowsAndOneAtATime) {
  for (const NodeId by : {2, 3, 4}) find(by, 1, 1);
  EXPECT_EQ(decided().front().view.retired, (std::vector<NodeId>{1})) << "the leader itself, too";
  for (const NodeId by : {1, 2, 3}) find(by, 4, 1);
  EXPECT_TRUE(decided().empty()) << "of the membership before";
  for (const NodeId by : {1, 2, 3}) find(by, 4, 2);
  EXPECT_EQ(decided().front().view.retired, (std::vector<NodeId>{1, 4}));
  for (const NodeId by : {1, 2, 4}) find(by, 3, 3);
  EXPECT_TRUE(decided().empty());
}

TEST_F(LeaderOfFour, SlowOwnersOwnRowsAgainWhenNobodyElseIsLeft) {
  for (const NodeId by : {2, 3, 4}) find(by, 1, 1);
  decided();
  std::vector<Control> orders = decided(20, {{1, 20}, {2, 0}, {3, 20}, {4, 20}});
  EXPECT_EQ(orders.front().view.retired, (std::vector<NodeId>{1}));
  orders = decided(40, {{1, 40}, {2, 0}, {3, 20}, {4, 20}});
  ASSERT_EQ(orders.size(), 1);
  EXPECT_EQ(orders[0].view.workers, (std::vector<NodeId>{1}));
  EXPECT_EQ(orders[0].view.servers, (std::vector<NodeId>{1}));
  EXPECT_TRUE(orders[0].view.retired.empty());
}

TEST_F(LeaderOfFour, OwnersKeepTheirRowsWhenAllHaveFinished) {
  for (const NodeId by : {1, 2, 3, 4}) leader.receive(by, {ControlKind::kFinished});
  EXPECT_EQ(decided().front().kind, ControlKind::kFlush);
  for (const NodeId by : {1, 2, 3}) find(by, 4, 1);
  EXPECT_TRUE(decided().empty());
}

TEST(SuccessorOfOne, KeepsInMindWhoOwnsRowsNoMore) {
  Leader leader = Leader::successor({2, {8, {2, 3, 4}, {2, 3}, {4}}, 10, 10}, 100);
  Control greeting{ControlKind::kGreeting};
  greeting.view.epoch = 8;
  for (const NodeId node : {2, 3, 4}) leader.receive(node, greeting);
  const std::vector<Control> orders = *leader.decide(100, {});
  ASSERT_EQ(orders.size(), 1);
  EXPECT_EQ(orders[0].view.servers, (std::vector<NodeId>{2, 3}));
  EXPECT_EQ(orders[0].view.retired, (std::vector<NodeId>{4}));
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
