#include "streamvec/cluster/hybrid_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "streamvec/cluster/node_testing.h"
#include "streamvec/core/testing_wait.h"
#include "streamvec/transport/inproc.h"

namespace streamvec {
namespace {

constexpr int64_t kHybridRows = 40, kHybridDim = 8;

// Nodes as threads, whose "training" adds whole numbers under a lock: node i to column i, of what goes round the ring
// and, if there are any, of rows that have owners.
class HybridCluster {
 public:
  // The last `late` nodes join while the others train.
  HybridCluster(size_t count, Combine combine, bool rows = false, double dead_after_s = 10, size_t late = 0)
      : mutexes(count), ring_tables(count), row_tables(count), has_rows(rows) {
    for (size_t i = 0; i < count - late; ++i) members.workers.push_back(static_cast<NodeId>(i + 1));
    members.servers = members.workers;
    members.joinable = late > 0;
    for (const NodeId node : members.workers) {
      members.addresses[node] = "";
      notebook.last.push_back({node, "", true, true});
    }
    members.dead_after_s = dead_after_s;
    members.sync.dim = kHybridDim;
    members.sync.key_end = kHybridRows;
    members.sync.scheme.combine = Combine::kSum;
    members.sync.scheme.codec = CodecKind::kFp32;
    ring.words_min = members.words_min = 50;
    ring.words_max = members.words_max = 1'000;
    ring.dead_after_s = dead_after_s;
    ring.unheard_after_s = 2 * dead_after_s;
    for (size_t i = 0; i < count; ++i) {
      ring_tables[i] = std::move(Matrix::make(kHybridRows, kHybridDim)).value();
      row_tables[i] = std::move(Matrix::make(kHybridRows, kHybridDim)).value();
      DenseTable table;
      table.live = &ring_tables[i];
      table.combine = combine;
      ring.tables = {table};
      ring.with_tables = [this, i](const std::function<void()>& use) {
        const std::lock_guard lock(mutexes[i]);
        use();
      };
      members.sync.live_mutex = &mutexes[i];
      ring_options.push_back(ring);
      member_options.push_back(members);
      if (late == 0) continue;
      member_options[i].registry = &notebook.page(static_cast<NodeId>(i + 1));
      if (i + late >= count) make_late(i);
    }
  }

  // It begins elsewhere.
  void make_late(size_t i) {
    const auto id = static_cast<NodeId>(i + 1);
    ClusterOptions& options = member_options[i];
    for (std::vector<NodeId>* ids : {&options.workers, &options.servers}) ids->push_back(id);
    options.addresses[id] = "";
    options.leader = 1;
    options.joins = ring_options[i].joins = true;
    for (Matrix* table : {&ring_tables[i], &row_tables[i]}) table->row(0)[i] = 1'000;
  }

  void join(size_t i) {
    auto transport = network.join(static_cast<NodeId>(i + 1));
    for (const NodeId node : members.workers)
      if (node != i + 1) transport->add_peer(node, "");
    std::vector<Matrix*> tables;
    if (has_rows) tables = {&row_tables[i]};
    nodes[i] = std::move(HybridNode::start(member_options[i], tables, ring_options[i], std::move(transport))).value();
  }
  void join_all() {
    for (size_t i = 0; i < mutexes.size(); ++i) join(i);
  }

  Status train(size_t i, int steps) {
    for (int step = 0; step < steps; ++step) {
      {
        const std::lock_guard lock(mutexes[i]);
        ring_tables[i].row(step % kHybridRows)[i] += 1;
        if (has_rows) row_tables[i].row(step % kHybridRows)[i] += 1;
      }
      STREAMVEC_RETURN_IF_ERROR(nodes[i]->trained(10));
    }
    return {};
  }

  // All that there are train so many steps and finish; returns their statuses.
  std::vector<Status> run(const std::vector<int>& steps) {
    std::vector<Status> statuses(mutexes.size());
    totals.assign(mutexes.size(), 0);
    std::vector<std::thread> threads;
    for (const auto& [i, node] : nodes)
      threads.emplace_back([&, i = i] {
        statuses[i] = nodes[i]->await_start().status();
        if (statuses[i].ok()) statuses[i] = train(i, steps[i]);
        TrainedTotals own;
        own.tokens = steps[i];
        const Result<TrainedTotals> all = nodes[i]->finish(own);
        statuses[i] = all.status();
        if (all.ok()) totals[i] = all->tokens;
      });
    for (std::thread& thread : threads) thread.join();
    return statuses;
  }

  static double sum(const Matrix& table, size_t column) {
    double sum = 0;
    for (int64_t row = 0; row < kHybridRows; ++row) sum += table.row(row)[column];
    return sum;
  }

  InprocNetwork network;
  testing::Notebook notebook;
  ClusterOptions members;
  RingOptions ring;
  std::vector<ClusterOptions> member_options;
  std::vector<RingOptions> ring_options;
  std::vector<std::mutex> mutexes;
  std::vector<Matrix> ring_tables, row_tables;
  const bool has_rows;
  std::map<size_t, std::unique_ptr<HybridNode>> nodes;
  std::vector<int64_t> totals;
};

TEST(HybridNode, LeavesEveryNodeWithTheSumOfWhatAllHaveTrained) {
  for (const bool rows : {false, true})
    for (const size_t nodes : {1u, 2u, 3u}) {
      HybridCluster cluster(nodes, Combine::kSum, rows);
      cluster.join_all();
      const std::vector<int> steps = {300, 2'000, 100};
      for (const Status& status : cluster.run(steps)) ASSERT_TRUE(status.ok()) << status.message();
      for (size_t node = 0; node < nodes; ++node)
        for (size_t column = 0; column < nodes; ++column) {
          EXPECT_EQ(HybridCluster::sum(cluster.ring_tables[node], column), steps[column]);
          EXPECT_EQ(HybridCluster::sum(cluster.row_tables[node], column), rows ? steps[column] : 0);
        }
      const ClusterStats stats = cluster.nodes[0]->stats();
      EXPECT_GT(stats.pushes, 1);
      ASSERT_EQ(stats.members.size(), nodes);
      for (const ClusterMember& member : stats.members) EXPECT_EQ(member.server, rows) << "owns rows";
    }
}

TEST(HybridNode, LeavesEveryNodeWithTheMean) {
  HybridCluster cluster(4, Combine::kMean);
  cluster.join_all();
  for (const Status& status : cluster.run({400, 400, 400, 400})) ASSERT_TRUE(status.ok()) << status.message();
  for (size_t node = 0; node < 4; ++node)
    for (size_t column = 0; column < 4; ++column)
      EXPECT_NEAR(HybridCluster::sum(cluster.ring_tables[node], column), 100, 1e-2);
}

TEST(HybridNode, TheEndWaitsForARingThatIsSlow) {
  for (const bool rows : {false, true}) {
    HybridCluster cluster(2, Combine::kSum, rows);
    for (RingOptions& options : cluster.ring_options)
      options.with_tables = [with = options.with_tables](const std::function<void()>& use) {
        std::this_thread::sleep_for(std::chrono::milliseconds(60));
        with(use);
      };
    cluster.join_all();
    for (const Status& status : cluster.run({30, 40})) ASSERT_TRUE(status.ok()) << status.message();
    for (size_t node = 0; node < 2; ++node) {
      EXPECT_EQ(HybridCluster::sum(cluster.ring_tables[node], 0), 30);
      EXPECT_EQ(HybridCluster::sum(cluster.ring_tables[node], 1), 40);
    }
  }
}

TEST(HybridNode, TheLeaderKnowsWhatAllHaveTrained) {
  HybridCluster cluster(3, Combine::kMean);
  cluster.join_all();
  cluster.run({10, 20, 30});
  EXPECT_EQ(cluster.totals, (std::vector<int64_t>{60, 20, 30}));
}

TEST(HybridNode, TrainingGoesOnWhenANodeDiesWithAndWithoutRows) {
  for (const bool rows : {false, true}) {
    HybridCluster cluster(3, Combine::kSum, rows, 2.5);
    cluster.join_all();
    for (auto& [rank, node] : cluster.nodes) ASSERT_TRUE(node->await_start().ok());
    ASSERT_TRUE(cluster.train(1, 20).ok());
    cluster.nodes.erase(1);
    for (const Status& status : cluster.run({300, 0, 400})) ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(cluster.nodes[0]->stats().nodes, 2);
    for (const size_t node : {0u, 2u})
      for (const std::vector<Matrix>* tables : {&cluster.ring_tables, &cluster.row_tables}) {
        if (!rows && tables == &cluster.row_tables) continue;
        EXPECT_EQ(HybridCluster::sum((*tables)[node], 0), 300);
        EXPECT_EQ(HybridCluster::sum((*tables)[node], 2), 400);
        EXPECT_EQ(HybridCluster::sum((*tables)[node], 1), HybridCluster::sum((*tables)[0], 1));
        EXPECT_LE(HybridCluster::sum((*tables)[node], 1), 20);
      }
  }
}

TEST(HybridNode, NodesThatJoinEndWithWhatAllHaveLearntWithAndWithoutRows) {
  for (const bool rows : {false, true}) {
    HybridCluster cluster(4, Combine::kSum, rows, 10, 2);
    for (const size_t i : {0u, 1u}) cluster.join(i);
    for (const size_t i : {0u, 1u}) ASSERT_TRUE(cluster.nodes[i]->await_start().ok());
    for (const size_t i : {0u, 1u}) ASSERT_TRUE(cluster.train(i, 20).ok());
    for (const size_t i : {2u, 3u}) cluster.join(i);
    for (const size_t i : {2u, 3u}) ASSERT_TRUE(cluster.nodes[i]->await_start().ok());
    for (const Status& status : cluster.run({280, 380, 100, 200})) ASSERT_TRUE(status.ok()) << status.message();
    const std::vector<int> steps = {300, 400, 100, 200};
    for (size_t node = 0; node < 4; ++node)
      for (size_t column = 0; column < 4; ++column) {
        EXPECT_EQ(HybridCluster::sum(cluster.ring_tables[node], column), steps[column]) << "node " << node;
        if (!rows) continue;
        EXPECT_EQ(HybridCluster::sum(cluster.row_tables[node], column), steps[column]) << "node " << node;
      }
    EXPECT_EQ(cluster.nodes[0]->stats().nodes, 4);
  }
}

// It still tells the others how far it has come, and they go on.
TEST(HybridNode, NobodyJoinsARingWhoseLeaderHasNoMoreText) {
  HybridCluster cluster(3, Combine::kSum, false, 10, 1);
  for (const size_t i : {0u, 1u}) cluster.join(i);
  for (const size_t i : {0u, 1u}) ASSERT_TRUE(cluster.nodes[i]->await_start().ok());
  std::thread first([&] { EXPECT_TRUE(cluster.nodes[0]->finish({}).ok()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  cluster.join(2);
  EXPECT_THAT(cluster.nodes[2]->await_start().status().message(), ::testing::HasSubstr("takes nobody in any more"));
  EXPECT_TRUE(cluster.train(1, 20).ok());
  EXPECT_TRUE(cluster.nodes[1]->finish({}).ok());
  first.join();
  EXPECT_EQ(HybridCluster::sum(cluster.ring_tables[0], 1), 20);
}

// The other has formed a ring with the one that joins, which has not heard that it takes part.
TEST(HybridNode, OneThatWasTakenInByALeaderThatDiedBeforeItKnewIsToComeAgain) {
  HybridCluster cluster(3, Combine::kSum, false, 2.5, 1);
  for (const size_t i : {0u, 1u}) cluster.join(i);
  for (const size_t i : {0u, 1u}) ASSERT_TRUE(cluster.nodes[i]->await_start().ok());
  cluster.network.drop_next(1, 3, 1'000'000);
  cluster.join(2);
  ASSERT_TRUE(eventually("a membership of three", [&] { return cluster.nodes[1]->stats().nodes == 3; }));
  cluster.nodes.erase(0);
  cluster.notebook.forget(1);
  EXPECT_THAT(cluster.nodes[2]->await_start().status().message(), ::testing::HasSubstr("start it again, and it joins"));
  EXPECT_TRUE(cluster.train(1, 20).ok());
  EXPECT_TRUE(cluster.nodes[1]->finish({}).ok());
}

TEST(HybridNode, EverybodyEndsWithAnErrorWhenTheLeaderDies) {
  HybridCluster cluster(3, Combine::kSum, false, 2.5);
  cluster.join_all();
  for (auto& [rank, node] : cluster.nodes) ASSERT_TRUE(node->await_start().ok());
  cluster.nodes.erase(0);
  const std::vector<Status> statuses = cluster.run({0, 10, 10});
  for (const size_t i : {1u, 2u}) EXPECT_THAT(statuses[i].message(), ::testing::HasSubstr("node 1, which leads"));
}

TEST(HybridNode, ANodeWithOtherTextIsRefusedWithTheReason) {
  HybridCluster cluster(2, Combine::kSum);
  cluster.member_options[1].fingerprint = 7;
  cluster.member_options[1].fingerprint_of = "other words";
  cluster.join_all();
  EXPECT_THAT(cluster.nodes[1]->await_start().status().message(), ::testing::HasSubstr("node 2 has other words"));
}

TEST(HybridNode, AWishToStopIsHeardWhileOthersAreAwaited) {
  HybridCluster cluster(2, Combine::kSum);
  cluster.join(0);
  const std::atomic<bool> stop = true;
  const Result<bool> came = cluster.nodes[0]->await_start(&stop);
  ASSERT_TRUE(came.ok());
  EXPECT_FALSE(*came);
  const auto begun = std::chrono::steady_clock::now();
  cluster.nodes.clear();  // does not wait for the other
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(30));
}

TEST(HybridNode, EndsWithAnErrorWhenANodeNeverComes) {
  HybridCluster cluster(2, Combine::kSum);
  cluster.member_options[0].start_within_s = 0.2;
  cluster.join(0);
  EXPECT_THAT(cluster.nodes[0]->await_start().status().message(), ::testing::HasSubstr("node 2 did not come"));
}

}  // namespace
}  // namespace streamvec
