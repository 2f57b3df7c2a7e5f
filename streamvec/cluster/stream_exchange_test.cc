#include "streamvec/cluster/stream_exchange.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "streamvec/cluster/stream_testing.h"
#include "streamvec/core/testing_wait.h"

namespace streamvec {
namespace {

using namespace streamvec::testing;  // NOLINT: the nodes of this folder's tests

class StreamCluster : public ::testing::TestWithParam<Admission>, protected StreamNodes {
 protected:
  void start(size_t count, double dead_after_s = 10) { StreamNodes::start(count, GetParam(), dead_after_s); }
};

TEST_P(StreamCluster, AllNodesEndWithTheSameWordsAndWhatAllAddedToLivingOnes) {
  start(3);
  for (const Status& status : run({300, 400, 150})) ASSERT_TRUE(status.ok()) << status.message();
  const StreamMember& first = *members.front();
  EXPECT_GT(first.vocabulary.statistics().evicted, 20);
  EXPECT_EQ(first.vocabulary.statistics().tokens, 8'500);
  expect_equal({1, 2, 3});
  expect_met(1);
}

INSTANTIATE_TEST_SUITE_P(Schemes, StreamCluster, ::testing::Values(Admission::kBsp, Admission::kAsync),
                         [](const auto& scheme) { return scheme.param == Admission::kBsp ? "bsp" : "async"; });

using InStep = StreamCluster;
INSTANTIATE_TEST_SUITE_P(Bsp, InStep, ::testing::Values(Admission::kBsp));

TEST_P(InStep, ANodeThatDiesIsLeftOutAndTheOthersGoOnAdmittingWords) {
  start(3, 3);
  std::thread dies([&] {
    ASSERT_TRUE(members[2]->node->await_start().ok());
    read(*members[2], 30);
    members[2]->node.reset();
  });
  std::latch first_has_read(1);  // its words would push out those of a second that was far ahead
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {
      ASSERT_TRUE(members[i]->node->await_start().ok());
      read(*members[i], 200);
      if (i == 0) first_has_read.count_down();
      if (i == 1) {
        first_has_read.wait();
        read(*members[i], 100, 200);
      }
      EXPECT_TRUE(members[i]->node->finish({}).ok());
    });
  dies.join();
  for (std::thread& thread : threads) thread.join();
  const StreamMember& first = *members.front();
  int late = 0;  // words that only the second had, and after the third had gone
  for (int i = 14; i < 20; ++i) late += first.vocabulary.find("n2" + std::to_string(i)) != kNoSlot;
  EXPECT_GT(late, 0);
  for (Slot slot = 0; slot < first.vocabulary.size(); ++slot)
    EXPECT_EQ(members[1]->vocabulary.word(slot), first.vocabulary.word(slot));
}

TEST_P(InStep, ANodeWhoseTextComesSlowlyHoldsNobodyUp) {
  start(2);
  for (auto& member : members) ASSERT_TRUE(member->node->await_start().ok());
  const auto push_quickly = [&](int64_t pushes) {
    const Deadline deadline = Deadline::after(std::chrono::seconds(5));  // held up, a push takes 0.25 s
    for (const int64_t enough = members[0]->node->stats().pushes + pushes; !deadline.passed();) {
      if (members[0]->node->stats().pushes >= enough) return true;
      EXPECT_TRUE(members[0]->node->trained(20).ok());
    }
    return false;
  };
  bool quick = false;  // once: a busy machine may hold anybody up
  for (int tries = 0; tries < 10 && !quick; ++tries) quick = push_quickly(40);
  EXPECT_TRUE(quick) << "fewer than 40 pushes in 5 s";
}

TEST_P(InStep, WhoWaitsForSlotsFindsTheWordsThatHaveEarnedThem) {
  start(2);
  for (auto& member : members) ASSERT_TRUE(member->node->await_start().ok());
  for (auto& member : members) {
    const std::string word = "new" + std::to_string(member->id);
    member->read({word, word, word});
    member->exchange->await_slots();
    const std::lock_guard words(member->words_mutex);
    EXPECT_NE(member->vocabulary.find_form(word), kNoSlot);
  }
}

TEST_P(InStep, TheLeaderLearnsWhereSourcesStandAndTellsWhenTheyAreSafe) {
  start(2);
  for (auto& member : members) ASSERT_TRUE(member->node->await_start().ok());
  std::thread other([&] {
    EXPECT_TRUE(eventually("a question where sources stand", [&] { return members[1]->exchange->cursors_wanted(); }));
    EXPECT_FALSE(members[1]->exchange->take_safe());
    members[1]->exchange->tell_cursors("at 7");
  });
  members[0]->exchange->gather_cursors(Deadline::after(std::chrono::seconds(20)));
  other.join();
  EXPECT_EQ(members[0]->exchange->cursors(), (std::map<NodeId, std::string>{{2, "at 7"}}));
  EXPECT_FALSE(members[1]->exchange->take_safe()) << "it is told, but not written yet";
  members[0]->exchange->hold();
  EXPECT_FALSE(members[0]->exchange->save_vocabulary().empty());
  members[0]->exchange->saved();
  members[0]->exchange->go_on();
  EXPECT_TRUE(eventually("word that they are safe", [&] { return members[1]->exchange->take_safe(); }));
  EXPECT_FALSE(members[1]->exchange->take_safe());
  EXPECT_FALSE(members[1]->exchange->asked_to_stop());
  members[0]->exchange->ask_to_stop();
  EXPECT_TRUE(eventually("word to stop", [&] { return members[1]->exchange->asked_to_stop(); }));
}

TEST_P(InStep, WhatNodesShareIsDividedWhenAllHaveToldWhereTheyStandAndAnewWhenOneDies) {
  start(3, 3);
  for (auto& member : members) ASSERT_TRUE(member->node->await_start().ok());
  StreamExchange& leader = *members[0]->exchange;
  EXPECT_TRUE(eventually("a membership", [&] { return leader.division_due() && leader.members().size() == 3; }));
  leader.ask_to_divide();
  EXPECT_FALSE(leader.division_due());
  for (const size_t other : {1, 2}) {
    StreamExchange& exchange = *members[other]->exchange;
    EXPECT_TRUE(eventually("a question where sources stand", [&] { return exchange.cursors_wanted(); }));
    EXPECT_TRUE(exchange.is_dividing()) << "it knows by then what for";
    EXPECT_FALSE(leader.may_divide());
    exchange.tell_cursors("at 7");
  }
  EXPECT_TRUE(eventually("all answers", [&] { return leader.may_divide(); }));
  leader.tell_division("first");
  for (auto& member : members) {
    std::optional<std::string> division;
    EXPECT_TRUE(eventually("a division", [&] { return (division = member->exchange->take_division()).has_value(); }));
    EXPECT_EQ(division, "first");
    EXPECT_EQ(member->exchange->take_division(), std::nullopt) << "once";
    EXPECT_FALSE(member->exchange->is_dividing());
  }
  EXPECT_FALSE(leader.division_due());
  members[2]->node.reset();
  EXPECT_TRUE(eventually("a smaller membership", [&] { return leader.division_due(); }));
  leader.ask_to_divide();
  EXPECT_TRUE(eventually("a question", [&] { return members[1]->exchange->cursors_wanted(); }));
  members[1]->exchange->tell_cursors("at 8");
  EXPECT_TRUE(eventually("the answer of the one that is left", [&] { return leader.may_divide(); }));
  EXPECT_EQ(leader.members(), (std::set<NodeId>{1, 2}));
  EXPECT_EQ(leader.cursors().at(3), "at 7") << "where the one that died stood";
}

TEST(StreamExchange, ANodeThatReadsNothingTellsWhatItTrainsOn) {
  StreamMember leader(1, true), trains(2, false);
  const View view{1, {1, 2}, {1, 2}};
  StreamExchange::Outbox out;
  std::vector<Slot> restarted;
  leader.read({"word", "word"});
  ASSERT_TRUE(leader.exchange->step(1, 1, 1, view, false, out, restarted).ok());
  ASSERT_EQ(out.size(), 1u);
  ASSERT_TRUE(trains.exchange->receive(1, 1, out[0].second, restarted).ok());
  Chunk chunk;
  chunk.slots = {0, 0, 0};
  Parameters none;
  trains.hybrid->learn(chunk, none);
  out.clear();
  ASSERT_TRUE(trains.exchange->step(2, 2, 1, view, false, out, restarted).ok());
  ASSERT_EQ(out.size(), 1u) << "it has read nothing";
  ASSERT_TRUE(leader.exchange->receive(2, 1, out[0].second, restarted).ok());
  ASSERT_TRUE(leader.exchange->step(2, 1, 1, view, false, out, restarted).ok());
  EXPECT_EQ(leader.hybrid->met(0), 3);
}

// Its thread that reads waits, and the one that would end it waits for that one.
TEST(StreamExchangeStop, WordToStopEndsTheWaitForRoomOfOneThatOnlyReads) {
  ChunkSender sender;
  sender.set_workers({1});
  StreamMember reader(2, false, testing::words_of_test(), testing::kMessageBytes, &sender);
  ReplayItem withdrawal;
  withdrawal.record = 7;
  for (int64_t i = 0; i < ChunkSender::kOutstandingMax; ++i) ASSERT_TRUE(sender.send(withdrawal));
  std::atomic<bool> sent = true;
  std::thread waits([&] { sent = sender.send(withdrawal); });
  StreamNews news;
  news.stop = true;
  std::vector<Slot> restarted;
  ASSERT_TRUE(reader.exchange->receive(1, 1, encode(news), restarted).ok());
  EXPECT_TRUE(eventually("the wait to end", [&] { return !sent; }));
  sender.close();
  waits.join();
}

TEST(StreamExchangeMessage, ComesBackAsItWasSentAndWhatIsCutShortIsRefused) {
  StreamReport report;
  report.words = {1, 2, 0.5, 3, 1, {{4, 2}}, {{"a", 1}}, {{4, 9}, {7, 300}}};
  report.replay = {3.5, 0.25f, 99};
  report.save = 7;
  report.cursors = "{}";
  StreamNews news;
  news.answered = 3;
  news.reference = 0.5f;
  news.save = 8;
  news.saved = 7;
  news.stop = true;
  news.divide = 9;
  news.divided = 8;
  news.division = "[]";
  news.met = {0, 5, 4'000'000'000u};
  news.words = {4, 5, 6, 1, {{0, 5, 1, "b"}}, {}};
  const auto got = decode_stream_report(encode(report));
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->cursors, "{}");
  EXPECT_EQ(got->save, 7);
  EXPECT_EQ(got->replay.sampled, 99);
  EXPECT_EQ(got->words.words, report.words.words);
  EXPECT_EQ(got->words.met, report.words.met);
  const auto told = decode_stream_news(encode(news));
  ASSERT_TRUE(told.ok());
  EXPECT_TRUE(told->stop);
  EXPECT_EQ(told->divide, 9);
  EXPECT_EQ(told->divided, 8);
  EXPECT_EQ(told->division, "[]");
  EXPECT_EQ(told->met, news.met);
  EXPECT_EQ(told->words.changes.at(0).word, "b");
  for (size_t size = 0; size < encode(report).size(); ++size)
    EXPECT_FALSE(decode_stream_report(encode(report).substr(0, size)).ok()) << size;
  for (size_t size = 0; size < encode(news).size(); ++size)
    EXPECT_FALSE(decode_stream_news(encode(news).substr(0, size)).ok()) << size;
  EXPECT_FALSE(decode_stream_news(encode(report)).ok());
}

}  // namespace
}  // namespace streamvec
