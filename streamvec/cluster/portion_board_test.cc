#include "streamvec/cluster/portion_board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/core/testing_seeds.h"

namespace streamvec {
namespace {

TEST(PortionBoard, HandsOutEachPortionOnceWhileSomeAreLeft) {
  PortionBoard board(4);
  std::set<int64_t> handed;
  for (const NodeId node : {1u, 2u, 1u, 2u}) handed.insert(*board.next(node));
  EXPECT_EQ(handed.size(), 4u);
  EXPECT_EQ(board.copies(), 0);
  EXPECT_EQ(board.in_work(1), 2);
}

TEST(PortionBoard, HandsTheOldestOutAgainNearTheEndAndTheFirstToFinishCounts) {
  PortionBoard board(2);
  const int64_t slow = *board.next(1), quick = *board.next(2);
  EXPECT_TRUE(board.finish(2, quick));
  ASSERT_EQ(board.next(2), slow);
  EXPECT_EQ(board.copies(), 1);
  EXPECT_EQ(board.next(3), std::nullopt);  // two nodes have it
  EXPECT_EQ(board.next(1), std::nullopt);  // it works on that already
  EXPECT_TRUE(board.finish(2, slow));
  EXPECT_TRUE(board.over());
  EXPECT_FALSE(board.finish(1, slow));
  EXPECT_EQ(board.in_work(1), 0);
}

TEST(PortionBoard, WhatOnlyALostNodeWorkedOnIsHandedOutAgain) {
  PortionBoard board(3);
  const int64_t lost = *board.next(1), shared = *board.next(2), last = *board.next(2);
  ASSERT_EQ(board.next(3), lost);
  board.leave(3);
  ASSERT_EQ(board.next(3), lost);  // a copy again: the first node still works on it
  board.leave(1);
  board.leave(3);
  EXPECT_EQ(board.next(2), lost);
  for (const int64_t portion : {lost, shared, last}) EXPECT_TRUE(board.finish(2, portion));
  EXPECT_TRUE(board.over());
}

// Nodes that work at speeds of their own and die at times, with what they work on.
class SimulatedPortions {
 public:
  struct Options {
    uint64_t seed = 1;
    // Planted faults, to see that they are found.
    bool forget_lost = false;   // a lost node's portions stay with it
    bool count_copies = false;  // a portion counts as often as somebody finishes it
  };
  explicit SimulatedPortions(const Options& options) : options_(options), random_(options.seed) {
    for (NodeId node = 1; node <= 12; ++node) speeds_[node] = 0.02 + 0.2 * random_.uniform();
  }

  // What is wrong, in the end; "" when nothing is.
  std::string run() {
    for (int step = 0; step < 10'000 && !board_.over(); ++step) this->step();
    if (!board_.over()) return "it never ends";
    for (auto& [node, portions] : in_work_)  // the slow ones come in time for nothing
      for (const int64_t portion : portions) finish(node, portion);
    for (int64_t portion = 0; portion < kPortions; ++portion)
      if (counted_[portion] != 1)
        return "portion " + std::to_string(portion) + " counts " + std::to_string(counted_[portion]) + " times";
    return "";
  }
  int64_t deaths() const { return deaths_; }
  int64_t copies() const { return board_.copies(); }

 private:
  static constexpr int64_t kPortions = 60;

  void step() {
    if (speeds_.size() > 1 && random_.uniform() < 0.2) {
      const auto lost = std::next(speeds_.begin(), random_.below(static_cast<uint32_t>(speeds_.size())));
      if (!options_.forget_lost) board_.leave(lost->first);
      in_work_.erase(lost->first);
      speeds_.erase(lost);
      ++deaths_;
    }
    for (const auto& [node, speed] : speeds_) {
      std::vector<int64_t>& portions = in_work_[node];
      if (board_.in_work(node) < 2)
        if (const auto portion = board_.next(node)) portions.push_back(*portion);
      if (portions.empty() || random_.uniform() > speed) continue;
      finish(node, portions.front());
      portions.erase(portions.begin());
    }
  }
  void finish(NodeId node, int64_t portion) {
    if (board_.finish(node, portion) || options_.count_copies) ++counted_[portion];
  }

  const Options options_;
  Random random_;
  PortionBoard board_{kPortions};
  std::map<NodeId, double> speeds_;
  std::map<NodeId, std::vector<int64_t>> in_work_;
  std::map<int64_t, int> counted_;
  int64_t deaths_ = 0;
};

TEST(SimulatedPortions, EachCountsOnceWhoeverDies) {
  int64_t deaths = 0, copies = 0;
  const int64_t seeds = seeds_or(100);
  for (int64_t seed = first_seed(); seed < first_seed() + seeds; ++seed) {
    SimulatedPortions portions({.seed = static_cast<uint64_t>(seed)});
    ASSERT_EQ(portions.run(), "") << "seed " << seed;
    deaths += portions.deaths();
    copies += portions.copies();
  }
  EXPECT_GT(deaths, seeds / 2);
  EXPECT_GT(copies, seeds / 2);
}

// What the test above is worth.
TEST(SimulatedPortions, FaultsThatArePlantedAreFound) {
  int lost = 0, twice = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    lost += SimulatedPortions({.seed = seed, .forget_lost = true}).run().empty() ? 0 : 1;
    twice += SimulatedPortions({.seed = seed, .count_copies = true}).run().empty() ? 0 : 1;
  }
  EXPECT_GE(lost, 5);  // of those whose portions were with two that died
  EXPECT_GE(twice, 5);
}

}  // namespace
}  // namespace streamvec
