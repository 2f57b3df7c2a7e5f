#include "streamvec/cluster/piece_board.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "streamvec/cluster/piece_queue.h"
#include "streamvec/core/random.h"
#include "streamvec/core/testing_seeds.h"

namespace streamvec {
namespace {

using Ranges = std::vector<PieceRange>;

TEST(PieceBoard, HandsOutEveryPieceOnceAndLessTowardsTheEnd) {
  PieceBoard board({10, 110});
  std::vector<int64_t> given;
  int64_t last = 100;
  while (!board.over()) {
    const Ranges ranges = board.take(1, 100, 2);
    ASSERT_EQ(ranges.size(), 1u);
    for (int64_t piece = ranges[0].begin; piece < ranges[0].end; ++piece) given.push_back(piece);
    EXPECT_LE(ranges[0].end - ranges[0].begin, last);
    last = ranges[0].end - ranges[0].begin;
    board.finish(1, ranges, {});
  }
  std::vector<int64_t> all(100);
  std::iota(all.begin(), all.end(), 10);
  EXPECT_EQ(given, all);
  EXPECT_LE(last, 2);
}

TEST(PieceBoard, WhatANodeHasNotFinishedGoesToTheOthersFirst) {
  PieceBoard board({0, 100});
  EXPECT_EQ(board.take(1, 4, 2), (Ranges{{0, 4}}));
  EXPECT_EQ(board.take(2, 4, 2), (Ranges{{4, 8}}));
  board.finish(2, Ranges{{5, 6}}, {});
  board.leave(2);
  EXPECT_EQ(board.take(1, 4, 1), (Ranges{{4, 5}, {6, 9}}));
}

TEST(PieceBoard, WhatANodeWasNotGivenDoesNotCount) {
  PieceBoard board({0, 2});
  board.take(1, 2, 1);
  board.finish(2, Ranges{{0, 2}}, {});
  board.finish(1, Ranges{{5, 1}}, {});
  EXPECT_FALSE(board.over());
  board.finish(1, Ranges{{0, 2}}, {});
  EXPECT_TRUE(board.over());
}

TEST(PieceBoard, KnowsUpToWhereAllIsFinishedAndHowMuchWasTrained) {
  PieceBoard board({0, 100}, {1000, 10, 0, 0});
  board.take(1, 4, 1);
  board.take(2, 4, 1);
  board.finish(1, Ranges{{0, 2}, {3, 4}}, {30, 3, 0, 0});
  EXPECT_EQ(board.standing().finished_before, 2);
  board.finish(1, Ranges{{2, 3}}, {40, 4, 0, 0});
  board.finish(2, Ranges{{4, 6}}, {20, 2, 0, 0});
  board.leave(2);
  EXPECT_EQ(board.standing().finished_before, 6);
  EXPECT_EQ(board.standing().tokens, 1060);
  EXPECT_EQ(board.standing().pairs, 16);
}

TEST(PieceBoard, IsMadeAgainOfWhatThoseKnowThatAreLeft) {
  PieceBoard lost({0, 100}, {1000, 10, 0, 0});
  lost.take(1, 4, 1);  // 0 to 3
  lost.take(2, 4, 1);  // 4 to 7
  lost.take(3, 4, 1);  // 8 to 11
  lost.finish(1, Ranges{{0, 1}, {2, 3}}, {20, 2, 0, 0});
  const TextStanding told = lost.standing();
  lost.finish(1, Ranges{{1, 2}}, {30, 3, 0, 0});  // which nobody hears of before it dies
  KnownText second{{{5, 8}}, told}, third{{{9, 12}}, {}};
  second.standing.finished.push_back({4, 5});
  second.standing.trained[2] = {7, 1, 0, 0};
  second.standing.tokens += 7;
  third.standing.finished.push_back({8, 9});
  PieceBoard board = PieceBoard::resumed({0, 100}, {}, {}, {{2, second}, {3, third}});
  EXPECT_EQ(board.standing().finished_before, 1);
  EXPECT_EQ(board.standing().finished, (Ranges{{2, 3}, {4, 5}, {8, 9}}));
  EXPECT_EQ(board.standing().tokens, 1027);
  EXPECT_EQ(board.take(2, 4, 1), (Ranges{{1, 2}, {3, 4}, {12, 14}}));
  board.finish(3, Ranges{{9, 12}}, {});
  EXPECT_EQ(board.standing().finished.back(), (PieceRange{8, 12}));
}

TEST(PieceBoard, IsMadeOfNothingWhenNothingWasHandedOut) {
  PieceBoard board = PieceBoard::resumed({10, 100}, {5, 1, 0, 0}, {}, {{2, {}}, {3, {}}});
  EXPECT_EQ(board.standing().tokens, 5);
  EXPECT_EQ(board.take(2, 4, 1), (Ranges{{10, 14}}));
}

TEST(PieceBoard, WhatARunBeforeHasFinishedNobodyIsGiven) {
  PieceBoard board({10, 20}, {1000, 10, 0, 0}, {{10, 12}, {13, 14}, {18, 25}});
  EXPECT_EQ(board.standing().finished_before, 12);
  EXPECT_EQ(board.standing().finished, (Ranges{{13, 14}, {18, 20}}));
  EXPECT_EQ(board.standing().tokens, 1000);
  EXPECT_EQ(board.take(1, 2, 1), (Ranges{{12, 13}, {14, 15}}));
  board.finish(1, Ranges{{14, 15}}, {10, 1, 0, 0});
  EXPECT_EQ(board.standing().finished_before, 12);
  EXPECT_EQ(board.standing().finished, (Ranges{{13, 15}, {18, 20}}));
  board.leave(1);
  EXPECT_EQ(board.take(2, 10, 1), (Ranges{{12, 13}, {15, 16}}));
  EXPECT_EQ(board.take(2, 10, 1), (Ranges{{16, 18}}));
  EXPECT_FALSE(board.over());
  board.finish(2, Ranges{{12, 18}}, {40, 4, 0, 0});
  EXPECT_TRUE(board.over());
  EXPECT_EQ(board.standing().finished_before, 20);
  EXPECT_EQ(board.standing().finished, Ranges());
  EXPECT_EQ(board.standing().tokens, 1050);
}

TEST(PieceBoard, SharesAreOfWhatIsLeft) {
  PieceBoard board({0, 1'000'000}, {}, {{40, 1'000'000}});
  EXPECT_EQ(board.take(1, 100, 2), (Ranges{{0, 10}}));
}

TEST(PieceBoard, ATextThatIsFinishedIsOverAtOnce) {
  EXPECT_TRUE(PieceBoard({10, 20}, {}, {{10, 14}, {14, 20}}).over());
}

TEST(PieceBoard, ASuccessorKnowsWhatARunBeforeHasFinished) {
  const Ranges finished{{3, 4}, {50, 90}};
  PieceBoard lost({0, 100}, {1000, 10, 0, 0}, finished);
  EXPECT_EQ(lost.take(1, 4, 1), (Ranges{{0, 3}, {4, 5}}));
  const TextStanding told = lost.standing();
  // By what was told, which is enough; what another may have read elsewhere is not in its tokens.
  PieceBoard board = PieceBoard::resumed({0, 100}, {}, {{4, 10}}, {{2, {{{4, 5}}, told}}});
  EXPECT_EQ(board.standing().finished, finished);
  EXPECT_EQ(board.standing().tokens, 1000);
  EXPECT_EQ(board.take(2, 5, 1), (Ranges{{0, 3}, {5, 7}}));
  // By itself, where nobody was told of the run.
  board = PieceBoard::resumed({0, 100}, {1000, 10, 0, 0}, finished, {{2, {}}});
  EXPECT_EQ(board.standing().finished, finished);
  EXPECT_EQ(board.take(2, 4, 1), (Ranges{{0, 3}, {4, 5}}));
}

// A leader's board and the queues of nodes that train at speeds of their own, die and come, over a network that delays
// each node's messages. The leader is one of them: when it dies, the board is made anew of what the others know. When
// all stop at once others go on from a checkpoint, which has what the leader knew. Every piece has 1 token.
class SimulatedText {
 public:
  struct Options {
    uint64_t seed = 1;
    double crash = 0.01, join = 0.01, restart = 0.002;  // in a step
    bool leader_dies = true;                            // at times
    // Planted faults, to see that they are found.
    bool forget_lost = false;   // a lost node's pieces stay with it
    bool report_taken = false;  // pieces are reported when they are taken
    bool give_twice = false;    // a piece is given once more
    bool forget_held = false;   // the next leader is not told what nodes have at hand
    bool forget_done = false;   // nor what they have finished and not heard of since
    bool skip_nothing = false;  // a checkpoint has no pieces after the first that is not finished
  };
  explicit SimulatedText(const Options& options) : options_(options), random_(options.seed) {
    for (int i = 0; i < 3; ++i) join();
  }

  // What is wrong, in the end; "" when nothing is.
  std::string run() {
    for (int step = 0; step < 100'000 && !board_.over(); ++step) this->step();
    if (!board_.over()) return "it never ends";
    for (int64_t piece = 0; piece < kPieces; ++piece) {
      const auto found = trained_.find(piece);
      if (found == trained_.end()) return "piece " + std::to_string(piece) + " was not trained on";
      if (found->second > 1 + lost_with_[piece]) return "piece " + std::to_string(piece) + " was trained on twice";
    }
    if (board_.standing().tokens != kPieces) return "the tokens of all are " + std::to_string(board_.standing().tokens);
    return "";
  }
  int64_t crashes() const { return crashes_; }
  int64_t successions() const { return successions_; }
  int64_t skipped() const { return skipped_; }

 private:
  static constexpr int64_t kPieces = 2'000;
  struct Node {
    PieceQueue queue{1};
    TrainedTotals own;
    double speed = 1;
    std::vector<int64_t> untold;  // finished, and not on their way
    std::vector<std::pair<double, PieceQueue::Report>> to_leader;
    std::vector<std::pair<double, std::pair<Ranges, TextStanding>>> to_node;
  };

  void join() {
    auto node = std::make_unique<Node>();
    node->speed = 0.1 + random_.uniform();
    nodes_.emplace(next_id_++, std::move(node));
  }

  void crash() {
    auto victim = nodes_.begin();
    std::advance(victim, random_.below(static_cast<uint32_t>(nodes_.size())));
    if (victim->first == leader_ && !options_.leader_dies) return;
    for (const int64_t piece : victim->second->untold) ++lost_with_[piece];
    for (const auto& [when, report] : victim->second->to_leader)
      for (const PieceRange& range : report.finished)
        for (int64_t piece = range.begin; piece < range.end; ++piece) ++lost_with_[piece];
    const NodeId lost = victim->first;
    nodes_.erase(victim);
    ++crashes_;
    if (lost == leader_)
      succeed();
    else if (!options_.forget_lost)
      board_.leave(lost);
  }

  // What nobody that is left knows to be finished may be trained on again, unless one of these has done it.
  void succeed() {
    leader_ = nodes_.begin()->first;
    ++successions_;
    std::map<NodeId, KnownText> known;
    for (auto& [id, node] : nodes_) {
      node->to_leader.clear();
      node->to_node.clear();
      known[id] = node->queue.known(id);
      if (options_.forget_held) known[id].held.clear();
      if (options_.forget_done) known[id].standing.finished.clear();
    }
    wanted_.clear();
    board_ = PieceBoard::resumed(text_, before_, finished_, known);
    const TextStanding standing = board_.standing();
    for (const auto& [piece, node] : trained_by_)
      if (!is_finished(standing, piece) && nodes_.count(node) == 0) ++lost_with_[piece];
  }

  static bool is_finished(const TextStanding& standing, int64_t piece) {
    return piece < standing.finished_before || has(standing.finished, piece);
  }

  // The checkpoint's place may lie before what is finished: not every piece can be found again.
  void restart() {
    if (nodes_.count(leader_) == 0) return;
    const TextStanding standing = nodes_.at(leader_)->queue.standing();
    if (standing.tokens < before_.tokens) return;  // it was told nothing yet
    text_.begin = std::max(text_.begin, standing.finished_before - static_cast<int64_t>(random_.below(4)));
    before_ = {standing.tokens, 0, 0, 0};
    finished_ = {{text_.begin, standing.finished_before}};
    finished_.insert(finished_.end(), standing.finished.begin(), standing.finished.end());
    skipped_ += piece_count(standing.finished);
    if (options_.skip_nothing) finished_.resize(1);
    for (const auto& [piece, times] : trained_)
      if (!is_finished(standing, piece)) lost_with_[piece] = times;
    trained_by_.clear();
    nodes_.clear();
    wanted_.clear();
    leader_ = next_id_;
    for (int i = 0; i < 3; ++i) join();
    board_ = PieceBoard(text_, before_, finished_);
  }

  void step() {
    now_ += 0.05;
    for (auto& [id, node] : nodes_) {
      deliver(id, *node);
      if (random_.uniform() < node->speed) train(id, *node);
      if (const auto report = node->queue.report(now_)) {
        node->untold.clear();
        node->to_leader.emplace_back(now_ + random_.uniform(), *report);
      }
    }
    if (nodes_.size() > 1 && random_.uniform() < options_.crash) crash();
    if (nodes_.size() < 8 && random_.uniform() < options_.join) join();
    if (random_.uniform() < options_.restart) restart();
  }

  void deliver(NodeId id, Node& node) {
    // In order: what was sent first comes first.
    while (!node.to_leader.empty() && node.to_leader.front().first <= now_) {
      const PieceQueue::Report report = node.to_leader.front().second;
      node.to_leader.erase(node.to_leader.begin());
      board_.finish(id, report.finished, report.trained);
      if (report.wanted > 0) wanted_[id] = report.wanted;
    }
    if (wanted_.count(id) > 0) {
      const Ranges given = board_.take(id, wanted_[id], static_cast<int64_t>(nodes_.size()));
      if (given.empty()) return;
      if (options_.report_taken) board_.finish(id, given, node.own);
      wanted_.erase(id);
      node.to_node.emplace_back(now_ + random_.uniform(), std::pair(given, board_.standing()));
    }
    while (!node.to_node.empty() && node.to_node.front().first <= now_) {
      const auto [pieces, standing] = node.to_node.front().second;
      node.queue.give(pieces, standing, static_cast<int64_t>(nodes_.size()));
      if (options_.give_twice && !pieces.empty())
        node.queue.give(Ranges{{pieces[0].begin, pieces[0].begin + 1}}, standing, 1);
      node.to_node.erase(node.to_node.begin());
    }
  }

  void train(NodeId id, Node& node) {
    int64_t piece = 0;
    if (node.queue.take(piece) != PieceQueue::Next::kPiece) return;
    ++trained_[piece];
    trained_by_[piece] = id;
    node.own.tokens += 1;
    node.untold.push_back(piece);
    node.queue.finish(piece, node.own);
  }

  const Options options_;
  Random random_;
  double now_ = 0;
  NodeId next_id_ = 1;
  PieceRange text_{0, kPieces};
  TrainedTotals before_;
  Ranges finished_;  // by the runs before
  PieceBoard board_{text_};
  std::map<NodeId, std::unique_ptr<Node>> nodes_;
  std::map<NodeId, int64_t> wanted_;
  std::map<int64_t, int> trained_, lost_with_;
  std::map<int64_t, NodeId> trained_by_;  // last
  NodeId leader_ = 1;
  int64_t crashes_ = 0, successions_ = 0, skipped_ = 0;
};

TEST(HandedOutText, EveryPieceIsTrainedOnceAndAgainOnlyWhereANodeDiedWithIt) {
  int64_t crashes = 0, successions = 0, skipped = 0;
  const int64_t seeds = seeds_or(30);
  for (int64_t seed = first_seed(); seed < first_seed() + seeds; ++seed) {
    SimulatedText text({.seed = static_cast<uint64_t>(seed)});
    ASSERT_EQ(text.run(), "") << "seed " << seed;
    crashes += text.crashes();
    successions += text.successions();
    skipped += text.skipped();
  }
  EXPECT_GT(crashes, 2 * seeds);
  EXPECT_GT(successions, seeds * 2 / 3);
  EXPECT_GT(skipped, seeds * 20 / 3);
}

// What the test above is worth.
TEST(HandedOutText, FaultsThatArePlantedAreFound) {
  const auto found = [](auto plant) {
    int64_t seeds = 0;
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      SimulatedText::Options faulty{.seed = seed};
      plant(faulty);
      seeds += SimulatedText(faulty).run().empty() ? 0 : 1;
    }
    return seeds;
  };
  // The next leader, or run, would find them again.
  const auto leads_on = [](auto& faulty) { faulty.leader_dies = false, faulty.restart = 0, faulty.forget_lost = true; };
  EXPECT_GE(found(leads_on), 3);
  EXPECT_GE(found([](auto& faulty) { faulty.report_taken = true; }), 3);
  EXPECT_GE(found([](auto& faulty) { faulty.give_twice = true; }), 3);
  EXPECT_GE(found([](auto& faulty) { faulty.forget_held = true; }), 3);
  EXPECT_GE(found([](auto& faulty) { faulty.forget_done = true; }), 3);
  EXPECT_GE(found([](auto& faulty) { faulty.skip_nothing = true; }), 3);
}

}  // namespace
}  // namespace streamvec
