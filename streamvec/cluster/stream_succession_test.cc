// The words of a stream when the node that has them dies.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "streamvec/cluster/stream_testing.h"
#include "streamvec/core/testing_wait.h"

namespace streamvec {
namespace {

using namespace streamvec::testing;  // NOLINT: the nodes of this folder's tests

// Three nodes that talk when they are told to, and only to whom they are told.
class WordsOfADeadLeader : public ::testing::Test {
 protected:
  WordsOfADeadLeader() {
    for (NodeId id = 1; id <= 3; ++id) members_.push_back(std::make_unique<StreamMember>(id, id == 1));
  }

  StreamMember& of(NodeId id) { return *members_[id - 1]; }
  void deliver(NodeId from, const StreamExchange::Outbox& out, const std::set<NodeId>& to) {
    std::vector<Slot> restarted;
    for (const auto& [node, bytes] : out) {
      if (to.count(node) == 0) continue;
      ASSERT_TRUE(of(node).exchange->receive(from, leader_, bytes, restarted).ok());
    }
  }
  // What the node has to tell, of which only those hear.
  void step(NodeId id, const std::set<NodeId>& to) {
    StreamExchange::Outbox out;
    std::vector<Slot> restarted;
    ASSERT_TRUE(of(id).exchange->step(now_s_ += 1, id, leader_, view_, false, out, restarted).ok());
    deliver(id, out, to);
  }
  // The second node reads a word often enough, and those hear that it has a slot.
  void admit(const std::string& word, const std::set<NodeId>& hear) {
    of(2).read({word, word});
    step(2, {1});
    step(1, hear);
  }
  // The second leads from now on, and the third takes part.
  void succeed() {
    leader_ = 2;
    view_ = {4, {2, 3}, {2, 3}};
    std::map<NodeId, uint64_t> heard;
    for (const NodeId id : {2, 3}) {
      heard[id] = of(id).vocabulary.stamp();
      StreamExchange::Outbox out;
      of(id).exchange->change_leader(id, leader_, out);
      deliver(id, out, {2, 3});
    }
    of(2).exchange->succeed(heard, 3);
  }
  Slot find(NodeId id, const std::string& word) { return of(id).vocabulary.find(word); }
  void expect_equal_words() {
    EXPECT_EQ(of(2).vocabulary.stamp(), of(3).vocabulary.stamp());
    EXPECT_EQ(of(2).exchange->generations().stamp(), of(2).vocabulary.stamp());
    ASSERT_EQ(of(2).vocabulary.size(), of(3).vocabulary.size());
    for (Slot slot = 0; slot < of(2).vocabulary.size(); ++slot) {
      EXPECT_EQ(of(2).vocabulary.word(slot), of(3).vocabulary.word(slot));
      EXPECT_EQ(of(2).vocabulary.born(slot), of(3).vocabulary.born(slot));
    }
  }

  std::vector<std::unique_ptr<StreamMember>> members_;
  NodeId leader_ = 1;
  View view_{1, {1, 2, 3}, {1, 2, 3}};
  double now_s_ = 0;
};

TEST_F(WordsOfADeadLeader, WhatOnlyOneHasHeardOfAllKnowThenAndWhatNobodyHasIsNone) {
  admit("known", {2, 3});
  admit("told", {3});
  const Slot told = find(3, "told");
  ASSERT_NE(told, kNoSlot);
  ASSERT_EQ(find(2, "told"), kNoSlot);
  of(1).read({"untold", "untold"});
  step(1, {});
  ASSERT_NE(find(1, "untold"), kNoSlot);
  succeed();
  step(2, {3});
  EXPECT_TRUE(of(2).exchange->succeeds()) << "it knows less than the third";
  EXPECT_FALSE(of(2).exchange->has_words());
  step(3, {2});
  step(2, {3});
  EXPECT_FALSE(of(2).exchange->succeeds());
  EXPECT_TRUE(of(2).exchange->has_words());
  expect_equal_words();
  EXPECT_EQ(find(2, "told"), told);
  EXPECT_EQ(find(2, "untold"), kNoSlot);
  EXPECT_GT(of(2).vocabulary.stamp(), of(1).vocabulary.stamp()) << "a number means one change";
  of(3).read({"new", "new"});
  step(3, {2});
  step(2, {3});
  expect_equal_words();
  EXPECT_EQ(find(3, "new"), find(1, "untold")) << "the next slot that is free";
  EXPECT_GT(of(3).vocabulary.born(find(3, "new")), of(1).vocabulary.stamp());
}

TEST_F(WordsOfADeadLeader, WhoKnowsLessThanTheNextLeaderIsToldWhatItLacks) {
  admit("known", {2, 3});
  admit("told", {2});
  admit("again", {2});
  succeed();
  step(2, {3});
  expect_equal_words();
  EXPECT_NE(find(3, "again"), kNoSlot);
  EXPECT_EQ(of(3).tables[0].row(find(3, "again"))[kStreamDim - 1],
            StreamMember::mark_of(of(2).vocabulary.born(find(2, "again"))));
}

TEST_F(WordsOfADeadLeader, ReportsThatItHasNotAnsweredAreCountedByTheNext) {
  admit("known", {2, 3});
  for (const NodeId id : {2, 3}) {
    of(id).read({"word" + std::to_string(id), "word" + std::to_string(id)});
    step(id, {1});
  }
  step(1, {});
  succeed();
  step(2, {3});
  expect_equal_words();
  EXPECT_NE(find(3, "word2"), kNoSlot);
  EXPECT_NE(find(2, "word3"), kNoSlot);
  EXPECT_NEAR(of(2).vocabulary.weight(find(2, "known")), 2, 0.1) << "its own counts are in the new ones, once";
}

TEST_F(WordsOfADeadLeader, WhatTheNextOneReadsBeforeItHasThePlaceCountsOnce) {
  admit("known", {2, 3});
  succeed();
  of(2).read({"known", "known", "known", "known"});
  step(2, {3});
  step(2, {3});
  EXPECT_NEAR(of(2).vocabulary.weight(find(2, "known")), 6, 0.1);
}

TEST_F(WordsOfADeadLeader, WhatOthersHaveCountedSinceCountsWereToldIsNotLost) {
  admit("known", {2, 3});
  for (int i = 0; i < 3; ++i) {
    of(3).read({"known", "known"});
    step(3, {1});
    step(1, {2, 3});
  }
  of(3).read({"met", "met"});  // of which it hears later that it has a slot
  admit("met", {2, 3});
  step(3, {1});
  step(1, {2, 3});
  of(3).read({"known"});
  step(3, {1});
  of(3).read({"known", "late"});
  succeed();
  step(2, {3});
  step(3, {2});
  step(2, {3});
  EXPECT_NEAR(of(2).exchange->words().weight(find(2, "known")), 10, 0.4);
  EXPECT_NEAR(of(2).exchange->words().weight(find(2, "met")), 4, 0.2);
}

TEST_F(WordsOfADeadLeader, HowOftenAllHaveTrainedOnWordsIsKnownToTheNext) {
  admit("known", {2, 3});
  const auto train = [&](NodeId id, size_t times) { of(id).read(std::vector<std::string>(times, "known")); };
  train(1, 10'000);  // after so many words counts are told
  step(1, {2, 3});
  train(1, 5);
  train(3, 30);
  step(3, {1});
  step(1, {2, 3});  // that they are counted
  train(3, 200);
  step(3, {});
  train(3, 1'000);
  train(2, 2'000);
  step(2, {1});
  succeed();
  step(2, {3});
  step(3, {2});
  step(2, {3});
  EXPECT_EQ(of(1).hybrid->met(find(1, "known")), 10'035);
  EXPECT_EQ(of(2).hybrid->met(find(2, "known")), 13'230) << "without 5 that only the dead one knew of";
}

TEST_F(WordsOfADeadLeader, WhatTheNextOneHadNotToldItWhenCountsWereToldIsInItsCounts) {
  admit("known", {2, 3});
  of(2).read(std::vector<std::string>(7, "known"));
  step(2, {});
  of(2).read(std::vector<std::string>(3, "known"));
  of(1).read(std::vector<std::string>(10'000, "known"));  // after so many words counts are told
  step(1, {2, 3});
  EXPECT_NEAR(of(2).vocabulary.weight(find(2, "known")), of(3).vocabulary.weight(find(3, "known")) + 10, 0.5);
  succeed();
  step(2, {});
  EXPECT_EQ(of(2).hybrid->met(find(2, "known")), 10'010);
}

TEST_F(WordsOfADeadLeader, OneThatDiesAfterItWasAskedIsNotWaitedFor) {
  admit("known", {2, 3});
  admit("told", {3});
  succeed();
  step(2, {3});
  view_ = {5, {2}, {2}};
  step(2, {});
  EXPECT_TRUE(of(2).exchange->has_words());
  EXPECT_NE(find(2, "told"), kNoSlot) << "its own report of it was never answered";
  EXPECT_GT(of(2).vocabulary.born(find(2, "told")), of(3).vocabulary.stamp());
}

TEST_F(WordsOfADeadLeader, NewsOfOneThatHasLedBeforeIsPassedOver) {
  admit("known", {2, 3});
  succeed();
  step(2, {3});
  const uint64_t stamp = of(3).vocabulary.stamp();
  of(1).read({"late", "late"});
  leader_ = 1;
  view_ = {1, {1, 2, 3}, {1, 2, 3}};
  StreamExchange::Outbox out;
  std::vector<Slot> restarted;
  ASSERT_TRUE(of(1).exchange->step(now_s_ += 1, 1, 1, view_, false, out, restarted).ok());
  ASSERT_FALSE(out.empty());
  leader_ = 2;
  deliver(1, out, {2, 3});
  EXPECT_EQ(of(3).vocabulary.stamp(), stamp);
  EXPECT_EQ(find(3, "late"), kNoSlot);
}

TEST_F(WordsOfADeadLeader, WhereSourcesStandIsToldAgainAndAskedForUnderGreaterNumbers) {
  StreamExchange& third = *of(3).exchange;
  of(1).exchange->gather_cursors(Deadline::after(std::chrono::seconds(0)));
  step(1, {3});
  ASSERT_TRUE(third.cursors_wanted());
  third.tell_cursors("at 7");
  step(3, {1});
  succeed();
  step(3, {2});
  step(2, {3});
  EXPECT_EQ(of(2).exchange->cursors(), (std::map<NodeId, std::string>{{3, "at 7"}}));
  EXPECT_FALSE(third.take_safe());
  of(2).exchange->gather_cursors(Deadline::after(std::chrono::seconds(0)));
  step(2, {3});
  EXPECT_TRUE(third.cursors_wanted()) << "the new leader's first save is no earlier one";
}

TEST_F(WordsOfADeadLeader, OneThatComesToLeadWhenAllHaveEndedSavesWhatItKnows) {
  admit("known", {2, 3});
  of(2).exchange->hold();
  const auto saved = StreamVocabulary::restore(words_of_test(), of(2).exchange->save_vocabulary());
  ASSERT_TRUE(saved.ok()) << saved.status().message();
  EXPECT_EQ(saved->find("known"), find(2, "known"));
  EXPECT_EQ(saved->weight(saved->find("known")), 2);
}

class StreamSuccession : public ::testing::TestWithParam<Admission>, protected StreamNodes {
 protected:
  // Reads, and stays until the model is saved, by itself if it has to lead.
  Status train(StreamMember& member, int lines) {
    STREAMVEC_RETURN_IF_ERROR(member.node->await_start().status());
    read(member, lines);
    STREAMVEC_RETURN_IF_ERROR(member.node->finish({}).status());
    if (!member.node->leads()) STREAMVEC_RETURN_IF_ERROR(member.node->await_saved());
    if (member.node->leads()) member.node->saved();
    return {};
  }
  void begin(size_t count) {
    start(count, GetParam(), 2.5, true);  // no thread of a node that lives stands still for as long
    for (auto& member : members) ASSERT_TRUE(member->node->await_start().ok());
  }
};

TEST_P(StreamSuccession, AnotherNodeHasTheWordsWhenTheLeaderIsKilledAndAdmitsNewOnes) {
  begin(3);
  std::thread dies([&] {
    read(*members[0], 150);
    kill(1);
  });
  std::vector<Status> statuses(2);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 2; ++i) threads.emplace_back([&, i] { statuses[i] = train(*members[i + 1], 1'500); });
  for (std::thread& thread : threads) thread.join();
  dies.join();
  for (const Status& status : statuses) ASSERT_TRUE(status.ok()) << status.message();
  expect_equal({2, 3});
  const StreamMember& second = *members[1];
  int late = 0;  // words that only one of them had, long after the first had gone
  for (int i = 70; i < 80; ++i)
    for (const char* of_one : {"n2", "n3"}) late += second.vocabulary.find(of_one + std::to_string(i)) != kNoSlot;
  EXPECT_GT(late, 0);
}

INSTANTIATE_TEST_SUITE_P(Schemes, StreamSuccession,
                         ::testing::Values(Admission::kBsp, Admission::kSsp, Admission::kAsync));

using InStepSuccession = StreamSuccession;
INSTANTIATE_TEST_SUITE_P(Bsp, InStepSuccession, ::testing::Values(Admission::kBsp));

TEST_P(InStepSuccession, TwoLeadersMayDieOneAfterTheOther) {
  begin(3);
  read_all(60);
  kill(1);
  ASSERT_TRUE(eventually("another leader", [&] { return notebook.leader() >= 2; }));
  const NodeId second = notebook.leader();
  ASSERT_TRUE(eventually("its words", [&] { return members[second - 1]->exchange->has_words(); }));
  read(*members[second - 1], 60, 60);
  kill(second);
  const NodeId last = 5 - second;
  read(*members[last - 1], 60, 200);
  EXPECT_TRUE(train(*members[last - 1], 0).ok());
  const StreamVocabulary& words = members[last - 1]->vocabulary;
  int late = 0;
  for (int i = 10; i < 18; ++i) late += words.find("n" + std::to_string(last) + std::to_string(i)) != kNoSlot;
  EXPECT_GT(late, 0);
}

TEST_P(InStepSuccession, NobodyEndsBeforeTheNextLeaderHasTheWordsThatOnlyAnotherHasHeardOf) {
  begin(3);
  network.cut(1, 2);
  members[2]->read({"fresh", "fresh"});
  const auto knows = [&](StreamMember& member) {
    const std::lock_guard lock(member.words_mutex);
    return member.vocabulary.find("fresh") != kNoSlot;
  };
  ASSERT_TRUE(eventually("a slot of the word that the third has read", [&] { return knows(*members[2]); }));
  ASSERT_FALSE(knows(*members[1]));
  std::vector<Status> statuses(2);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 2; ++i) threads.emplace_back([&, i] { statuses[i] = train(*members[i + 1], 0); });
  kill(1);
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : statuses) ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(knows(*members[1]));
  EXPECT_EQ(members[1]->vocabulary.stamp(), members[2]->vocabulary.stamp());
  EXPECT_TRUE(members[1]->exchange->has_words() || members[2]->exchange->has_words());
}

TEST_P(InStepSuccession, OneThatJoinsTheNextLeaderHasItsWordsAndRows) {
  begin(2);
  read_all(60);
  kill(1);
  ASSERT_TRUE(eventually("the words of the next leader", [&] { return members[1]->exchange->has_words(); }));
  join(3);
  std::vector<Status> statuses(2);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 2; ++i) threads.emplace_back([&, i] { statuses[i] = train(*members[i + 1], 300); });
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : statuses) ASSERT_TRUE(status.ok()) << status.message();
  expect_equal({2, 3});
}

TEST_P(InStepSuccession, OneWhoseTextHadEndedIsLeftWithTheWordsOfAll) {
  begin(3);
  std::vector<Status> statuses(2);
  std::vector<std::thread> threads;
  threads.emplace_back([&] { statuses[0] = train(*members[1], 40); });
  threads.emplace_back([&] { statuses[1] = train(*members[2], 1'500); });
  read(*members[0], 60);
  kill(1);
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : statuses) ASSERT_TRUE(status.ok()) << status.message();
  expect_equal({2, 3});
}

}  // namespace
}  // namespace streamvec
