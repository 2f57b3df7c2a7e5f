// Nodes that join while others train.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "streamvec/cluster/node_testing.h"
#include "streamvec/core/testing_wait.h"

namespace streamvec {
namespace {

using namespace streamvec::testing;  // NOLINT: the nodes of this folder's tests

// Each of these trains so many steps and finishes.
std::vector<Status> finish_all(Cluster& cluster, const std::vector<NodeId>& ids, int steps) {
  std::vector<Status> statuses(ids.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ids.size(); ++i)
    threads.emplace_back([&, i] {
      Member& member = cluster.members[ids[i] - 1];
      statuses[i] = member.node->await_start().status();
      if (!statuses[i].ok()) return;
      member.train(ids[i], steps);
      statuses[i] = member.node->finish({}).status();
    });
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

class JoinedScheme : public ::testing::TestWithParam<Scheme> {};

TEST_P(JoinedScheme, NodesThatJoinEndWithWhatAllHaveLearnt) {
  Cluster cluster(2, GetParam());
  for (Member& member : cluster.members) ASSERT_TRUE(member.node->await_start().ok());
  cluster.members[0].train(1, 10);
  cluster.members[1].train(2, 10);
  cluster.join(3);  // two at once
  cluster.join(4);
  for (const size_t newcomer : {2, 3}) ASSERT_TRUE(cluster.members[newcomer].node->await_start().ok());
  for (const Status& status : finish_all(cluster, {1, 2, 3, 4}, 150)) ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(cluster.members[0].node->stats().nodes, 4);
  EXPECT_EQ(cluster.notebook.last.size(), 4u);
  EXPECT_TRUE(std::is_sorted(cluster.notebook.epochs.begin(), cluster.notebook.epochs.end()));
  for (const Member& member : cluster.members)
    for (NodeId column = 1; column <= 4; ++column)
      EXPECT_NEAR(member.sum(column), cluster.members[0].sum(column), 1e-2) << "column " << column;
  if (GetParam().admission == Admission::kSoftsync || GetParam().admission == Admission::kBackup) return;
  for (NodeId column = 1; column <= 4; ++column)
    EXPECT_EQ(cluster.members[0].sum(column), cluster.members[column - 1].added) << "column " << column;
}

Scheme adaptive() {
  Scheme scheme = exact(Admission::kSsp);
  scheme.adaptive = true;
  scheme.staleness = 0;
  return scheme;
}

INSTANTIATE_TEST_SUITE_P(Schemes, JoinedScheme,
                         ::testing::Values(exact(Admission::kBsp), exact(Admission::kBackup), exact(Admission::kSsp),
                                           exact(Admission::kSoftsync), exact(Admission::kAsync), adaptive()));

TEST(ClusterNode, OneJoinsWhileAnotherDies) {
  Cluster cluster(3, exact(Admission::kBsp), 0, 3);
  for (Member& member : cluster.members) ASSERT_TRUE(member.node->await_start().ok());
  cluster.members[2].train(3, 50);
  cluster.join(4);
  cluster.members[2].node.reset();  // parts at once
  ASSERT_TRUE(cluster.members[3].node->await_start().ok());
  for (const Status& status : finish_all(cluster, {1, 2, 4}, 300)) ASSERT_TRUE(status.ok()) << status.message();
  for (const NodeId column : {1, 2, 4}) {
    EXPECT_EQ(cluster.members[0].sum(column), 300);
    EXPECT_EQ(cluster.members[3].sum(column), 300);
  }
  EXPECT_EQ(cluster.members[0].sum(3), cluster.members[3].sum(3));
  EXPECT_EQ(cluster.notebook.last.size(), 3u);
}

TEST(ClusterNode, OneThatJoinsWhereOthersOwnTheRowsOnlyTrains) {
  Cluster cluster(1, exact(Admission::kBsp), 1);
  ASSERT_TRUE(cluster.members[0].node->await_start().ok());
  cluster.join(3);
  ASSERT_TRUE(cluster.members[2].node->await_start().ok());
  Result<TrainedTotals> owner = TrainedTotals{};
  std::thread owning([&] { owner = cluster.members[1].node->finish({}); });
  for (const Status& status : finish_all(cluster, {1, 3}, 100)) ASSERT_TRUE(status.ok()) << status.message();
  owning.join();
  EXPECT_EQ(cluster.members[0].sum(3), 100);
  EXPECT_EQ(cluster.members[2].sum(1), 100);
  EXPECT_FALSE(cluster.notebook.last.back().server);
}

TEST(ClusterNode, OneWithAnotherVocabularyCannotJoinAndIsToldWhy) {
  Cluster cluster(2, exact(Admission::kBsp));
  for (Member& member : cluster.members) ASSERT_TRUE(member.node->await_start().ok());
  cluster.join(3, 8);
  const Status refused = cluster.members[2].node->await_start().status();
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
  EXPECT_NE(refused.message().find("node 3 has 8 words, node 1 has 7 words"), std::string::npos) << refused.message();
  for (const Status& status : finish_all(cluster, {1, 2}, 20)) EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(cluster.members[0].node->stats().nodes, 2);
}

TEST(ClusterNode, OneJoinsOnceItCanBeWrittenDownAndTheOthersTrainMeanwhile) {
  Cluster cluster(2, exact(Admission::kBsp), 0, 3);
  for (Member& member : cluster.members) ASSERT_TRUE(member.node->await_start().ok());
  cluster.notebook.refuse(error(Code::kUnavailable, "no space left"));
  cluster.join(3);
  const auto notes = [&] { return cluster.members[0].node->stats().notes; };
  ASSERT_TRUE(eventually("a note of what it waits for", [&] { return !notes().empty(); }));
  EXPECT_NE(notes().front().find("no space left"), std::string::npos) << notes().front();
  EXPECT_EQ(cluster.members[0].node->stats().nodes, 2);
  EXPECT_TRUE(cluster.members[0].node->trained(10).ok());
  cluster.notebook.refuse({});
  ASSERT_TRUE(cluster.members[2].node->await_start().ok());
  for (const Status& status : finish_all(cluster, {1, 2, 3}, 50)) EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(cluster.members[2].sum(1), 50);
}

TEST(ClusterNode, ALeaderThatAnotherHasTakenThePlaceOfEnds) {
  Cluster cluster(2, exact(Admission::kAsync));
  for (Member& member : cluster.members) ASSERT_TRUE(member.node->await_start().ok());
  cluster.notebook.set_status(1, error(Code::kAborted, "another node leads"));
  EXPECT_EQ(cluster.members[0].node->finish({}).status().code(), Code::kAborted);
}

}  // namespace
}  // namespace streamvec
