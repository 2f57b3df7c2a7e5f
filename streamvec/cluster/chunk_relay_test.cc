#include "streamvec/cluster/chunk_relay.h"

#include <gtest/gtest.h>

#include <atomic>
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

std::shared_ptr<const ReplayItem> withdrawal_of(uint64_t record) {
  auto item = std::make_shared<ReplayItem>();
  item->record = record;
  return item;
}

ReplayItem chunk_of_record(uint64_t record, uint64_t stamp = 0) {
  ReplayItem item = chunk_of(1, stamp);
  item.record = record;
  return item;
}

// What a sender's messages are, by node: "c" and "w" with the record of a chunk and of a withdrawal, "end".
std::map<NodeId, std::vector<std::string>> told(ChunkSender& sender) {
  std::map<NodeId, std::vector<std::string>> all;
  for (const auto& [node, bytes] : sender.take_out()) {
    const auto item = bytes.empty() ? Result<std::shared_ptr<const ReplayItem>>(nullptr) : decode_chunk(bytes);
    EXPECT_TRUE(item.ok());
    all[node].push_back(bytes.empty() ? "end" : ((*item)->withdraws() ? "w" : "c") + std::to_string((*item)->record));
  }
  return all;
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

TEST(Chunk, OneWithoutWordsWithdrawsARecordAndHasNothingElse) {
  const auto got = decode_chunk(encode_chunk(*withdrawal_of(77)));
  ASSERT_TRUE(got.ok());
  EXPECT_TRUE((*got)->withdraws());
  EXPECT_EQ((*got)->record, 77u);
  EXPECT_FALSE((*decode_chunk(encode_chunk(chunk_of(5))))->withdraws());
  EXPECT_FALSE(decode_chunk(encode_chunk(*withdrawal_of(0))).ok());
  ReplayItem ended = *withdrawal_of(77);
  ended.chunk.sentence_ends = {0};
  EXPECT_FALSE(decode_chunk(encode_chunk(ended)).ok());
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

TEST(ChunkSender, WhatIsWithdrawnGoesToAllInItsPlaceAmongTheChunks) {
  ChunkSender sender;
  sender.set_workers({1, 2, 3});
  for (const uint64_t record : {7u, 7u, 8u}) ASSERT_TRUE(sender.send(chunk_of_record(record)));
  ASSERT_TRUE(sender.send(*withdrawal_of(7)));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(sender.send(chunk_of_record(7)));
  EXPECT_EQ(told(sender), (std::map<NodeId, std::vector<std::string>>{
                              {1, {"c7", "w7", "c7"}}, {2, {"c7", "w7", "c7"}}, {3, {"c8", "w7", "c7"}}}));
}

TEST(ChunkSender, WhatIsWithdrawnWaitsForRoomAtAllThatAreStillThere) {
  ChunkSender sender;
  sender.set_workers({1, 2});
  for (int32_t i = 0; i < 2 * ChunkSender::kOutstandingMax; ++i) ASSERT_TRUE(sender.send(chunk_of(i)));
  sender.taken(1, ChunkSender::kOutstandingMax);
  (void)sender.take_out();
  std::atomic<bool> sent = false;
  const auto send_later = [&] {
    return std::thread([&] {
      EXPECT_TRUE(sender.send(*withdrawal_of(7)));
      sent = true;
    });
  };
  std::thread waits = send_later();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(sent);
  sender.taken(2, 1);
  waits.join();
  EXPECT_EQ(told(sender), (std::map<NodeId, std::vector<std::string>>{{1, {"w7"}}, {2, {"w7"}}}));
  sent = false;
  waits = send_later();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(sent) << "one that waits counts as a chunk";
  sender.set_workers({1});
  waits.join();
  EXPECT_EQ(told(sender), (std::map<NodeId, std::vector<std::string>>{{1, {"w7"}}}));
  sender.close();
  EXPECT_FALSE(sender.send(*withdrawal_of(8)));
}

TEST(ChunkSender, OneThatComesLaterHearsOfWhatIsWithdrawnFromThenOn) {
  ChunkSender sender;
  sender.set_workers({1});
  ASSERT_TRUE(sender.send(*withdrawal_of(7)));
  sender.set_workers({1, 2});
  ASSERT_TRUE(sender.send(*withdrawal_of(8)));
  sender.end();
  EXPECT_EQ(told(sender), (std::map<NodeId, std::vector<std::string>>{{1, {"w7", "w8", "end"}}, {2, {"w8", "end"}}}));
}

TEST(ChunkSender, ARecordIsOnItsWayToBeWithdrawnUntilAllThatAreThereHaveErasedIt) {
  ChunkSender sender;
  sender.set_workers({1, 2});
  const auto first = withdrawal_of(7), again = withdrawal_of(7);
  sender.announce(first);
  EXPECT_EQ(sender.withdrawn(), std::vector<uint64_t>{7});
  ASSERT_TRUE(sender.send(chunk_of_record(8)));
  ASSERT_TRUE(sender.send(*first));
  sender.taken(1, 1);
  sender.taken(2, 1);
  EXPECT_EQ(sender.withdrawn(), std::vector<uint64_t>{7}) << "the first has taken the chunk only";
  sender.taken(1, 2);
  EXPECT_TRUE(sender.withdrawn().empty());

  sender.announce(first);
  sender.announce(again);
  ASSERT_TRUE(sender.send(*first));
  sender.taken(1, 3);
  sender.taken(2, 2);
  EXPECT_EQ(sender.withdrawn(), std::vector<uint64_t>{7}) << "it was written anew and withdrawn again";
  ASSERT_TRUE(sender.send(*again));
  sender.taken(1, 4);
  EXPECT_EQ(sender.withdrawn(), std::vector<uint64_t>{7});
  sender.set_workers({1});
  EXPECT_TRUE(sender.withdrawn().empty());
}

TEST(ChunkSender, WaitsUntilAllHaveErasedWhatIsWithdrawnOrNobodyIsLeft) {
  const auto erases = [](ChunkSender& sender) { sender.taken(1, 1); };
  const auto leaves = [](ChunkSender& sender) { sender.set_workers({}); };
  const auto closes = [](ChunkSender& sender) { sender.close(); };
  for (const std::function<void(ChunkSender&)>& what : {+erases, +leaves, +closes}) {
    ChunkSender sender;
    sender.set_workers({1});
    ASSERT_TRUE(sender.send(*withdrawal_of(7)));
    std::atomic<bool> over = false;
    std::thread waits([&] {
      sender.await_withdrawn();
      over = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_FALSE(over);
    what(sender);
    waits.join();
  }
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

TEST(ChunkReceiver, WhatIsWithdrawnComesBehindChunksThatWaitForTheirChangesOfHands) {
  ChunkReceiver receiver;
  receiver.set_readers({7});
  ASSERT_TRUE(receiver.receive(7, encode_chunk(chunk_of_record(3, 5))).ok());
  ASSERT_TRUE(receiver.receive(7, encode_chunk(*withdrawal_of(3))).ok());
  ASSERT_TRUE(receiver.receive(7, encode_chunk(chunk_of_record(3, 5))).ok());
  ASSERT_TRUE(receiver.receive(7, "").ok());
  NodeId from = 0;
  EXPECT_EQ(receiver.next([] { return uint64_t{4}; }, soon(), from), nullptr);
  std::vector<bool> withdraws;
  while (!receiver.over()) {
    const auto item = receiver.next([] { return uint64_t{5}; }, soon(), from);
    ASSERT_NE(item, nullptr);
    withdraws.push_back(item->withdraws());
    receiver.taken(from);
  }
  EXPECT_EQ(withdraws, (std::vector<bool>{false, true, false}));
  EXPECT_EQ(receiver.take_taken(), (std::vector<std::pair<NodeId, int64_t>>{{7, 3}})) << "it counts as a chunk";
}

TEST(ChunkReceiver, WhatAnotherReaderHasSentOfARecordThatIsWithdrawnIsLeftOut) {
  ChunkReceiver receiver;
  receiver.set_readers({7, 8});
  for (const uint64_t record : {3u, 4u, 0u})
    ASSERT_TRUE(receiver.receive(7, encode_chunk(chunk_of_record(record, 5))).ok());
  ASSERT_TRUE(receiver.receive(8, encode_chunk(*withdrawal_of(3))).ok());
  ASSERT_TRUE(receiver.receive(8, encode_chunk(chunk_of_record(3, 5))).ok());
  std::map<NodeId, std::vector<uint64_t>> texts;
  NodeId from = 0;
  for (const uint64_t stamp : {4u, 5u})
    while (const auto item = receiver.next([&] { return stamp; }, soon(), from)) {
      if (!item->withdraws()) texts[from].push_back(item->record);
      receiver.taken(from);
    }
  EXPECT_EQ(texts, (std::map<NodeId, std::vector<uint64_t>>{{7, {4, 0}}, {8, {3}}}));
  EXPECT_EQ(receiver.take_taken(), (std::vector<std::pair<NodeId, int64_t>>{{7, 3}, {8, 2}}))
      << "as many as each has sent";
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
