// Text that is handed out to nodes in pieces.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <set>
#include <thread>

#include "streamvec/cluster/node_testing.h"
#include "streamvec/core/deadline.h"
#include "streamvec/core/testing_wait.h"

namespace streamvec {
namespace {

using namespace streamvec::testing;  // NOLINT: the nodes of this folder's tests

TEST(ClusterNode, ADeadNodesPiecesAreTrainedByTheRestAndANewcomerGetsItsPart) {
  constexpr int64_t kPieces = 1'000;
  Cluster cluster(3, exact(Admission::kAsync), 0, 3, {0, kPieces});
  const std::chrono::milliseconds a_piece(4);
  const Deadline patience = Deadline::after(std::chrono::minutes(1));
  std::array<std::atomic<int64_t>, 4> counts{};  // of pieces, by node
  const auto few = [&](NodeId id) { return counts[id - 1] <= 20; };
  // The text does not end before all that live have had a part of it, however late one of them comes.
  const auto train = [&](NodeId id) {
    return [&, id] {
      ++counts[id - 1];
      std::this_thread::sleep_for(a_piece);
      while (counts[id - 1] > 250 && (few(1) || few(2) || few(4)) && !patience.passed())
        std::this_thread::sleep_for(a_piece);
    };
  };
  std::deque<Reader> readers;
  for (NodeId id = 1; id <= 3; ++id) readers.emplace_back(cluster.members[id - 1], id, train(id));
  EXPECT_TRUE(eventually("pieces of the one that dies", [&] { return !few(3); }));
  readers[2].stop();
  cluster.kill(3);
  cluster.join(4);
  readers.emplace_back(cluster.members[3], 4, train(4));
  for (Reader& reader : readers) reader.join();
  std::set<int64_t> all;
  for (const size_t alive : {0, 1, 3}) {
    EXPECT_TRUE(readers[alive].status.ok()) << readers[alive].status.message();
    EXPECT_GT(readers[alive].taken.size(), 20u) << "node " << alive + 1;
    all.insert(readers[alive].taken.begin(), readers[alive].taken.end());
  }
  // What the dead one had told of before it died nobody trains on again.
  int64_t only_by_the_dead = 0;
  for (const int64_t piece : readers[2].taken) only_by_the_dead += all.count(piece) == 0 ? 1 : 0;
  EXPECT_EQ(static_cast<int64_t>(all.size()) + only_by_the_dead, kPieces);
  EXPECT_EQ(readers[0].tokens, 10 * kPieces);
}

TEST(ClusterNode, AFastNodeTrainsOnMoreOfTheText) {
  Cluster cluster(2, exact(Admission::kAsync), 0, 10, {0, 300});
  std::atomic<int64_t> of_the_slow = 0, of_the_fast = 0;
  std::deque<Reader> readers;
  readers.emplace_back(cluster.members[0], 1, [&] {
    ++of_the_slow;
    // Counted, for either may stand still for a while; not for ever, for the other may have no pieces left.
    for (int ms = 0; ms < 100 && of_the_fast < 4 * of_the_slow; ++ms)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  readers.emplace_back(cluster.members[1], 2, [&] {
    ++of_the_fast;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  for (Reader& reader : readers) reader.join();
  EXPECT_GT(readers[1].taken.size(), readers[0].taken.size() + 50);
  EXPECT_EQ(readers[0].taken.size() + readers[1].taken.size(), 300u);
}

// A node that stops early stays, as an owner of rows; the others train on its part.
TEST(ClusterNode, WhatANodeThatStopsHasNotFinishedIsTrainedByTheRest) {
  Cluster cluster(2, exact(Admission::kBsp), 0, 10, {0, 200});
  std::deque<Reader> readers;
  readers.emplace_back(cluster.members[0], 1, std::chrono::milliseconds(1));
  Result<TrainedTotals> stopped = TrainedTotals{};
  std::thread stopping([&] {
    ASSERT_TRUE(cluster.members[1].node->await_start().ok());
    PieceQueue& pieces = *cluster.members[1].node->pieces();
    pieces.await(std::chrono::milliseconds(1'000));
    stopped = cluster.members[1].node->finish({});
  });
  readers[0].join();
  stopping.join();
  EXPECT_TRUE(stopped.ok());
  EXPECT_EQ(readers[0].taken.size(), 200u);
}

TEST(ClusterNode, WhenTheLeaderIsToStopTheTextIsOverForAll) {
  Cluster cluster(2, exact(Admission::kBsp), 0, 10, {0, 100'000});
  std::deque<Reader> readers;
  for (NodeId id = 1; id <= 2; ++id) readers.emplace_back(cluster.members[id - 1], id, std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  cluster.members[1].node->stop_text();  // it is not the other's to say
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const PieceQueue& pieces = *cluster.members[0].node->pieces();
  const int64_t before = pieces.standing().finished_before;
  EXPECT_TRUE(eventually("more of the text", [&] { return pieces.standing().finished_before > before; }));
  cluster.members[0].node->stop_text();
  for (Reader& reader : readers) reader.join();
  for (const Reader& reader : readers) EXPECT_TRUE(reader.status.ok()) << reader.status.message();
  EXPECT_EQ(readers[0].tokens, 10 * static_cast<int64_t>(readers[0].taken.size() + readers[1].taken.size()));
  const TextStanding standing = pieces.standing();
  EXPECT_GT(standing.finished_before, 0);
  EXPECT_LT(standing.finished_before, 100'000);
}

}  // namespace
}  // namespace streamvec
