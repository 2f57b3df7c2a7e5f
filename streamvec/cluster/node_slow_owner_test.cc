// Owners of rows that are slow in everything.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "streamvec/cluster/node.h"
#include "streamvec/cluster/node_testing.h"
#include "streamvec/core/testing_stall.h"

namespace streamvec {
namespace {

using namespace streamvec::testing;  // NOLINT: the nodes of this folder's tests
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr std::chrono::milliseconds kSlowOwnerStall(100);  // longer: nodes are slow that should not be

// Four nodes, of which one is slow, train until rows have moved or the time is over, and then a little more.
void train_with_slow(Cluster& cluster, NodeId slow, std::chrono::seconds most) {
  cluster.slow = slow;
  const auto end = std::chrono::steady_clock::now() + most;
  std::atomic<bool> enough = false;
  std::vector<std::thread> threads;
  for (NodeId id = 1; id <= 4; ++id)
    threads.emplace_back([&, id] {
      Member& member = cluster.members[id - 1];
      ASSERT_TRUE(member.node->await_start().ok());
      for (int step = 0, after = 0; after < 20; ++step, after += enough ? 1 : 0) {
        member.add_one(step, id);
        ASSERT_TRUE(member.node->trained(10).ok());
        std::this_thread::sleep_for(std::chrono::milliseconds(4));  // the slow one has time for what the others say
      }
      const Status status = member.node->finish({}).status();
      EXPECT_TRUE(status.ok()) << status.message();
    });
  while (std::chrono::steady_clock::now() < end && cluster.members[0].node->stats().epoch < 2)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  enough = true;
  for (std::thread& thread : threads) thread.join();
}

// Of slow nodes, the last and the one that leads.
class OneSlowOwner : public ::testing::TestWithParam<std::pair<Admission, NodeId>> {};

TEST_P(OneSlowOwner, GivesItsRowsToTheOthersAndTrainsOn) {
  const auto [admission, slow] = GetParam();
  Cluster cluster(4, exact(admission), 0, 10, {}, false);
  train_with_slow(cluster, slow, std::chrono::seconds(120));
  for (const Member& member : cluster.members) {
    const ClusterStats stats = member.node->stats();
    EXPECT_EQ(stats.epoch, 2);
    EXPECT_THAT(stats.notes, Contains(HasSubstr("node " + std::to_string(slow) + " answered for its rows after ")));
    for (const ClusterMember& seen : stats.members) {
      EXPECT_TRUE(seen.taking_part);
      EXPECT_EQ(seen.server, seen.node != slow);
    }
    for (NodeId column = 1; column <= 4; ++column) {
      EXPECT_EQ(member.sum(column), cluster.members[0].sum(column));
      if (admission != Admission::kAsync) continue;
      EXPECT_EQ(member.sum(column), cluster.members[column - 1].added);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schemes, OneSlowOwner,
                         ::testing::Values(std::pair{Admission::kBackup, NodeId{4}},
                                           std::pair{Admission::kBackup, NodeId{1}},
                                           std::pair{Admission::kAsync, NodeId{4}},
                                           std::pair{Admission::kSoftsync, NodeId{4}}),
                         [](const auto& test) {
                           const Admission admission = test.param.first;
                           return std::string(admission == Admission::kBackup  ? "backup"
                                              : admission == Admission::kAsync ? "async"
                                                                               : "softsync") +
                                  (test.param.second == 1 ? "_leader" : "_last");
                         });

TEST(SlowOwners, KeepTheirRowsWhereAllWaitForTheSlowestWorker) {
  repeat_when_stalled(kSlowOwnerStall, [] {
    Cluster cluster(4, exact(Admission::kBsp), 0, 10, {}, false);
    train_with_slow(cluster, 4, std::chrono::seconds(3));
    EXPECT_EQ(cluster.members[0].node->stats().epoch, 1);
  });
}

TEST(SlowOwners, NobodyLosesRowsWhereNobodyIsSlow) {
  repeat_when_stalled(kSlowOwnerStall, [] {
    Cluster cluster(4, exact(Admission::kBackup), 0, 10, {}, false);
    train_with_slow(cluster, 0, std::chrono::seconds(3));
    EXPECT_EQ(cluster.members[0].node->stats().epoch, 1);
  });
}

}  // namespace
}  // namespace streamvec
