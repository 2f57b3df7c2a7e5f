#include "streamvec/cluster/node.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <set>
#include <thread>

#include "streamvec/transport/inproc.h"

namespace streamvec {
namespace {

constexpr int64_t kRows = 40, kDim = 8;

// A node whose "training" adds whole numbers: node i to column i.
struct Member {
  Matrix tables[2];
  std::unique_ptr<std::mutex> mutex = std::make_unique<std::mutex>();  // of the tables while they are trained on
  RowMarks changed{2 * kRows};
  std::unique_ptr<ClusterNode> node;
  double added = 0;

  void add_one(int step, NodeId id) {
    const std::lock_guard lock(*mutex);
    tables[step % 2].row(step % kRows)[id - 1] += 1;
    changed.mark(2 * (step % kRows) + step % 2);
    added += 1;
  }
  void train(NodeId id, int steps) {
    for (int step = 0; step < steps; ++step) {
      add_one(step, id);
      if (!node->trained(10).ok()) return;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }
  double sum(NodeId column) const {
    double sum = 0;
    for (const Matrix& table : tables)
      for (int64_t i = 0; i < kRows; ++i) sum += table.row(i)[column - 1];
    return sum;
  }
};

// Keeps what the leader writes down.
class Notebook final : public Registry {
 public:
  void publish(uint32_t epoch, std::vector<Member> members) override {
    const std::lock_guard lock(mutex_);
    epochs.push_back(epoch);
    last = std::move(members);
  }
  Status status() const override {
    const std::lock_guard lock(mutex_);
    return broken;
  }
  void set_status(Status status) {
    const std::lock_guard lock(mutex_);
    broken = std::move(status);
  }
  size_t size() const {
    const std::lock_guard lock(mutex_);
    return last.size();
  }

  std::vector<uint32_t> epochs;
  std::vector<Member> last;
  Status broken;

 private:
  mutable std::mutex mutex_;
};

class Cluster {
 public:
  Cluster(int nodes, Scheme scheme, int servers = 0, double dead_after_s = 10, PieceRange text = {}) {
    for (int i = 0; i < nodes; ++i) options.workers.push_back(static_cast<NodeId>(i + 1));
    options.servers = options.workers;
    if (servers > 0) options.servers.clear();
    for (int i = 0; i < servers; ++i) options.servers.push_back(static_cast<NodeId>(nodes + i + 1));
    options.sync.scheme = scheme;
    options.sync.dim = kDim;
    options.sync.key_end = 2 * kRows;
    options.words_min = 50;
    options.words_max = 1'000;
    options.dead_after_s = dead_after_s;
    options.joinable = true;
    options.registry = &notebook;
    options.text = text;
    options.fingerprint = 7;
    options.fingerprint_of = "7 words";
    for (int i = 0; i < nodes + servers; ++i) options.addresses[static_cast<NodeId>(i + 1)] = "";
    for (int i = 0; i < nodes + servers; ++i) start(static_cast<NodeId>(i + 1), options);
  }

  // A node that comes while others train. Its rows are not what the others' were at first.
  void join(NodeId id, uint64_t fingerprint = 7) {
    ClusterOptions now = options;
    now.joins = true;
    now.fingerprint = fingerprint;
    now.fingerprint_of = std::to_string(fingerprint) + " words";
    if (now.servers == now.workers) now.servers.push_back(id);
    now.workers.push_back(id);
    now.addresses[id] = "";
    start(id, now, 1000);
  }

  void start(NodeId id, ClusterOptions of_node, float rows = 0) {
    Member& member = members.emplace_back();
    auto transport = network.join(id);
    for (const auto& [peer, address] : of_node.addresses)
      if (peer != id) transport->add_peer(peer, address);
    for (Matrix& table : member.tables) {
      table = std::move(Matrix::make(kRows, kDim)).value();
      for (int64_t i = 0; i < kRows; ++i) std::fill_n(table.row(i), kDim, rows);
    }
    of_node.sync.live_mutex = member.mutex.get();
    of_node.changed = &member.changed;
    member.node =
        std::move(ClusterNode::start(of_node, std::move(transport), {&member.tables[0], &member.tables[1]})).value();
  }

  // Every worker trains so many steps and finishes; returns their statuses.
  std::vector<Status> run(const std::vector<int>& steps) {
    std::vector<Status> statuses(members.size());
    totals.assign(members.size(), 0);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < members.size(); ++i)
      threads.emplace_back([&, i] {
        Member& member = members[i];
        statuses[i] = member.node->await_start().status();
        if (i < steps.size()) member.train(static_cast<NodeId>(i + 1), steps[i]);
        TrainedTotals own;
        own.tokens = i < steps.size() ? steps[i] : 0;
        const Result<TrainedTotals> all = member.node->finish(own);
        statuses[i] = all.status();
        if (all.ok()) totals[i] = all->tokens;
      });
    for (std::thread& thread : threads) thread.join();
    return statuses;
  }

  ClusterOptions options;
  InprocNetwork network;
  Notebook notebook;
  std::deque<Member> members;
  std::vector<int64_t> totals;
};

Scheme exact(Admission admission) {
  Scheme scheme;
  scheme.admission = admission;
  scheme.combine = Combine::kSum;
  scheme.codec = CodecKind::kFp32;
  return scheme;
}

class EveryScheme : public testing::TestWithParam<Admission> {};

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

INSTANTIATE_TEST_SUITE_P(Schemes, EveryScheme, testing::Values(Admission::kBsp, Admission::kSsp, Admission::kAsync));

TEST(ClusterNode, OwnersOfRowsNeedNotTrain) {
  Cluster cluster(2, exact(Admission::kBsp), 2);
  for (const Status& status : cluster.run({200, 200})) ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(cluster.members[0].sum(2), 200);
  EXPECT_EQ(cluster.members[1].sum(1), 200);
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

TEST(ClusterNode, EndsWithAnErrorWhenTheLeaderIsLost) {
  Cluster cluster(2, exact(Admission::kBsp), 0, 2);
  for (Member& member : cluster.members) ASSERT_TRUE(member.node->await_start().ok());
  cluster.members[0].node.reset();
  const Result<TrainedTotals> left = cluster.members[1].node->finish({});
  ASSERT_FALSE(left.ok());
  EXPECT_EQ(left.status().code(), Code::kUnavailable);
  EXPECT_NE(left.status().message().find("node 1"), std::string::npos);
}

TEST(ClusterNode, ANodeThatIsCutOffEndsAndTheOthersGoOn) {
  Cluster cluster(3, exact(Admission::kAsync), 0, 2);
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

class JoinedScheme : public testing::TestWithParam<Scheme> {};

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
                         testing::Values(exact(Admission::kBsp), exact(Admission::kBackup), exact(Admission::kSsp),
                                         exact(Admission::kSoftsync), exact(Admission::kAsync), adaptive()));

TEST(ClusterNode, OneJoinsWhileAnotherDies) {
  Cluster cluster(3, exact(Admission::kBsp), 0, 2);
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

TEST(ClusterNode, ALeaderThatAnotherHasTakenThePlaceOfEnds) {
  Cluster cluster(2, exact(Admission::kAsync));
  for (Member& member : cluster.members) ASSERT_TRUE(member.node->await_start().ok());
  cluster.notebook.set_status(error(Code::kAborted, "another node leads"));
  EXPECT_EQ(cluster.members[0].node->finish({}).status().code(), Code::kAborted);
}

// Takes pieces of the text until there are none, a step each.
class Reader {
 public:
  Reader(Member& member, NodeId id, std::chrono::milliseconds a_piece) {
    thread_ = std::thread([this, &member, id, a_piece] {
      if (!member.node->await_start().ok()) return;
      PieceQueue& pieces = *member.node->pieces();
      for (int64_t piece = 0; !stop_;) {
        const PieceQueue::Next next = pieces.take(piece);
        if (next == PieceQueue::Next::kOver || next == PieceQueue::Next::kStopped) break;
        if (next == PieceQueue::Next::kNotYet) {
          pieces.await(std::chrono::milliseconds(5));
          continue;
        }
        member.add_one(static_cast<int>(piece), id);
        taken.insert(piece);
        own_.tokens += 10;
        std::this_thread::sleep_for(a_piece);
        pieces.finish(piece, own_);
        if (!member.node->trained(10).ok()) break;
      }
      if (stop_) return;
      const Result<TrainedTotals> all = member.node->finish(own_);
      status = all.status();
      if (all.ok()) tokens = all->tokens;
    });
  }
  ~Reader() { join(); }
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  void die(Member& member) {
    stop_ = true;
    join();
    member.node.reset();
  }

  std::set<int64_t> taken;
  Status status;
  int64_t tokens = 0;

 private:
  std::atomic<bool> stop_ = false;
  TrainedTotals own_;
  std::thread thread_;
};

TEST(ClusterNode, ADeadNodesPiecesAreTrainedByTheRestAndANewcomerGetsItsPart) {
  constexpr int64_t kPieces = 1'000;
  Cluster cluster(3, exact(Admission::kAsync), 0, 2, {0, kPieces});
  std::deque<Reader> readers;
  const std::chrono::milliseconds a_piece(4);
  for (NodeId id = 1; id <= 3; ++id) readers.emplace_back(cluster.members[id - 1], id, a_piece);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  readers[2].die(cluster.members[2]);
  cluster.join(4);
  readers.emplace_back(cluster.members[3], 4, a_piece);
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
  std::deque<Reader> readers;
  readers.emplace_back(cluster.members[0], 1, std::chrono::milliseconds(4));
  readers.emplace_back(cluster.members[1], 2, std::chrono::milliseconds(1));
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

TEST(ClusterNode, ANodeWithAnotherVocabularyIsToldWhy) {
  InprocNetwork network;
  std::vector<Member> members(2);
  for (NodeId id = 1; id <= 2; ++id) {
    ClusterOptions options;
    options.workers = options.servers = {1, 2};
    options.sync.scheme = exact(Admission::kBsp);
    options.sync.dim = kDim;
    options.sync.key_end = 2 * kRows;
    options.fingerprint = id;
    options.fingerprint_of = std::to_string(id) + " words";
    options.start_within_s = 0.5;
    auto transport = network.join(id);
    transport->add_peer(3 - id, "");
    Member& member = members[id - 1];
    for (Matrix& table : member.tables) table = std::move(Matrix::make(kRows, kDim)).value();
    member.node =
        std::move(ClusterNode::start(options, std::move(transport), {&member.tables[0], &member.tables[1]})).value();
  }
  const Status refused = members[1].node->await_start().status();
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
  EXPECT_NE(refused.message().find("2 words"), std::string::npos);
  EXPECT_FALSE(members[0].node->await_start().ok());
}

}  // namespace
}  // namespace streamvec
