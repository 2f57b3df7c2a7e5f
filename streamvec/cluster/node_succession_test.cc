// A leader that dies, is cut off or stopped, and the node that takes its place.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <set>
#include <thread>

#include "streamvec/cluster/node_testing.h"
#include "streamvec/core/testing_stall.h"
#include "streamvec/core/testing_wait.h"

namespace streamvec {
namespace {

using namespace streamvec::testing;  // NOLINT: the nodes of this folder's tests
using std::chrono::milliseconds;

constexpr double kDeadAfter = 0.8;
// A node whose thread stood still for longer than this may have been left out though it lives.
constexpr std::chrono::duration<double> kSuccessionStall(kDeadAfter / 3);
constexpr int64_t kPieces = 400;

// Nodes that read a text together.
struct Reading {
  explicit Reading(int nodes, Admission admission = Admission::kAsync, int servers = 0)
      : cluster(nodes, exact(admission), servers, kDeadAfter, {0, kPieces}) {
    for (NodeId id = 1; id <= static_cast<NodeId>(nodes); ++id) read(id);
    for (Member& member : cluster.members) EXPECT_TRUE(member.node->await_start().ok());
    std::this_thread::sleep_for(milliseconds(150));
  }
  void read(NodeId id) { readers.emplace_back(cluster.members[id - 1], id, milliseconds(3)); }
  void kill(NodeId id) {
    readers[id - 1].stop();
    cluster.kill(id);
  }
  // What is wrong, once all have ended: the living have read all the text but what a dead one is known to have read,
  // with as many words as there are, and one of them leads.
  std::string end(const std::set<NodeId>& living) {
    for (Reader& reader : readers) reader.join();
    std::set<int64_t> all, of_dead;
    int32_t leaders = 0;
    for (size_t i = 0; i < readers.size(); ++i) {
      const Reader& reader = readers[i];
      const bool lives = living.count(static_cast<NodeId>(i + 1)) > 0;
      (lives ? all : of_dead).insert(reader.taken.begin(), reader.taken.end());
      if (!lives) continue;
      if (!reader.status.ok()) return "node " + std::to_string(i + 1) + ": " + reader.status.message();
      leaders += reader.led ? 1 : 0;
      if (reader.led && reader.tokens != 10 * kPieces) return std::to_string(reader.tokens) + " words";
    }
    if (leaders != 1) return std::to_string(leaders) + " leaders";
    of_dead.merge(all);
    return static_cast<int64_t>(of_dead.size()) == kPieces ? "" : std::to_string(of_dead.size()) + " pieces";
  }

  Cluster cluster;
  std::deque<Reader> readers;
};

class SuccessionUnder : public ::testing::TestWithParam<Admission> {};

TEST_P(SuccessionUnder, AnotherNodeLeadsWhenTheLeaderIsKilledAndAllTheTextIsTrainedOn) {
  repeat_when_stalled(kSuccessionStall, [] {
    Reading reading(3, GetParam());
    reading.kill(1);
    EXPECT_EQ(reading.end({2, 3}), "");
    EXPECT_EQ(reading.cluster.notebook.size(), 2u);
    EXPECT_TRUE(std::is_sorted(reading.cluster.notebook.epochs.begin(), reading.cluster.notebook.epochs.end()));
    for (NodeId column = 2; column <= 3; ++column) {
      const double added = reading.cluster.members[column - 1].added;
      EXPECT_EQ(reading.cluster.members[1].sum(column), added);
      EXPECT_EQ(reading.cluster.members[2].sum(column), added);
    }
    EXPECT_EQ(reading.cluster.members[1].sum(1), reading.cluster.members[2].sum(1));
  });
}

INSTANTIATE_TEST_SUITE_P(Schemes, SuccessionUnder,
                         ::testing::Values(Admission::kBsp, Admission::kSsp, Admission::kAsync));

TEST(Succession, TwoLeadersInARowMayDieAndTheLastNodeEndsTheRun) {
  repeat_when_stalled(kSuccessionStall, [] {
    Reading reading(3);
    reading.kill(1);
    ASSERT_TRUE(eventually("another leader", [&] { return reading.cluster.notebook.leader() >= 2; }));
    const NodeId second = reading.cluster.notebook.leader();
    reading.kill(second);
    const NodeId last = 5 - second;
    EXPECT_EQ(reading.end({last}), "");
  });
}

TEST(Succession, AllButOneMayDieAtOnce) {
  repeat_when_stalled(kSuccessionStall, [] {
    Reading reading(3, Admission::kBsp);
    reading.kill(1);
    reading.kill(2);
    EXPECT_EQ(reading.end({3}), "");
  });
}

TEST(Succession, ALeaderThatIsCutOffEndsByItselfAndTheOthersGoOn) {
  repeat_when_stalled(kSuccessionStall, [] {
    Reading reading(3, Admission::kBsp);
    for (const NodeId other : {2, 3}) reading.cluster.network.cut(1, other);
    reading.cluster.notebook.cut(1);
    EXPECT_EQ(reading.end({2, 3}), "");
    EXPECT_EQ(reading.readers[0].status.code(), Code::kAborted) << reading.readers[0].status.message();
    EXPECT_NE(reading.readers[0].status.message().find("neither"), std::string::npos);
  });
}

TEST(Succession, ALeaderThatLosesOnlyEtcdGoesOnWhileItHearsTheOthers) {
  repeat_when_stalled(kSuccessionStall, [] {
    Reading reading(2);
    EXPECT_TRUE(reading.cluster.members[0].node->holds_lead());
    reading.cluster.notebook.cut(1);
    EXPECT_TRUE(reading.cluster.members[0].node->leads());
    EXPECT_FALSE(reading.cluster.members[0].node->holds_lead());
    EXPECT_EQ(reading.end({1, 2}), "");
    EXPECT_TRUE(reading.readers[0].led);
  });
}

TEST(Succession, ALeaderThatWasOnlySilentHearsThatAnotherLeads) {
  repeat_when_stalled(kSuccessionStall, [] {
    Reading reading(3);
    for (const NodeId other : {2, 3}) reading.cluster.network.cut(1, other);
    reading.cluster.notebook.forget(1);
    ASSERT_TRUE(eventually("another leader", [&] { return reading.cluster.notebook.leader() >= 2; }));
    for (const NodeId other : {2, 3}) reading.cluster.network.mend(1, other);
    EXPECT_EQ(reading.end({2, 3}), "");
    EXPECT_EQ(reading.readers[0].status.code(), Code::kAborted) << reading.readers[0].status.message();
  });
}

TEST(Succession, OneThatWasAboutToJoinJoinsTheNextLeader) {
  repeat_when_stalled(kSuccessionStall, [] {
    Reading reading(2);
    reading.cluster.network.cut(1, 3);
    reading.cluster.join(3);
    reading.read(3);
    reading.kill(1);
    EXPECT_EQ(reading.end({2, 3}), "");
    EXPECT_FALSE(reading.readers[2].taken.empty());  // how much it still gets to read is a matter of time
  });
}

TEST(Succession, OwnersThatDoNotTrainServeTheNextLeader) {
  repeat_when_stalled(kSuccessionStall, [] {
    Reading reading(2, Admission::kBsp, 1);
    Status owner;
    std::thread serving([&] { owner = reading.cluster.members[2].node->finish({}).status(); });
    reading.kill(1);
    EXPECT_EQ(reading.end({2}), "");
    serving.join();
    EXPECT_TRUE(owner.ok()) << owner.message();
  });
}

TEST(Succession, ANodeThatHearsNeitherTheLeaderNorEtcdEnds) {
  repeat_when_stalled(kSuccessionStall, [] {
    Cluster cluster(2, exact(Admission::kBsp), 0, kDeadAfter);
    for (Member& member : cluster.members) ASSERT_TRUE(member.node->await_start().ok());
    cluster.notebook.cut(2);
    cluster.kill(1);
    const Status ended = cluster.members[1].node->finish({}).status();
    EXPECT_EQ(ended.code(), Code::kUnavailable);
    EXPECT_NE(ended.message().find("etcd"), std::string::npos) << ended.message();
  });
}

TEST(Succession, ALeaderThatCannotWriteDownWhoIsLeftEndsAndSaysWhy) {
  repeat_when_stalled(kSuccessionStall, [] {
    Cluster cluster(2, exact(Admission::kBsp), 0, kDeadAfter);
    for (Member& member : cluster.members) ASSERT_TRUE(member.node->await_start().ok());
    cluster.notebook.refuse(error(Code::kUnavailable, "no space left"));
    cluster.kill(2);
    ASSERT_TRUE(eventually("the end of one that trains", [&] { return !cluster.members[0].node->trained(0).ok(); }));
    const Status ended = cluster.members[0].node->finish({}).status();
    EXPECT_EQ(ended.code(), Code::kUnavailable) << "it leads still, and may save";
    EXPECT_NE(ended.message().find("who takes part: no space left"), std::string::npos) << ended.message();
  });
}

TEST(Succession, WhenNobodyCanTakeTheLeadersPlaceTheOthersSayWhy) {
  repeat_when_stalled(kSuccessionStall, [] {
    Cluster cluster(2, exact(Admission::kBsp), 0, kDeadAfter / 2);
    for (Member& member : cluster.members) ASSERT_TRUE(member.node->await_start().ok());
    cluster.notebook.refuse(error(Code::kUnavailable, "no space left"));
    cluster.kill(1);
    const Status ended = cluster.members[1].node->finish({}).status();
    EXPECT_EQ(ended.code(), Code::kUnavailable);
    EXPECT_NE(ended.message().find("in its place; no space left"), std::string::npos) << ended.message();
  });
}

TEST(Succession, ALeaderThatDiesBeforeAnybodyHasBegunIsReplaced) {
  repeat_when_stalled(kSuccessionStall, [] {
    Cluster cluster(3, exact(Admission::kBsp), 0, kDeadAfter, {}, true, {1});
    std::vector<Status> statuses(2);
    std::vector<std::thread> threads;
    for (const size_t i : {0, 1})
      threads.emplace_back([&, i] {
        Member& member = cluster.members[i];
        statuses[i] = member.node->await_start().status();
        member.train(static_cast<NodeId>(i + 2), 100);
        statuses[i] = member.node->finish({}).status();
      });
    for (std::thread& thread : threads) thread.join();
    for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(cluster.members[0].sum(3), 100);
  });
}

TEST(Succession, OneThatComesLateIsWaitedForByTheNextLeader) {
  repeat_when_stalled(kSuccessionStall, [] {
    Cluster cluster(3, exact(Admission::kBsp), 0, kDeadAfter, {}, true, {1, 3});
    ASSERT_TRUE(eventually("the second to lead", [&] { return cluster.notebook.leader() == 2; }));
    std::this_thread::sleep_for(milliseconds(100));
    ClusterOptions late = cluster.options;
    late.leader = 2;
    cluster.start(3, late);
    for (Member& member : cluster.members) ASSERT_TRUE(member.node->await_start().ok());
    EXPECT_EQ(cluster.members[1].node->stats().nodes, 2);
  });
}

// All have everything, and nobody has written it.
TEST(Succession, WhenTheLeaderDiesBeforeItHasSavedAnotherNodeSaves) {
  repeat_when_stalled(kSuccessionStall, [] {
    Cluster cluster(3, exact(Admission::kBsp), 0, kDeadAfter);
    for (Member& member : cluster.members) ASSERT_TRUE(member.node->await_start().ok());
    std::vector<std::thread> threads;
    for (Member& member : cluster.members) threads.emplace_back([&] { EXPECT_TRUE(member.node->finish({}).ok()); });
    for (std::thread& thread : threads) thread.join();
    cluster.kill(1);
    Status statuses[2];
    bool leads[2] = {};
    threads.clear();
    for (const size_t i : {0, 1})
      threads.emplace_back([&, i] {
        ClusterNode& node = *cluster.members[i + 1].node;
        statuses[i] = node.await_saved();
        leads[i] = node.leads();
        if (leads[i]) node.saved();
      });
    for (std::thread& thread : threads) thread.join();
    for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_NE(leads[0], leads[1]);
  });
}

}  // namespace
}  // namespace streamvec
