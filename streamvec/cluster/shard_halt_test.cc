// Checkpoints of tables that are shared out, for which all stand still: with every part in order, and with mistakes.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "streamvec/cluster/shard_testing.h"
#include "streamvec/cluster/vector_shard.h"
#include "streamvec/sync/view.h"
#include "streamvec/transport/reliable_transport.h"

namespace streamvec {
namespace {

using testing::first_values;
using testing::is_ready;
using testing::kShardDim;
using testing::kShardRows;
using testing::Shards;

// Has rows in place of a node, and may make a mistake with what is added to them.
class Owner {
 public:
  enum class Mistake {
    kNone,
    kTwice,      // a change is added twice
    kDropped,    // one in three is not added
    kOvertaken,  // questions are answered before what came before them is added
  };
  // `self` is the place among `shards`.
  Owner(Shards& shards, size_t self, Mistake mistake)
      : mistake_(mistake),
        transport_(shards.network.join(static_cast<NodeId>(self + 1))),
        shard_(kShardDim, nullptr, "a smaller --dim") {
    for (size_t other = 0; other < shards.nodes.size(); ++other)
      if (other != self) transport_.add_peer(static_cast<NodeId>(other + 1), "");
    std::vector<RowKey> own;
    for (RowKey row = 0; row < kShardRows; ++row)
      if (owner_of(row, shards.options.owners) == self + 1) own.push_back(row);
    EXPECT_TRUE(shard_
                    .take(own,
                          [](RowKey row, std::span<float> values) {
                            first_values(row, values);
                            return Status();
                          })
                    .ok());
    transport_.send(shards.options.workers.front(), encode(SandblasterMessage{.kind = SandblasterKind::kHello}));
    thread_ = std::thread([this] { run(); });
  }
  ~Owner() {
    transport_.close();
    thread_.join();
  }

 private:
  void run() {
    NodeId from = 0;
    std::string frame;
    Status got;
    while (got = transport_.receive(Deadline::after(std::chrono::seconds(1)), from, frame),
           got.code() != Code::kUnavailable) {
      const Result<SandblasterMessage> message = decode_sandblaster(frame);
      if (!got.ok() || !message.ok()) continue;
      if (message->kind == SandblasterKind::kGradient) take(from, *message);
      if (message->kind != SandblasterKind::kFetch) continue;
      SandblasterMessage answer{.kind = SandblasterKind::kRows, .number = message->number};
      EXPECT_TRUE(shard_.read(kPoint, message->rows, answer.values).ok());
      transport_.send(from, encode(answer));
    }
  }
  void take(NodeId from, SandblasterMessage change) {
    ++changes_;
    if (mistake_ == Mistake::kOvertaken) std::swap(change, waiting_[from]);
    if (mistake_ == Mistake::kDropped && changes_ % 3 == 0) return;
    for (int times = mistake_ == Mistake::kTwice ? 2 : 1; times > 0; --times)
      EXPECT_TRUE(shard_.add(kPoint, change.rows, change.values).ok());
  }

  const Mistake mistake_;
  ReliableTransport transport_;
  VectorShard shard_;
  int64_t changes_ = 0;
  std::map<NodeId, SandblasterMessage> waiting_;  // the last of each
  std::thread thread_;
};

// As a training thread: a piece adds 1 to one row after another, some at a time. Stands still when it is asked to, or
// only says so.
void add_pieces(ShardNode& node, bool stands_still = true) {
  TrainedTotals own;
  std::future<Status> saying;
  for (int64_t piece = 0;;) {
    if (node.halt_wanted() && stands_still) {
      ASSERT_TRUE(node.halt().ok());
    } else if (node.halt_wanted() && (!saying.valid() || is_ready(saying))) {
      saying = std::async(std::launch::async, [&] { return node.halt(); });
    }
    const PieceQueue::Next next = node.pieces()->take(piece);
    if (next == PieceQueue::Next::kOver || next == PieceQueue::Next::kStopped) return;
    if (next == PieceQueue::Next::kNotYet) {
      node.pieces()->await(std::chrono::milliseconds(5));
      continue;
    }
    for (RowKey row = 0; row < kShardRows; row += 100) {
      const std::vector<RowKey> rows = {row, row + 50, row + 99};
      node.add(rows, std::vector<float>(rows.size() * kShardDim, 1.0f));
    }
    ++own.tokens;
    node.pieces()->finish(piece, own);
    std::this_thread::sleep_for(std::chrono::microseconds(200));  // or owners have a lot to catch up with
  }
}

// Checkpoints in the middle of a run, and what may be done wrong.
struct Checkpoints {
  std::optional<Owner::Mistake> owner = {};  // of one in place of a node
  bool halt = true;                          // all stand still for it
  bool stand_still = true;                   // who says so does
};

// What rows have that the text does not say, or the other way round, in the first checkpoint in which they differ.
std::string difference_in(const Checkpoints& how) {
  Shards shards(3, 2);
  shards.options.text = PieceRange{0, 1'000'000'000};
  std::optional<Owner> owner;
  if (how.owner) owner.emplace(shards, 3, *how.owner);
  shards.start_all(owner ? std::optional<size_t>(3) : std::nullopt);
  ShardNode& leader = *shards.nodes[0];
  std::vector<std::future<void>> training;
  for (const size_t i : {1, 2})
    training.push_back(std::async(std::launch::async, [&, i] { add_pieces(*shards.nodes[i], how.stand_still); }));
  const std::vector<RowKey> first = {0};
  std::vector<float> of_first;
  std::string difference;
  int64_t before = 0;
  for (int save = 0; save < 5 && difference.empty(); ++save) {
    while (leader.pieces()->standing().tokens <= before) {  // a piece of its own now and then
      int64_t piece = 0;
      if (leader.pieces()->take(piece) == PieceQueue::Next::kPiece) leader.pieces()->finish(piece, {});
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(!how.halt || leader.halt_all().ok());
    const TextStanding standing = leader.pieces()->standing();
    const auto tokens = static_cast<float>(standing.tokens);
    of_first.assign(1, 0);
    while ((!how.halt || !how.stand_still) && of_first[0] <= tokens)  // until somebody has trained on
      EXPECT_TRUE(leader.await(leader.ask(first), of_first).ok());
    EXPECT_TRUE(leader
                    .read_all([&](RowKey row, std::span<const float> values) {
                      const bool added = row % 100 == 0 || row % 100 == 50 || row % 100 == 99;
                      const float wanted = static_cast<float>(row) + (added ? tokens : 0);
                      if (values[0] != wanted)
                        difference = "row " + std::to_string(row) + " has " + std::to_string(values[0] - wanted) +
                                     " more than the text of checkpoint " + std::to_string(save);
                    })
                    .ok());
    EXPECT_GT(standing.tokens, before) << "and they go on";
    before = standing.tokens;
    leader.go_on();
  }
  leader.stop_text();
  for (auto& each : training) each.get();
  for (size_t i = 0; i < 3; ++i) shards.finish_later(i);
  EXPECT_TRUE(shards.finished[0].get().ok());
  shards.nodes[0].reset();
  for (const size_t i : {1, 2}) EXPECT_TRUE(shards.finished[i].get().ok());
  shards.nodes.clear();  // before the owner, of which they take leave
  return difference;
}

TEST(ShardHalt, WhileAllStandStillTheRowsHaveWhatTheTextSaysAndNoMore) {
  EXPECT_EQ(difference_in({}), "");
  EXPECT_EQ(difference_in({.owner = Owner::Mistake::kNone}), "");
}

// What the test above is worth: with a mistake planted it fails.
TEST(ShardsWithAMistake, ChangesThatAreAddedTwiceAreFound) {
  EXPECT_NE(difference_in({.owner = Owner::Mistake::kTwice}), "");
}

TEST(ShardsWithAMistake, ChangesThatAreDroppedAreFound) {
  EXPECT_NE(difference_in({.owner = Owner::Mistake::kDropped}), "");
}

TEST(ShardsWithAMistake, QuestionsThatOvertakeChangesAreFound) {
  EXPECT_NE(difference_in({.owner = Owner::Mistake::kOvertaken}), "");
}

TEST(ShardsWithAMistake, CheckpointsForWhichNobodyStandsStillAreFound) {
  EXPECT_NE(difference_in({.halt = false}), "");
}

TEST(ShardsWithAMistake, WhoTrainsOnWhileItSaysThatItStandsStillIsFound) {
  EXPECT_NE(difference_in({.stand_still = false}), "");
}

TEST(ShardHalt, NobodyStandsStillWhileChangesAreOnTheirWay) {
  Shards shards(2, 1);
  shards.options.text = PieceRange{0, 1'000};
  shards.start_all();
  const std::vector<RowKey> rows = {7};
  shards.network.cut(2, 3);
  shards.nodes[1]->add(rows, std::vector<float>(kShardDim, 1.0f));
  auto waiting = std::async(std::launch::async, [&] { return shards.nodes[0]->halt_all(); });
  while (!shards.nodes[1]->halt_wanted()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  auto standing = std::async(std::launch::async, [&] { return shards.nodes[1]->halt(); });
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  shards.network.mend(2, 3);
  ASSERT_TRUE(waiting.get().ok());
  EXPECT_EQ(standing.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout) << "until all go on";
  std::vector<float> values;
  ASSERT_TRUE(shards.nodes[0]->await(shards.nodes[0]->ask(rows), values).ok());
  EXPECT_EQ(values[0], 8);
  shards.nodes[0]->go_on();
  EXPECT_TRUE(standing.get().ok());
}

}  // namespace
}  // namespace streamvec
