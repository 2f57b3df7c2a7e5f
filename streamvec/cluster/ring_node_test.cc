#include "streamvec/cluster/ring_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <map>
#include <thread>

#include "streamvec/core/random.h"
#include "streamvec/core/testing_wait.h"
#include "streamvec/transport/inproc.h"

namespace streamvec {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kRingRows = 8, kRingCols = 8, kRingRowsMax = 200;
constexpr int kRingNodes = 3, kRingSteps = 20;

// A network that is gone for this node after so many frames.
class DyingTransport final : public Transport {
 public:
  DyingTransport(std::unique_ptr<Transport> inner, int64_t frames) : inner_(std::move(inner)), frames_(frames) {}
  NodeId self() const override { return inner_->self(); }
  void add_peer(NodeId node, const std::string& address) override { inner_->add_peer(node, address); }
  void remove_peer(NodeId node) override { inner_->remove_peer(node); }
  void send(NodeId to, std::string frame) override {
    if (frames_-- > 0) inner_->send(to, std::move(frame));
  }
  Status receive(Deadline deadline, NodeId& from, std::string& frame) override {
    const Status got = inner_->receive(deadline, from, frame);
    return got.ok() && frames_ <= 0 ? error(Code::kDeadlineExceeded, "cut off") : got;
  }
  int64_t queued_bytes(NodeId to) const override { return inner_->queued_bytes(to); }
  TransportTotals totals() const override { return inner_->totals(); }
  bool dead() const { return frames_ <= 0; }

 private:
  const std::unique_ptr<Transport> inner_;
  std::atomic<int64_t> frames_;
};

enum class RingWay { kPlain, kThin, kTurns, kThinTurns, kFourBitTurns, kGrowingTurns, kOneStep, kFewBitOneStep };

// What a node leaves of its batches where all nodes make one step of them.
struct RingSlopes {
  struct Table {
    Matrix values, slopes, mean, variance;
  };
  Table matrix = made(kRingRows, 40), bias = made(1, 5);
  Matrix steps = std::move(Matrix::make(1, 1)).value();
  SharedSlopes shared;
  ThreadTeam team{1};

  RingSlopes() {
    for (Table* table : {&matrix, &bias})
      shared.tables.push_back({&table->values, &table->slopes, &table->mean, &table->variance, table == &matrix});
    shared.products = std::move(make_packed_gemm("simd")).value();
    shared.steps = &steps;
    shared.rate = 0.1f;
  }
  static Table made(int64_t rows, int64_t cols) {
    const auto one = [&] { return std::move(Matrix::make(rows, cols)).value(); };
    return {one(), one(), one(), one()};
  }
  // Whether all of the batch before has been taken by then.
  bool leave(int node, int step) {
    bool taken = shared.pairs == 0;
    for (Table* table : {&matrix, &bias})
      for (int64_t row = 0; row < table->slopes.rows(); ++row)
        for (float& slope : table->slopes.view().row_span(row)) {
          taken = taken && slope == 0;
          slope +=
              std::sin(static_cast<float>((row + 1) * (node + 2) * (step + 1) + (&slope - table->slopes.row(row))));
        }
    shared.pairs += 100;
    return taken;
  }
  std::vector<float> all() const {
    std::vector<float> values(bias.values.row(0), bias.values.row(0) + bias.values.cols());
    for (int64_t row = 0; row < kRingRows; ++row)
      values.insert(values.end(), matrix.values.row(row), matrix.values.row(row) + matrix.values.cols());
    values.push_back(*steps.row(0));
    return values;
  }
};

// Rings whose members are told who takes part by the test. "Training" adds whole numbers: node i to column i, of two
// tables; or leaves slopes.
class Rings {
 public:
  // The last node's network is gone after so many frames. It may begin with the others, or join them, from elsewhere.
  Rings(RingWay way, int64_t frames, bool joins = false)
      : thin_(way == RingWay::kThin || way == RingWay::kThinTurns),
        takes_turns_(way >= RingWay::kTurns),
        in_four_bits_(way == RingWay::kFourBitTurns || way == RingWay::kFewBitOneStep),
        grows_(way == RingWay::kGrowingTurns),
        one_step_(way == RingWay::kOneStep || way == RingWay::kFewBitOneStep),
        joins_(joins) {
    for (int i = 0; i < kRingNodes; ++i) {
      const bool is_late = joins && i + 1 == kRingNodes;
      RingOptions options = one_step_ ? with_slopes(i, is_late) : with_tables(i, is_late);
      options.joins = is_late;
      if (takes_turns_)
        options.turns = turns_[i] =
            std::make_shared<Turns>(Turns::Options{.patience = 1, .wait_max_s = 0.1, .always = one_step_});
      options.with_tables = [this, i](const std::function<void()>& use) {
        const std::lock_guard lock(mutexes_[i]);
        use();
      };
      if (in_four_bits_) options.form = RingOptions::Form::kFewBits;
      options.words_min = takes_turns_ ? 0 : 50;
      options.words_max = 1'000;
      auto transport = std::make_unique<DyingTransport>(network_.join(static_cast<NodeId>(i + 1)),
                                                        i + 1 == kRingNodes ? frames : INT64_MAX);
      for (NodeId other = 1; other <= kRingNodes; ++other)
        if (other != transport->self()) transport->add_peer(other, "");
      if (i + 1 == kRingNodes) dying_ = transport.get();
      rings_[i] = std::move(RingNode::start(options, std::move(transport))).value();
    }
    tell({0, 1, 2}, joins ? std::vector<NodeId>{1, 2} : std::vector<NodeId>{1, 2, 3});
  }
  void lose(NodeId from, NodeId to, int64_t frames) { network_.drop_next(from, to, frames); }

  // All train and finish, the first ones not before the last has been let in; who is left is told so once that is dead.
  // What is wrong at the end; empty: nothing.
  std::string run(uint64_t seed) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kRingNodes; ++i) threads.emplace_back([this, i] { train(i); });
    const Deadline deadline = Deadline::after(std::chrono::seconds(100));
    Random random(seed);
    bool told = false;
    if (joins_) {
      std::this_thread::sleep_for(milliseconds(random.below(10)));
      tell(in_any_order({0, 1, 2}, random), {1, 2, 3});
      all_told_ = true;
    }
    while (!over(0) || !over(1) || (!dying_->dead() && !over(2))) {
      std::this_thread::sleep_for(milliseconds(1));
      if (deadline.passed()) break;
      if (!dying_->dead() || std::exchange(told, true)) continue;
      tell(in_any_order({0, 1}, random), {1, 2});
    }
    for (int i = 0; i < kRingNodes; ++i)
      if (deadline.passed() || (i + 1 == kRingNodes && told)) rings_[i]->fail(error(Code::kAborted, "left out"));
    for (std::thread& thread : threads) thread.join();
    return deadline.passed() ? "it hangs" : differences(told ? kRingNodes - 1 : kRingNodes);
  }

 private:
  // One after the other. Not those that take no part.
  void tell(const std::vector<int>& nodes, const std::vector<NodeId>& members) {
    ++epoch_;
    for (const int node : nodes) {
      if (!is_among(members, static_cast<NodeId>(node + 1))) continue;
      rings_[node]->take_view({epoch_, members, {}});
      if (epoch_ > 1) std::this_thread::sleep_for(milliseconds(node % 3));
    }
  }
  static std::vector<int> in_any_order(std::vector<int> nodes, Random& random) {
    for (size_t i = nodes.size(); i > 1; --i) std::swap(nodes[i - 1], nodes[random.below(static_cast<uint32_t>(i))]);
    return nodes;
  }

  RingOptions with_tables(int i, bool elsewhere) {
    RingOptions options;
    for (Matrix& table : tables_[i]) {
      table = std::move(Matrix::make(kRingRows, kRingCols, grows_ ? kRingRowsMax : 0)).value();
      if (elsewhere) table.row(0)[i] = 500;
      DenseTable dense;
      dense.live = &table;
      dense.combine = Combine::kSum;
      dense.grows = grows_;
      dense.rank = thin_ ? 1 : 0;
      options.tables.push_back(dense);
    }
    return options;
  }
  RingOptions with_slopes(int i, bool elsewhere) {
    if (elsewhere) *slopes_[i].steps.row(0) = slopes_[i].matrix.values.row(0)[i] = 500;
    RingOptions options;
    options.slopes = &slopes_[i].shared;
    options.team = &slopes_[i].team;
    return options;
  }

  bool over(int i) const {
    const Result<bool> over = rings_[i]->over();
    return over.ok() && *over;
  }

  void train(int i) {
    const Result<bool> started = rings_[i]->await_start();
    for (int step = 0; started.ok() && step < kRingSteps; ++step) {
      while (joins_ && step == kRingSteps / 2 && !all_told_) std::this_thread::sleep_for(milliseconds(1));
      if (takes_turns_) turns_[i]->begin_step();
      {
        const std::lock_guard lock(mutexes_[i]);
        one_step_ ? leave_slopes(i, step) : add_one(tables_[i][step % 2], i, step);
      }
      if (takes_turns_) turns_[i]->end_step();
      if (!rings_[i]->trained(10).ok()) return;
      if (step % 5 == 4) std::this_thread::sleep_for(milliseconds(1));
    }
    rings_[i]->finish();
  }

  void add_one(Matrix& table, int i, int step) {
    const int64_t row = step % kRingRows + (grows_ && step > kRingSteps / 2 ? (i + 1) * 60 : 0);
    if (row >= table.rows()) table.grow(row + 1);
    table.row(row)[i] += 1;
  }
  // One that is left out is told so while its last batch waits.
  void leave_slopes(int i, int step) {
    if (!slopes_[i].leave(i, step) && !(i + 1 == kRingNodes && dying_->dead())) untaken_ = true;
  }

  std::string differences(int living) const {
    if (one_step_) return differences_of_steps(living);
    const double slack = thin_ ? 0.05 : in_four_bits_ ? 1e-3 : 0;
    // Half a step of a value may be left out in the end, and when a ring is formed anew.
    const double left_out = in_four_bits_ ? 2 : slack;
    for (int column = 0; column < kRingNodes; ++column) {
      double sums[kRingNodes] = {};
      for (int i = 0; i < living; ++i)
        for (const Matrix& table : tables_[i])
          for (int64_t row = 0; row < table.rows_max(); ++row) sums[i] += table.row(row)[column];
      for (int i = 0; i < living; ++i) {
        if (std::abs(sums[i] - sums[0]) > slack) return "nodes differ in column " + std::to_string(column);
        // Of a dead node's thin matrices a part of a change may have gone round.
        if (column < living ? std::abs(sums[i] - kRingSteps) > left_out : !thin_ && sums[i] > kRingSteps + left_out)
          return "column " + std::to_string(column) + " has " + std::to_string(sums[i]);
      }
    }
    return {};
  }

  std::string differences_of_steps(int living) const {
    if (untaken_) return "a batch came while the one before had not been stepped";
    for (int i = 0; i < living; ++i) {
      if (slopes_[i].shared.pairs != 0) return "the last batch was not stepped";
      if (slopes_[i].all() != slopes_[0].all()) return "nodes differ";
    }
    const float steps = *slopes_[0].steps.row(0);
    // A node that joins late steps by itself in the end.
    return steps >= kRingSteps && steps <= kRingNodes * kRingSteps ? "" : std::to_string(steps) + " steps";
  }

  const bool thin_, takes_turns_, in_four_bits_, grows_, one_step_, joins_;
  InprocNetwork network_;
  std::mutex mutexes_[kRingNodes];
  Matrix tables_[kRingNodes][2];
  RingSlopes slopes_[kRingNodes];
  std::atomic<bool> untaken_ = false, all_told_ = false;
  uint32_t epoch_ = 0;
  std::shared_ptr<Turns> turns_[kRingNodes];
  DyingTransport* dying_ = nullptr;
  std::unique_ptr<RingNode> rings_[kRingNodes];
};

constexpr RingWay kRingWays[] = {RingWay::kPlain,     RingWay::kThin,         RingWay::kTurns,
                                 RingWay::kThinTurns, RingWay::kFourBitTurns, RingWay::kGrowingTurns,
                                 RingWay::kOneStep,   RingWay::kFewBitOneStep};

// A round takes some 8 frames of a node, acknowledgements among them, and 16 with thin matrices.
TEST(RingNode, WhoIsLeftGoesOnAfterWhicheverFrameANodeDies) {
  for (const RingWay way : kRingWays) {
    constexpr int64_t kFrames = 40, kAtOnce = 20;
    for (int64_t frames = 0; frames < kFrames; frames += kAtOnce) {
      std::vector<std::thread> threads;
      for (int64_t at = frames; at < frames + kAtOnce; ++at)
        threads.emplace_back([=] {
          EXPECT_EQ(Rings(way, at).run(static_cast<uint64_t>(at)), "")
              << "after " << at << " frames, way " << static_cast<int>(way);
        });
      for (std::thread& thread : threads) thread.join();
    }
  }
}

TEST(RingNode, OneThatJoinsEndsWithWhatAllHaveLearntAndMayDieAfterAnyFrame) {
  for (const RingWay way : kRingWays) {
    constexpr int64_t kSeeds = 20, kThatLive = 4;
    std::vector<std::thread> threads;
    for (int64_t seed = 0; seed < kSeeds; ++seed)
      threads.emplace_back([=] {
        const int64_t frames = seed < kThatLive ? INT64_MAX : 2 * (seed - kThatLive);
        EXPECT_EQ(Rings(way, frames, true).run(static_cast<uint64_t>(seed)), "")
            << "seed " << seed << ", way " << static_cast<int>(way);
      });
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(RingNode, OneThatJoinsAndFindsNobodyWhoCouldTellItWhatWasLearntEnds) {
  InprocNetwork network;
  Matrix table = std::move(Matrix::make(1, 1)).value();
  DenseTable dense;
  dense.live = &table;
  RingOptions options;
  options.tables = {dense};
  options.joins = true;
  const auto ring = std::move(RingNode::start(options, network.join(3))).value();
  ring->take_view({4, {3}, {}});
  EXPECT_THAT(ring->await_start().status().message(), ::testing::HasSubstr("nobody is left who could tell this node"));
}

TEST(RingNode, FramesThatGetLostAreSentAgain) {
  Rings rings(RingWay::kPlain, INT64_MAX);
  rings.lose(1, 2, 3);
  rings.lose(3, 1, 2);
  EXPECT_EQ(rings.run(1), "");
}

// Two nodes of one value each that add up in turns with their steps.
struct TwoInTurns {
  TwoInTurns(const Turns::Options& how, double idle_max_s, double unheard_after_s = 100) {
    for (int i = 0; i < 2; ++i) {
      tables[i] = std::move(Matrix::make(1, 2)).value();
      DenseTable dense;
      dense.live = &tables[i];
      dense.combine = Combine::kSum;
      RingOptions options;
      options.tables = {dense};
      options.turns = turns[i] = std::make_shared<Turns>(how);
      options.words_min = 0;
      options.idle_max_s = idle_max_s;
      options.unheard_after_s = unheard_after_s;
      options.with_tables = [this](const std::function<void()>& use) {
        const std::lock_guard lock(mutex);
        use();
      };
      options.dead_after_s = 100;  // rounds that come only because none has for long do not come
      auto transport = network.join(static_cast<NodeId>(i + 1));
      transport->add_peer(static_cast<NodeId>(2 - i), "");
      rings[i] = std::move(RingNode::start(options, std::move(transport))).value();
    }
    for (auto& ring : rings) ring->take_view({1, {1, 2}, {}});
    for (auto& ring : rings) EXPECT_TRUE(ring->await_start().ok());
  }
  void step(int i) {
    turns[i]->begin_step();
    tables[i].row(0)[i] += 1;
    turns[i]->end_step();
    EXPECT_TRUE(rings[i]->trained(10).ok());
  }
  bool over(int i) const {
    const Result<bool> over = rings[i]->over();
    return over.ok() && *over;
  }
  void expect_the_end() {
    EXPECT_TRUE(eventually("the end", [&] { return over(0) && over(1); }));
  }

  float value(int i, int of) {
    const std::lock_guard lock(mutex);
    return tables[i].row(0)[of];
  }

  InprocNetwork network;
  std::mutex mutex;  // of what rings change while nobody is at a step
  Matrix tables[2];
  std::shared_ptr<Turns> turns[2];
  std::unique_ptr<RingNode> rings[2];
};

// Its text is over, and the other waits for a text that does not come: nobody has anything to say.
TEST(RingNode, OneThatHasFinishedBeginsNoRoundsOfItsOwn) {
  TwoInTurns nodes({.patience = 1e9, .wait_max_s = 60}, 0.001);
  nodes.step(0);
  nodes.rings[0]->finish();
  EXPECT_TRUE(eventually("the step", [&] { return nodes.value(1, 0) == 1; }));
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_LE(nodes.rings[0]->clock(), 2);  // of its step, and that it was the last
  for (int step = 0; step < 3; ++step) nodes.step(1);
  nodes.rings[1]->finish();
  nodes.expect_the_end();
  EXPECT_EQ(nodes.tables[0].row(0)[1], 3);
  EXPECT_LE(nodes.rings[0]->clock(), 2 + 3 + 1);
}

TEST(RingNode, OneThatIsLongAtAStepIsHeardMeanwhile) {
  TwoInTurns nodes({.patience = 1e9, .wait_max_s = 60}, 2, 1.5);
  nodes.turns[1]->begin_step();
  nodes.step(0);
  std::this_thread::sleep_for(std::chrono::seconds(4));
  nodes.turns[1]->end_step();
  EXPECT_TRUE(eventually("the step", [&] { return nodes.value(1, 0) == 1; }));
  for (auto& ring : nodes.rings) ring->finish();
  nodes.expect_the_end();
}

// Node 2 is late with every step and node 1 comes back to each after a pause, so that rounds of no step would fit in.
TEST(RingNode, WhereEveryStepWaitsItKnowsOfTheLastOneOfEverybody) {
  constexpr int kSteps = 12;
  TwoInTurns nodes({.patience = 1e9, .wait_max_s = 60}, 2);
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {
      for (int step = 0; step < kSteps; ++step) {
        if (i == 0) std::this_thread::sleep_for(milliseconds(25));
        nodes.turns[i]->begin_step();
        const float* values = nodes.tables[i].row(0);
        EXPECT_GE(values[1 - i], static_cast<float>(step - 1)) << "node " << i;
        EXPECT_EQ(values[i], static_cast<float>(step));
        if (i == 1) std::this_thread::sleep_for(milliseconds(40));
        nodes.tables[i].row(0)[i] += 1;
        nodes.turns[i]->end_step();
        EXPECT_TRUE(nodes.rings[i]->trained(10).ok());
      }
      nodes.rings[i]->finish();
    });
  for (std::thread& thread : threads) thread.join();
  nodes.expect_the_end();
}

// The others, who wait as long, hear that those before them live.
TEST(RingNode, OneThatDoesNotHearTheNodeBeforeItLeavesAndNobodyElse) {
  InprocNetwork network;
  Matrix tables[kRingNodes];
  std::unique_ptr<RingNode> rings[kRingNodes];
  for (int i = 0; i < kRingNodes; ++i) {
    tables[i] = std::move(Matrix::make(kRingRows, kRingCols)).value();
    DenseTable dense;
    dense.live = &tables[i];
    RingOptions options;
    options.tables = {dense};
    options.dead_after_s = 1;
    options.unheard_after_s = 2;
    auto transport = network.join(static_cast<NodeId>(i + 1));
    for (NodeId other = 1; other <= kRingNodes; ++other)
      if (other != transport->self()) transport->add_peer(other, "");
    rings[i] = std::move(RingNode::start(options, std::move(transport))).value();
  }
  for (auto& ring : rings) ring->take_view({1, {1, 2, 3}, {}});
  for (auto& ring : rings) ASSERT_TRUE(ring->await_start().ok());
  network.cut(1, 3);
  EXPECT_TRUE(eventually("the first to leave", [&] { return !rings[0]->over().ok(); }));
  for (const int i : {1, 2}) rings[i]->take_view({2, {2, 3}, {}});
  EXPECT_THAT(rings[0]->over().status().message(), ::testing::HasSubstr("the ring broke: nothing came from node 3"));
  EXPECT_FALSE(rings[0]->trained(1).ok());
  for (const int i : {1, 2}) rings[i]->finish();
  for (const int i : {1, 2})
    EXPECT_TRUE(eventually("its end", [&] { return !rings[i]->over().ok() || *rings[i]->over(); }));
  for (const int i : {1, 2}) EXPECT_TRUE(rings[i]->over().ok() && *rings[i]->over()) << i;
}

}  // namespace
}  // namespace streamvec
