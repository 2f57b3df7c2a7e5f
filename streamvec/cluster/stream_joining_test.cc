// Nodes that join others which train on streams.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "streamvec/cluster/stream_testing.h"

namespace streamvec {
namespace {

using namespace streamvec::testing;  // NOLINT: the nodes of this folder's tests

class StreamJoining : public ::testing::TestWithParam<Admission>, protected StreamNodes {};

TEST_P(StreamJoining, ANewNodeHasTheWordsAndRowsOfTheOthersAndItsOwnAreAdmitted) {
  start(2, GetParam(), 10, true);
  for (auto& member : members) ASSERT_TRUE(member->node->await_start().ok());
  std::vector<std::thread> threads;
  for (auto& member : members) threads.emplace_back([&] { read(*member, 60); });
  for (std::thread& thread : threads) thread.join();
  threads.clear();
  join(3);
  for (const Status& status : run({200, 200, 400}, 60)) ASSERT_TRUE(status.ok()) << status.message();
  expect_equal({1, 2, 3});
  expect_met(1);
  int own = 0;
  for (int i = 15; i < 30; ++i) own += members.front()->vocabulary.find("n3" + std::to_string(i)) != kNoSlot;
  EXPECT_GT(own, 0);
}

INSTANTIATE_TEST_SUITE_P(Schemes, StreamJoining, ::testing::Values(Admission::kBsp, Admission::kAsync));

TEST(StreamWelcome, ANodeThatComesLaterHearsOfWordsThatWereThereBeforeTheFirstChange) {
  Vocabulary known;
  for (const char* word : {"old", "older", "oldest"}) known.add(word, 7);
  StreamMember leader(1, false), late(2, false);
  StreamVocabulary shared = StreamVocabulary::from(words_of_test(), known, 0);
  leader.vocabulary = StreamVocabulary::follower(words_of_test(), shared);
  StreamExchange::Parts parts{.vocabulary = leader.vocabulary,
                              .lock_vocabulary = [&] { return std::unique_lock(leader.words_mutex); },
                              .restarted = [&](std::span<const Slot> slots) { leader.restart(slots); },
                              .first_row = [](RowKey, uint64_t, std::span<float>) {},
                              .message_bytes_max = 50};
  StreamExchange exchange(std::move(parts), kSlots, SharedVocabulary(std::move(shared), true));
  StreamExchange::Outbox out;
  std::vector<Slot> restarted;
  exchange.welcome(2, out);
  ASSERT_GT(out.size(), 2u) << "in parts, of any number of words";
  for (const auto& [node, bytes] : out) {
    EXPECT_TRUE(restarted.empty());
    EXPECT_EQ(node, 2u);
    EXPECT_LT(bytes.size(), 70u);
    ASSERT_TRUE(late.exchange->receive(1, 1, bytes, restarted).ok());
  }
  for (const Slot slot : {0, 1, 2}) EXPECT_EQ(late.vocabulary.word(slot), known.word(slot));
  EXPECT_EQ(restarted, (std::vector<Slot>{0, 1, 2}));
}

TEST(StreamWelcome, ANodeThatComesLaterHearsHowOftenWordsWereTrainedOn) {
  StreamMember leader(1, true), late(2, false);
  StreamExchange::Outbox out;
  std::vector<Slot> restarted;
  for (int i = 0; i < 2; ++i) {
    leader.read({"word", "word", "word"});  // of which it is not known at first
    ASSERT_TRUE(leader.exchange->step(i + 1, 1, 1, {1, {1}, {1}}, false, out, restarted).ok());
  }
  ASSERT_EQ(leader.hybrid->met(0), 3);
  leader.exchange->welcome(2, out);
  ASSERT_TRUE(late.exchange->receive(1, 1, out.back().second, restarted).ok());
  EXPECT_EQ(late.hybrid->met(0), 3);
}

}  // namespace
}  // namespace streamvec
