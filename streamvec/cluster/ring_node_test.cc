#include "streamvec/cluster/ring_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "streamvec/transport/inproc.h"

namespace streamvec {
namespace {

constexpr int64_t kRows = 40, kDim = 8;

// Nodes as threads, whose "training" adds whole numbers under a lock: node i to column i.
class Ring {
 public:
  Ring(size_t nodes, Combine combine, double dead_after_s = 10) : mutexes(nodes), tables(nodes) {
    for (size_t i = 0; i < nodes; ++i) options.nodes.push_back(static_cast<NodeId>(i + 1));
    options.words_min = 50;
    options.words_max = 1'000;
    options.dead_after_s = dead_after_s;
    for (size_t i = 0; i < nodes; ++i) {
      tables[i] = std::move(Matrix::make(kRows, kDim)).value();
      DenseTable table;
      table.live = &tables[i];
      table.combine = combine;
      options.tables = {table};
      options.with_tables = [this, i](const std::function<void()>& use) {
        const std::lock_guard lock(mutexes[i]);
        use();
      };
      all_options.push_back(options);
    }
  }

  void join(size_t i) {
    auto transport = network.join(static_cast<NodeId>(i + 1));
    for (const NodeId node : options.nodes)
      if (node != i + 1) transport->add_peer(node, "");
    members[i] = std::move(RingNode::start(all_options[i], std::move(transport))).value();
  }
  void join_all() {
    for (size_t i = 0; i < tables.size(); ++i) join(i);
  }

  Status train(size_t i, int steps) {
    for (int step = 0; step < steps; ++step) {
      {
        const std::lock_guard lock(mutexes[i]);
        tables[i].row(step % kRows)[i] += 1;
      }
      STREAMVEC_RETURN_IF_ERROR(members[i]->trained(10));
    }
    return {};
  }

  // All train so many steps and finish; returns their statuses.
  std::vector<Status> run(const std::vector<int>& steps) {
    std::vector<Status> statuses(tables.size());
    totals.assign(tables.size(), 0);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < tables.size(); ++i)
      threads.emplace_back([&, i] {
        statuses[i] = members[i]->await_start().status();
        if (statuses[i].ok()) statuses[i] = train(i, steps[i]);
        TrainedTotals own;
        own.tokens = steps[i];
        const Result<TrainedTotals> all = members[i]->finish(own);
        statuses[i] = all.status();
        if (all.ok()) totals[i] = all->tokens;
      });
    for (std::thread& thread : threads) thread.join();
    return statuses;
  }

  double sum(size_t node, size_t column) const {
    double sum = 0;
    for (int64_t row = 0; row < kRows; ++row) sum += tables[node].row(row)[column];
    return sum;
  }

  InprocNetwork network;
  RingOptions options;
  std::vector<RingOptions> all_options;
  std::vector<std::mutex> mutexes;
  std::vector<Matrix> tables;
  std::map<size_t, std::unique_ptr<RingNode>> members;
  std::vector<int64_t> totals;
};

TEST(RingNode, LeavesEveryNodeWithTheSumOfWhatAllHaveTrained) {
  for (const size_t nodes : {1u, 2u, 3u}) {
    Ring ring(nodes, Combine::kSum);
    ring.join_all();
    const std::vector<int> steps = {300, 2'000, 100};
    for (const Status& status : ring.run(steps)) ASSERT_TRUE(status.ok()) << status.message();
    for (size_t node = 0; node < nodes; ++node)
      for (size_t column = 0; column < nodes; ++column) EXPECT_EQ(ring.sum(node, column), steps[column]);
    EXPECT_GT(ring.members[0]->stats().pushes, 1);
  }
}

TEST(RingNode, LeavesEveryNodeWithTheMean) {
  Ring ring(4, Combine::kMean);
  ring.join_all();
  for (const Status& status : ring.run({400, 400, 400, 400})) ASSERT_TRUE(status.ok()) << status.message();
  for (size_t node = 0; node < 4; ++node)
    for (size_t column = 0; column < 4; ++column) EXPECT_NEAR(ring.sum(node, column), 100, 1e-2);
}

TEST(RingNode, TheLeaderKnowsWhatAllHaveTrained) {
  Ring ring(3, Combine::kMean);
  ring.join_all();
  ring.run({10, 20, 30});
  EXPECT_EQ(ring.totals, (std::vector<int64_t>{60, 20, 30}));
}

TEST(RingNode, FramesThatGetLostAreSentAgain) {
  Ring ring(2, Combine::kSum);
  ring.network.drop_next(1, 2, 5);
  ring.network.drop_next(2, 1, 3);
  ring.join_all();
  for (const Status& status : ring.run({200, 300})) ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(ring.sum(0, 1), 300);
  EXPECT_EQ(ring.sum(1, 0), 200);
}

TEST(RingNode, EverybodyEndsWithAnErrorWhenANodeDies) {
  Ring ring(3, Combine::kSum, 1);
  ring.join_all();
  for (auto& [rank, member] : ring.members) ASSERT_TRUE(member->await_start().ok());
  ring.members[1].reset();
  std::vector<Status> statuses(3);
  std::vector<std::thread> threads;
  for (const size_t i : {0u, 2u})
    threads.emplace_back([&, i] {
      while (statuses[i].ok()) statuses[i] = ring.train(i, 100);
      EXPECT_FALSE(ring.members[i]->finish({}).ok());
    });
  for (std::thread& thread : threads) thread.join();
  for (const size_t i : {0u, 2u}) EXPECT_THAT(statuses[i].message(), ::testing::HasSubstr("the ring broke"));
}

TEST(RingNode, ANodeWithOtherTextIsNamedByAll) {
  Ring ring(3, Combine::kSum);
  ring.all_options[2].fingerprint = 7;
  ring.all_options[2].fingerprint_of = "other words";
  ring.join_all();
  for (auto& [rank, member] : ring.members)
    EXPECT_THAT(member->await_start().status().message(), ::testing::HasSubstr("node 3 has other words"));
}

TEST(RingNode, AWishToStopIsHeardWhileOthersAreAwaited) {
  Ring ring(2, Combine::kSum);
  ring.join(0);
  const std::atomic<bool> stop = true;
  const Result<bool> came = ring.members[0]->await_start(&stop);
  ASSERT_TRUE(came.ok());
  EXPECT_FALSE(*came);
  const auto begun = std::chrono::steady_clock::now();
  ring.members.clear();  // does not wait for the other
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(30));
}

TEST(RingNode, EndsWithAnErrorWhenANodeNeverComes) {
  Ring ring(2, Combine::kSum);
  ring.all_options[0].start_within_s = 0.2;
  ring.join(0);
  EXPECT_EQ(ring.members[0]->await_start().status().code(), Code::kDeadlineExceeded);
}

}  // namespace
}  // namespace streamvec
