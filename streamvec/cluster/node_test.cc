#include "streamvec/cluster/node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "streamvec/cluster/node_testing.h"
#include "streamvec/core/testing_stall.h"
#include "streamvec/transport/reliable_transport.h"

namespace streamvec {
namespace {

using namespace streamvec::testing;  // NOLINT: the nodes of this folder's tests
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class EveryScheme : public ::testing::TestWithParam<Admission> {};

TEST_P(EveryScheme, LeavesEveryNodeWithWhatAllHaveLearnt) {
  Cluster cluster(3, exact(GetParam()));
  for (const Status& status : cluster.run({300, 500, 100})) ASSERT_TRUE(status.ok()) << status.message();
  for (const Member& member : cluster.members)
    for (NodeId column = 1; column <= 3; ++column) {
      const double added = cluster.members[column - 1].added;
      EXPECT_EQ(member.sum(column), added);
      EXPECT_EQ(member.sum(column), cluster.members[column - 1].sum(column));
    }
}

INSTANTIATE_TEST_SUITE_P(Schemes, EveryScheme, ::testing::Values(Admission::kBsp, Admission::kSsp, Admission::kAsync));

TEST(ClusterNode, OwnersOfRowsNeedNotTrain) {
  Cluster cluster(2, exact(Admission::kBsp), 2);
  for (const Status& status : cluster.run({200, 200})) ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(cluster.members[0].sum(2), 200);
  EXPECT_EQ(cluster.members[1].sum(1), 200);
}

TEST(ClusterNode, WithoutMarksEveryRowThatIsDueIsPushed) {
  constexpr int64_t kFast = 8, kPushes = 20;  // fewer than take every row along
  InprocNetwork network;
  Matrix tables[] = {std::move(Matrix::make(kRows, kDim)).value(), std::move(Matrix::make(kRows, kDim)).value()};
  std::vector<float> pull(2 * kRows, 1e-9f);
  std::fill_n(pull.begin(), kFast, 1.0f);
  ClusterOptions options;
  options.workers = options.servers = {1};
  options.sync.scheme = exact(Admission::kBsp);
  options.sync.dim = kDim;
  options.sync.key_end = 2 * kRows;
  options.sync.pull = &pull;
  options.words_min = 50;
  const auto node = std::move(ClusterNode::start(options, network.join(1), {&tables[0], &tables[1]})).value();
  ASSERT_TRUE(node->await_start().ok());
  ClusterStats stats;
  for (; stats.pushes < kPushes; stats = node->stats()) ASSERT_TRUE(node->trained(10).ok());
  ASSERT_LT(stats.pushes, RowSchedule::kAllEvery);
  EXPECT_EQ(stats.rows_pushed, kFast * stats.pushes);
}

TEST(ClusterNode, TheLeaderKnowsHowEveryNodeFares) {
  Cluster cluster(2, exact(Admission::kBsp), 1);
  for (const Status& status : cluster.run({200, 200})) ASSERT_TRUE(status.ok()) << status.message();
  const std::vector<ClusterMember> seen = cluster.members[0].node->stats().members;
  ASSERT_EQ(seen.size(), 3u);
  for (size_t worker : {0, 1}) {
    EXPECT_GT(seen[worker].figures.clock, 0);
    EXPECT_GE(seen[worker].staleness, 0);
    EXPECT_GT(seen[worker].figures.bytes_sent, 200 * kDim);
    EXPECT_GT(seen[worker].figures.bytes_received, 200 * kDim);
  }
  EXPECT_LE(seen[1].figures.clock, cluster.members[1].node->stats().members[1].figures.clock);
  EXPECT_EQ(seen[2].figures.clock, -1);  // it owns rows and does not train
  EXPECT_EQ(seen[2].staleness, -1);
  EXPECT_GE(seen[2].figures.bytes_sent, 0);
  EXPECT_EQ(cluster.members[1].node->stats().members[0].figures.clock, -1) << "only the leader is told";
}

TEST(ClusterNode, NobodyBeginsBeforeEveryRowHasItsOwner) {
  Cluster cluster(4, exact(Admission::kBsp));
  for (Member& member : cluster.members) {
    ASSERT_TRUE(member.node->await_start().ok());
    EXPECT_TRUE(member.node->stats().settled);
  }
}

TEST(ClusterNode, TheLeaderSeesANodeFallBehind) {
  Cluster cluster(2, exact(Admission::kAsync));
  for (Member& member : cluster.members) ASSERT_TRUE(member.node->await_start().ok());
  const Deadline patience = Deadline::after(std::chrono::seconds(60));
  int64_t behind = 0;
  while (behind < 3 && !patience.passed()) {  // the other one trains nothing, and pushes only now and then
    cluster.members[0].train(1, 50);
    behind = cluster.members[0].node->stats().members[1].staleness;
  }
  EXPECT_GE(behind, 3);
}

TEST(ClusterNode, TheLeaderKnowsWhatAllHaveTrained) {
  Cluster cluster(3, exact(Admission::kAsync));
  cluster.run({10, 20, 30});
  EXPECT_EQ(cluster.totals, (std::vector<int64_t>{60, 20, 30}));
}

// One trains far more than the other, which holds it up: by what each thread was told it may train on.
TEST(ClusterNode, UnderSspNobodyTrainsFurtherAheadOfTheSlowestThanAllowed) {
  Scheme scheme = exact(Admission::kSsp);
  scheme.staleness = 1;
  Cluster cluster(2, scheme);
  for (const Status& status : cluster.run({3'000, 300})) ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_LE(cluster.members[0].node->stats().staleness_most, 1);
  EXPECT_LE(cluster.members[1].node->stats().staleness_most, 1);
}

TEST(ClusterNode, GoesOnWithoutANodeThatDies) {
  Cluster cluster(3, exact(Admission::kBsp), 0, 2);
  for (Member& member : cluster.members) ASSERT_TRUE(member.node->await_start().ok());
  std::vector<Status> statuses(2);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {
      cluster.members[i].train(static_cast<NodeId>(i + 1), 4'000);
      statuses[i] = cluster.members[i].node->finish({}).status();
    });
  cluster.members[2].train(3, 200);
  cluster.members[2].node.reset();  // parts at once
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : statuses) ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(cluster.members[0].node->stats().nodes, 2);
  EXPECT_THAT(cluster.members[0].node->stats().notes, ElementsAre("node 3 fell silent and was left out"));
  for (NodeId column = 1; column <= 2; ++column) {
    EXPECT_EQ(cluster.members[0].sum(column), 4'000);
    EXPECT_EQ(cluster.members[0].sum(column), cluster.members[1].sum(column));
  }
}

// One has read all of its text and has not said so; the other trains on, although every round needs both.
TEST(ClusterNode, ANodeThatHasNothingToTrainOnHoldsNobodyUp) {
  Cluster cluster(2, exact(Admission::kBsp));
  for (Member& member : cluster.members) ASSERT_TRUE(member.node->await_start().ok());
  cluster.members[0].train(1, 500);
  Result<TrainedTotals> other = TrainedTotals{};
  std::thread finishing([&] { other = cluster.members[1].node->finish({}); });
  EXPECT_TRUE(cluster.members[0].node->finish({}).ok());
  finishing.join();
  EXPECT_TRUE(other.ok());
  EXPECT_EQ(cluster.members[1].sum(1), 500);
}

// By itself it would push four times a second, and hold each round up until then: 36 times within that patience.
TEST(ClusterNode, OneThatTrainsSlowlyPushesWhenOthersWaitForIt) {
  repeat_when_stalled(std::chrono::milliseconds(500), [] {
    Cluster cluster(2, exact(Admission::kBsp));
    for (Member& member : cluster.members) ASSERT_TRUE(member.node->await_start().ok());
    const Deadline patience = Deadline::after(std::chrono::seconds(9));
    while (cluster.members[0].node->stats().pushes < 40 && !patience.passed()) cluster.members[0].train(1, 50);
    EXPECT_GE(cluster.members[0].node->stats().pushes, 40);
  });
}

TEST(ClusterNode, EndsWithAnErrorWhenTheLeaderIsLostAndNobodyMayTakeItsPlace) {
  Cluster cluster(2, exact(Admission::kBsp), 0, 2, {}, false);
  for (Member& member : cluster.members) ASSERT_TRUE(member.node->await_start().ok());
  cluster.members[0].node.reset();
  const Result<TrainedTotals> left = cluster.members[1].node->finish({});
  ASSERT_FALSE(left.ok());
  EXPECT_EQ(left.status().code(), Code::kUnavailable);
  EXPECT_THAT(left.status().message(), AllOf(HasSubstr("node 1"), HasSubstr("the newest checkpoint is what remains")));
}

TEST(ClusterNode, OneThatIsReadyEarlyWaitsForALeaderThatComesLate) {
  repeat_when_stalled(std::chrono::milliseconds(100), [] {
    Cluster cluster(2, exact(Admission::kBsp), 0, 0.3, {}, false, {1});
    std::this_thread::sleep_for(std::chrono::milliseconds(900));
    cluster.start(1, cluster.options);
    for (Member& member : cluster.members) EXPECT_TRUE(member.node->await_start().ok());
  });
}

TEST(ClusterNode, OneThatNeverHearsTheLeaderSaysThatNothingWasBegun) {
  Cluster cluster(2, exact(Admission::kBsp), 0, 10, {}, false, {1, 2});
  cluster.options.dead_after_s = cluster.options.start_within_s = 0.3;
  cluster.start(2, cluster.options);
  const Status waited = cluster.members[0].node->await_start().status();
  EXPECT_EQ(waited.code(), Code::kUnavailable);
  EXPECT_THAT(waited.message(), AllOf(HasSubstr("node 1"), HasSubstr("nothing was begun")));
}

TEST(ClusterNode, ANodeThatIsCutOffEndsAndTheOthersGoOn) {
  Cluster cluster(3, exact(Admission::kAsync), 0, 3);
  for (Member& member : cluster.members) ASSERT_TRUE(member.node->await_start().ok());
  cluster.network.cut(1, 3);
  cluster.network.cut(2, 3);
  const Result<TrainedTotals> alone = cluster.members[2].node->finish({});
  EXPECT_FALSE(alone.ok());
  Result<TrainedTotals> other = TrainedTotals{};
  std::thread finishing([&] { other = cluster.members[1].node->finish({}); });
  EXPECT_TRUE(cluster.members[0].node->finish({}).ok());
  finishing.join();
  EXPECT_TRUE(other.ok());
}

TEST(ClusterNode, AWishToStopEndsTheWaitForTheOthers) {
  InprocNetwork network;
  Member member;
  ClusterOptions options;
  options.workers = options.servers = {1, 2};
  options.sync.scheme = exact(Admission::kBsp);
  options.sync.dim = kDim;
  options.sync.key_end = 2 * kRows;
  for (Matrix& table : member.tables) table = std::move(Matrix::make(kRows, kDim)).value();
  member.node = std::move(ClusterNode::start(options, network.join(1), {&member.tables[0], &member.tables[1]})).value();
  const std::atomic<bool> stop = true;
  const Result<bool> started = member.node->await_start(&stop);
  ASSERT_TRUE(started.ok()) << started.status().message();
  EXPECT_FALSE(*started);
}

constexpr double kRefusalWait = 1.5;  // seconds, for nodes to come
// One that stood still for longer may not have come by then.
constexpr std::chrono::duration<double> kRefusalStall(kRefusalWait / 3);

// What a second node is told that is not like the first, and what the first says when it has waited for another.
struct Refusal {
  explicit Refusal(const std::function<void(ClusterOptions&)>& change) {
    Cluster cluster(2, exact(Admission::kBsp), 0, 10, {}, false, {1, 2});
    cluster.options.start_within_s = kRefusalWait;
    cluster.options.fingerprint_of = "7 words, --window 5, --lr 1";
    cluster.start(1, cluster.options);
    cluster.options.start_within_s = 60;
    change(cluster.options);
    cluster.start(2, cluster.options);
    const Status refused = cluster.members[1].node->await_start().status();
    EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
    told = refused.message();
    said = cluster.members[0].node->await_start().status().message();
  }
  std::string told, said;
};

TEST(ClusterNode, ANodeWithOtherOptionsIsToldThoseThatDiffer) {
  repeat_when_stalled(kRefusalStall, [] {
    const Refusal refusal([](ClusterOptions& options) {
      options.fingerprint = 8;
      options.fingerprint_of = "7 words, --window 3, --lr 1";
    });
    EXPECT_EQ(refusal.told, "node 2 has --window 3, node 1 has --window 5; give all nodes the same text and options");
    EXPECT_THAT(refusal.said, AllOf(HasSubstr("node 2 did not come"), HasSubstr(refusal.told)));
  });
}

TEST(ClusterNode, ANodeWithOtherWordsOrRowsAloneIsToldThat) {
  repeat_when_stalled(kRefusalStall, [] {
    const Refusal words([](ClusterOptions& options) { options.fingerprint = 8; });
    EXPECT_EQ(words.told, "node 2 has other words than node 1; give all nodes the same text and options");
    const Refusal rows([](ClusterOptions& options) { options.rows = 8; });
    EXPECT_EQ(rows.told,
              "node 2 begins with other rows than node 1; is the model that node 1 goes on with in its --out, too?");
  });
}

TEST(ClusterNode, ANodeOfAnotherKindIsWaitedForAndNamed) {
  repeat_when_stalled(kRefusalStall, [] {
    Cluster cluster(2, exact(Admission::kBsp), 0, 10, {}, false, {1, 2});
    cluster.options.start_within_s = kRefusalWait;
    ReliableTransport other(cluster.network.join(2));
    other.add_peer(1, "");
    cluster.start(1, cluster.options);
    other.send(1, "hello");
    const Status waited = cluster.members[0].node->await_start().status();
    EXPECT_EQ(waited.code(), Code::kUnavailable);
    EXPECT_THAT(waited.message(), AllOf(HasSubstr("node 2 did not come"), HasSubstr("the same --model")));
  });
}

}  // namespace
}  // namespace streamvec
