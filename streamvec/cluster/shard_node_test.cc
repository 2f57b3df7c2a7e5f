#include "streamvec/cluster/shard_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <map>
#include <thread>

#include "streamvec/cluster/shard_testing.h"
#include "streamvec/sync/view.h"

namespace streamvec {
namespace {

using ::testing::HasSubstr;
using testing::kShardDim;
using testing::kShardRows;
using testing::Shards;

// Trains on all that it is given, a word a piece; returns the pieces.
std::vector<int64_t> train_on_all(ShardNode& node) {
  std::vector<int64_t> trained;
  for (int64_t piece = 0;;) {
    node.pieces()->await(std::chrono::milliseconds(50));
    const PieceQueue::Next next = node.pieces()->take(piece);
    if (next == PieceQueue::Next::kOver || next == PieceQueue::Next::kStopped) return trained;
    if (next == PieceQueue::Next::kNotYet) continue;
    trained.push_back(piece);
    node.pieces()->finish(piece, {.tokens = std::ssize(trained)});
  }
}

TEST(ShardNode, EveryPieceOfTheTextThatIsNotFinishedGoesToOneWorker) {
  Shards shards(3, 2);
  shards.options.text = PieceRange{10, 400};
  shards.options.finished = {{20, 30}, {390, 400}};
  shards.options.trained_before = {.tokens = 1'000};
  shards.start_all();
  std::vector<std::future<std::vector<int64_t>>> training;
  for (size_t i = 0; i < 3; ++i)
    training.push_back(std::async(std::launch::async, [&, i] { return train_on_all(*shards.nodes[i]); }));
  std::map<int64_t, int> times;
  for (size_t i = 0; i < 3; ++i) {
    const std::vector<int64_t> pieces = training[i].get();
    for (const int64_t piece : pieces) ++times[piece];
    shards.finished[i] = std::async(
        std::launch::async, [&, i, words = std::ssize(pieces)] { return shards.nodes[i]->finish({.tokens = words}); });
  }
  for (int64_t piece = 0; piece < 410; ++piece)
    EXPECT_EQ(times[piece], piece < 10 || (piece >= 20 && piece < 30) || piece >= 390 ? 0 : 1) << piece;
  const Result<TrainedTotals> all = shards.finished[0].get();
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->tokens, 1'000 + 370);
  const TextStanding standing = shards.nodes[0]->pieces()->standing();
  EXPECT_EQ(standing.finished_before, 400);
  EXPECT_EQ(standing.tokens, 1'000 + 370);
  shards.nodes[0].reset();
}

TEST(ShardNode, OfATextThatIsStoppedItIsKnownWhatIsFinished) {
  Shards shards(2, 0);
  shards.options.text = PieceRange{0, 1'000};
  shards.start_all();
  int64_t first = -1, second = -1;  // the first stays in work
  while (shards.nodes[1]->pieces()->take(first) != PieceQueue::Next::kPiece)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_EQ(shards.nodes[1]->pieces()->take(second), PieceQueue::Next::kPiece);
  shards.nodes[1]->pieces()->finish(second, {.tokens = 7});
  shards.nodes[1]->stop_text();
  for (const auto& node : shards.nodes) (void)train_on_all(*node);  // until it is over for all
  shards.finished[1] = std::async(std::launch::async, [&] { return shards.nodes[1]->finish({.tokens = 7}); });
  const auto leading = shards.nodes[0]->finish({.tokens = 0});
  ASSERT_TRUE(leading.ok());
  EXPECT_TRUE(shards.nodes[0]->text_stopped());
  const TextStanding standing = shards.nodes[0]->pieces()->standing();
  EXPECT_LE(standing.finished_before, first);
  EXPECT_TRUE(has(standing.finished, second) || standing.finished_before > second);
  EXPECT_FALSE(has(standing.finished, first));
  shards.nodes[0].reset();
}

TEST(ShardNode, TheWishOfANodeThatOnlyOwnsRowsEndsTheTextForAll) {
  Shards shards(2, 1);
  shards.options.text = PieceRange{0, 1'000'000'000};
  shards.start_all();
  std::atomic<bool> stop = false;
  auto serving = std::async(std::launch::async, [&] { return shards.nodes[2]->serve(&stop); });
  std::vector<std::future<void>> training;
  for (size_t i = 0; i < 2; ++i)
    training.push_back(std::async(std::launch::async, [&, i] { (void)train_on_all(*shards.nodes[i]); }));
  for (const auto& each : training)
    EXPECT_EQ(each.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  stop = true;
  for (auto& each : training)
    if (each.wait_for(std::chrono::seconds(60)) != std::future_status::ready) {
      ADD_FAILURE() << "it is not heard";
      shards.nodes[0]->stop_text();
    }
  for (size_t i = 0; i < 2; ++i) shards.finish_later(i);
  ASSERT_TRUE(shards.finished[0].get().ok());
  EXPECT_TRUE(shards.nodes[0]->text_stopped());
  EXPECT_EQ(serving.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout)
      << "rows are still asked for";
  ASSERT_TRUE(shards.nodes[0]->read_all([](RowKey, std::span<const float>) {}).ok());
  shards.nodes[0].reset();
  EXPECT_TRUE(serving.get().ok());
}

TEST(ShardNode, AWishThatComesWhenTheTextIsOverChangesNothing) {
  Shards shards(1, 1);
  shards.options.text = PieceRange{0, 10};
  shards.start_all();
  EXPECT_EQ(train_on_all(*shards.nodes[0]).size(), 10u);
  shards.finish_later(0);
  ASSERT_TRUE(shards.finished[0].get().ok());
  const std::atomic<bool> stop = true;
  auto serving = std::async(std::launch::async, [&] { return shards.nodes[1]->serve(&stop); });
  while (!shards.nodes[1]->text_stopped()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  // What the owner says next is heard after its wish.
  std::vector<float> values;
  const std::vector<RowKey> rows = {1};
  ASSERT_TRUE(shards.nodes[0]->await(shards.nodes[0]->ask(rows), values).ok());
  EXPECT_FALSE(shards.nodes[0]->text_stopped());
  shards.nodes[0].reset();
  EXPECT_TRUE(serving.get().ok());
}

TEST(ShardNode, RowsComeInTheOrderInWhichTheyAreAskedFor) {
  Shards shards(3, 0);
  shards.start_all();
  const std::vector<RowKey> rows = {7, 3, 499, 0, 250};
  std::vector<float> values;
  ASSERT_TRUE(shards.nodes[1]->await(shards.nodes[1]->ask(rows), values).ok());
  ASSERT_EQ(values.size(), rows.size() * kShardDim);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], static_cast<float>(rows[i / kShardDim]));
}

TEST(ShardNode, EveryNodeKeepsItsShareAlone) {
  Shards shards(4, 0);
  shards.start_all();
  int64_t all = 0;
  for (const auto& node : shards.nodes) {
    EXPECT_LT(node->bytes_owned(), 0.35 * kShardRows * kShardDim * sizeof(float));
    all += node->bytes_owned();
  }
  EXPECT_EQ(all, kShardRows * kShardDim * static_cast<int64_t>(sizeof(float)));
}

TEST(ShardNode, WhatManyThreadsOfManyNodesAddIsThereOnceWhenAllHaveFinished) {
  constexpr int kTimes = 40;
  for (const auto& [workers, owners] : {std::pair{3, 0}, std::pair{2, 2}}) {
    Shards shards(workers, owners);
    shards.start_all();
    std::vector<std::future<void>> adding;
    for (int32_t worker = 0; worker < workers; ++worker)
      for (int thread = 0; thread < 2; ++thread)
        adding.push_back(std::async(std::launch::async, [&shards, worker] {
          std::vector<RowKey> rows;
          for (RowKey row = 0; row < kShardRows; row += 3) rows.push_back(row);
          const std::vector<float> ones(rows.size() * kShardDim, 1.0f);
          std::vector<float> values;
          for (int i = 0; i < kTimes; ++i) {
            ShardNode& node = *shards.nodes[static_cast<size_t>(worker)];
            const uint64_t question = node.ask(rows);
            node.add(rows, ones);
            ASSERT_TRUE(node.await(question, values).ok());
          }
        }));
    for (std::future<void>& each : adding) each.get();
    for (size_t i = 0; i < shards.nodes.size(); ++i) shards.finish_later(i);
    const Result<TrainedTotals> all = shards.finished[0].get();
    ASSERT_TRUE(all.ok());
    EXPECT_EQ(all->tokens, workers == 3 ? 33 : 21);  // nodes that only own rows have trained nothing
    const float added = static_cast<float>(kTimes * 2 * workers);
    size_t seen = 0;
    ASSERT_TRUE(shards.nodes[0]
                    ->read_all([&](RowKey row, std::span<const float> values) {
                      ++seen;
                      for (const float value : values)
                        EXPECT_EQ(value, static_cast<float>(row) + (row % 3 == 0 ? added : 0)) << row;
                    })
                    .ok());
    EXPECT_EQ(seen, kShardRows);
    shards.nodes[0].reset();  // the others have waited for it
    for (size_t i = 1; i < shards.nodes.size(); ++i) EXPECT_TRUE(shards.finished[i].get().ok());
  }
}

TEST(ShardNode, NobodyHasFinishedWhileChangesAreOnTheirWay) {
  Shards shards(3, 0);
  shards.start_all();
  std::vector<RowKey> rows;
  for (RowKey row = 0; row < kShardRows; ++row) rows.push_back(row);
  shards.network.cut(2, 3);
  shards.nodes[1]->add(rows, std::vector<float>(rows.size() * kShardDim, 1.0f));
  for (size_t i = 0; i < 3; ++i) shards.finish_later(i);
  EXPECT_EQ(shards.finished[0].wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  shards.network.mend(2, 3);
  ASSERT_TRUE(shards.finished[0].get().ok());
  ASSERT_TRUE(shards.nodes[0]
                  ->read_all([&](RowKey row, std::span<const float> values) {
                    EXPECT_EQ(values[0], static_cast<float>(row) + 1) << row;
                  })
                  .ok());
  shards.nodes[0].reset();
  for (size_t i = 1; i < 3; ++i) EXPECT_TRUE(shards.finished[i].get().ok());
}

TEST(ShardNode, AThreadFindsWhatItHasAddedInWhatItAsksForAfterwards) {
  Shards shards(2, 0);
  shards.start_all();
  const std::vector<RowKey> rows = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<float> ones(rows.size() * kShardDim, 1.0f);
  std::vector<float> before, after;
  for (int i = 0; i < 50; ++i) {
    const uint64_t first = shards.nodes[0]->ask(rows);
    shards.nodes[0]->add(rows, ones);
    const uint64_t second = shards.nodes[0]->ask(rows);
    ASSERT_TRUE(shards.nodes[0]->await(second, after).ok());
    ASSERT_TRUE(shards.nodes[0]->await(first, before).ok());
    for (size_t k = 0; k < before.size(); ++k) EXPECT_EQ(after[k], before[k] + 1);
  }
}

TEST(ShardNode, ALostNodeEndsAllWithAnError) {
  Shards shards(3, 0, 6);
  shards.start_all();
  for (size_t i = 0; i < 2; ++i) shards.finish_later(i);
  shards.network.cut(3, 1);
  shards.network.cut(3, 2);
  for (size_t i = 0; i < 2; ++i) {
    const Status lost = shards.finished[i].get().status();
    EXPECT_EQ(lost.code(), Code::kUnavailable);
    EXPECT_THAT(lost.message(), HasSubstr("was not heard"));
  }
  std::vector<float> values;  // whoever asks for rows does not wait for ever
  EXPECT_FALSE(shards.nodes[0]->await(shards.nodes[0]->ask(std::vector<RowKey>{1, 2, 3, 4, 5, 6, 7}), values).ok());
  EXPECT_FALSE(shards.nodes[0]->trained(1).ok());
}

TEST(ShardNode, LongRowsTravelInSeveralMessages) {
  Shards shards(2, 0);
  shards.options.row_end = 12;
  shards.options.dim = 1 << 20;
  ASSERT_EQ(rows_of_message(shards.options.dim), 2u);
  shards.start_all();
  const std::vector<RowKey> rows = {11, 0, 1, 2, 3, 4, 5, 6};
  const auto dim = static_cast<size_t>(shards.options.dim);
  shards.nodes[0]->add(rows, std::vector<float>(rows.size() * dim, 0.5f));
  std::vector<float> values;
  ASSERT_TRUE(shards.nodes[0]->await(shards.nodes[0]->ask(rows), values).ok());
  ASSERT_EQ(values.size(), rows.size() * dim);
  for (size_t i = 0; i < rows.size(); ++i)
    for (const size_t at : {i * dim, (i + 1) * dim - 1}) EXPECT_EQ(values[at], static_cast<float>(rows[i]) + 0.5f);
  std::vector<RowKey> seen;
  ASSERT_TRUE(shards.nodes[0]->read_all([&](RowKey row, std::span<const float>) { seen.push_back(row); }).ok());
  EXPECT_THAT(seen, ::testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
}

TEST(ShardNode, NoMessageHasMoreRowsThanItMay) {
  Shards shards(2, 0);
  shards.options.row_end = 30;
  shards.options.dim = 1 << 20;
  ReliableTransport other(shards.network.join(2));
  other.add_peer(1, "");
  shards.start(0);
  std::vector<RowKey> rows;
  for (RowKey row = 0; row < 30; ++row)
    if (owner_of(row, shards.options.owners) == 2 && rows.size() < 5) rows.push_back(row);
  shards.nodes[0]->add(rows, std::vector<float>(rows.size() << 20, 1.0f));
  (void)shards.nodes[0]->ask(rows);
  std::map<SandblasterKind, std::vector<RowKey>> came;
  while (came[SandblasterKind::kGradient].size() < rows.size() || came[SandblasterKind::kFetch].size() < rows.size()) {
    NodeId from = 0;
    std::string frame;
    ASSERT_TRUE(other.receive(Deadline::after(std::chrono::seconds(60)), from, frame).ok());
    const Result<SandblasterMessage> message = decode_sandblaster(frame);
    ASSERT_TRUE(message.ok());
    EXPECT_LE(message->rows.size(), 2u);
    std::vector<RowKey>& all = came[message->kind];
    all.insert(all.end(), message->rows.begin(), message->rows.end());
  }
  EXPECT_EQ(came[SandblasterKind::kGradient], rows);
  EXPECT_EQ(came[SandblasterKind::kFetch], rows);
}

TEST(ShardNode, AMessageThatCannotBeReadEndsItWithTheReason) {
  Shards shards(2, 0);
  ReliableTransport other(shards.network.join(2));
  other.add_peer(1, "");
  shards.start(0);
  other.send(1, "of another version");
  EXPECT_THAT(shards.nodes[0]->await_start().status().message(), HasSubstr("node 2 sent a message that nobody can"));
}

TEST(ShardNode, ANodeWithOtherTextIsRefusedWithTheReason) {
  Shards shards(2, 0);
  shards.start(0);
  shards.options.fingerprint = 7;
  shards.start(1);
  EXPECT_THAT(shards.nodes[1]->await_start().status().message(), HasSubstr("give all nodes the same text"));
}

TEST(ShardNode, WhoeverIsToStopAllAre) {
  for (const size_t asks : {0, 2}) {
    Shards shards(3, 0);
    shards.start_all();
    for (const auto& node : shards.nodes) EXPECT_TRUE(node->trained(1).ok());
    shards.nodes[asks]->stop_text();
    for (const auto& node : shards.nodes) {
      while (node->trained(1).ok()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_EQ(node->trained(1).code(), Code::kCancelled);
      EXPECT_TRUE(node->text_stopped());
    }
    for (size_t i = 0; i < 3; ++i) shards.finish_later(i);
    EXPECT_EQ(shards.finished[0].get().value().tokens, 33) << "and it ends well";
    shards.nodes[0].reset();
    for (const size_t i : {1, 2}) EXPECT_TRUE(shards.finished[i].get().ok());
  }
}

}  // namespace
}  // namespace streamvec
