#include "streamvec/cluster/chunk_relay.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace streamvec {
namespace {

ReplayItem chunk_of(int32_t number, uint64_t stamp = 0) {
  ReplayItem item;
  item.chunk.slots = {number, number + 1, number};
  item.chunk.sentence_ends = {1, 3};
  item.stamp = stamp;
  item.record = 77;
  item.source = 2;
  item.time_s = 1'000;
  item.t = 0.5;
  return item;
}

Deadline soon() {
  return Deadline::after(std::chrono::milliseconds(1));
}

TEST(Chunk, ComesBackAsItWasSentAndWhatIsCutShortIsRefused) {
  const ReplayItem sent = chunk_of(5, 9);
  const std::string bytes = encode_chunk(sent);
  const auto got = decode_chunk(bytes);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ((*got)->chunk.slots, sent.chunk.slots);
  EXPECT_EQ((*got)->chunk.sentence_ends, sent.chunk.sentence_ends);
  EXPECT_EQ((*got)->stamp, 9u);
  EXPECT_EQ((*got)->record, 77u);
  EXPECT_EQ((*got)->t, 0.5);
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(decode_chunk(bytes.substr(0, size)).ok()) << size;
  ReplayItem impossible = sent;
  impossible.chunk.sentence_ends = {1, 4};
  EXPECT_FALSE(decode_chunk(encode_chunk(impossible)).ok());
  impossible = sent;
  impossible.chunk.slots[0] = -1;
  EXPECT_FALSE(decode_chunk(encode_chunk(impossible)).ok());
}

TEST(ChunkSender, GivesToWhoeverHasTheMostRoomAndWaitsForRoom) {
  ChunkSender sender;
  sender.set_workers({1, 2});
  sender.taken(2, 0);
  std::map<NodeId, int64_t> sent;
  for (int32_t i = 0; i < 2 * ChunkSender::kOutstandingMax; ++i) ASSERT_TRUE(sender.send(chunk_of(i)));
  for (const auto& [node, chunk] : sender.take_out()) ++sent[node];
  EXPECT_EQ(sent[1], ChunkSender::kOutstandingMax);
  EXPECT_EQ(sent[2], ChunkSender::kOutstandingMax);
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    sender.taken(2, 1);
  });
  ASSERT_TRUE(sender.send(chunk_of(0)));
  later.join();
  EXPECT_EQ(sender.take_out().at(0).first, 2u);
}

TEST(ChunkSender, EndsWhenNobodyIsLeft) {
  ChunkSender sender;
  sender.set_workers({1});
  ASSERT_TRUE(sender.send(chunk_of(0)));
  sender.set_workers({});
  EXPECT_FALSE(sender.send(chunk_of(1)));
}

TEST(ChunkSender, TellsEveryoneOnceThatNoMoreWillComeAfterWhatCame) {
  ChunkSender sender;
  sender.set_workers({1, 2});
  ASSERT_TRUE(sender.send(chunk_of(0)));
  sender.end();
  const auto out = sender.take_out();
  ASSERT_EQ(out.size(), 3u);
  EXPECT_FALSE(out[0].second.empty());
  EXPECT_TRUE(out[1].second.empty() && out[2].second.empty());
  EXPECT_TRUE(sender.take_out().empty());
}

TEST(ChunkReceiver, ChunksWaitUntilTheirChangesOfHandsHaveCome) {
  ChunkReceiver receiver;
  receiver.set_readers({7});
  ASSERT_TRUE(receiver.receive(7, encode_chunk(chunk_of(1, 5))).ok());
  NodeId from = 0;
  EXPECT_EQ(receiver.next([] { return uint64_t{4}; }, soon(), from), nullptr);
  const auto item = receiver.next([] { return uint64_t{5}; }, soon(), from);
  ASSERT_NE(item, nullptr);
  EXPECT_EQ(from, 7u);
  EXPECT_TRUE(receiver.take_taken().empty());
  receiver.taken(7);
  EXPECT_EQ(receiver.take_taken(), (std::vector<std::pair<NodeId, int64_t>>{{7, 1}}));
  EXPECT_TRUE(receiver.take_taken().empty());
}

TEST(ChunkReceiver, ReadersTakeTurns) {
  ChunkReceiver receiver;
  for (int32_t i = 0; i < 3; ++i)
    for (const NodeId reader : {7u, 8u}) ASSERT_TRUE(receiver.receive(reader, encode_chunk(chunk_of(i))).ok());
  std::vector<NodeId> order;
  for (int i = 0; i < 4; ++i) {
    NodeId from = 0;
    ASSERT_NE(receiver.next([] { return uint64_t{0}; }, soon(), from), nullptr);
    order.push_back(from);
  }
  EXPECT_EQ(order, (std::vector<NodeId>{7, 8, 7, 8}));
}

TEST(ChunkReceiver, IsOverWhenAllReadersHaveEndedOrAreGone) {
  ChunkReceiver receiver;
  EXPECT_FALSE(receiver.over()) << "nobody has been heard of yet";
  receiver.set_readers({7, 8});
  EXPECT_FALSE(receiver.over());
  ASSERT_TRUE(receiver.receive(7, encode_chunk(chunk_of(1))).ok());
  ASSERT_TRUE(receiver.receive(7, "").ok());
  receiver.set_readers({7});  // the other one has died
  EXPECT_FALSE(receiver.over());
  NodeId from = 0;
  ASSERT_NE(receiver.next([] { return uint64_t{0}; }, soon(), from), nullptr);
  EXPECT_TRUE(receiver.over());
  EXPECT_FALSE(receiver.receive(7, "no chunk").ok());
}

}  // namespace
}  // namespace streamvec
