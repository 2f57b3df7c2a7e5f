#include "streamvec/ingest/intake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "streamvec/ingest/intake_testing.h"
#include "streamvec/vocab/shared_vocabulary.h"

namespace streamvec {
namespace {

using namespace streamvec::testing;  // NOLINT: the sources of this folder's tests
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// In a cluster another node gives slots: words of a document have them when it has answered, not when they are mapped.
TEST(Intake, WordsThatGetSlotsWhileTheirDocumentIsMappedAreInItsChunks) {
  const auto script = std::make_shared<Script>();
  script->documents = 2;
  script->document = [](int64_t number) {
    Document document;
    document.id = std::to_string(number);
    for (int i = 0; i < (number == 0 ? 5'000 : 3'000); ++i)
      document.text += (number == 0 ? "long" : "short") + std::to_string(i % 2'500) + " ";
    return document;
  };
  SharedVocabulary leader(StreamVocabulary({.min_count = 2}), true);
  Rig* self = nullptr;
  int asked = 0;
  Rig rig(
      {{"a", script}}, Rig::fast(), {}, {.min_count = 2, .follows = true}, [] {},
      [&] {
        const auto lock = self->intake->lock_vocabulary();
        ++asked;
        std::vector<Slot> admitted;
        leader.receive(1, self->vocabulary.take_report());
        EXPECT_TRUE(self->vocabulary.follow(leader.take_changes(), admitted).ok());
      });
  self = &rig;
  rig.run_to_end();
  EXPECT_EQ(asked, 1) << "few words are not worth the time";
  EXPECT_EQ(rig.tokens_taken, 5'000u);
  EXPECT_EQ(rig.count("long7"), 2) << "found again, not counted again";
}

TEST(Intake, EveryDocumentOfEverySourceIsCountedAndReachesReplayOnce) {
  Rig rig({{"one", script_of(50, "a")}, {"two", script_of(70, "b")}});
  rig.run_to_end();
  expect_each_once(rig, "a", 50);
  expect_each_once(rig, "b", 70);
  EXPECT_EQ(rig.count("the"), 240);
  EXPECT_EQ(rig.tokens_taken, 120u * 6);
  EXPECT_EQ(rig.intake->totals().documents, 120);
  EXPECT_EQ(rig.intake->totals().tokens, 720);
  EXPECT_TRUE(rig.intake->over());
  EXPECT_TRUE(rig.intake->status().ok());
}

TEST(Intake, RowsAreAskedForBeforeTheChunkIsThere) {
  Rig rig({{"one", script_of(5, "a")}});
  rig.run_to_end();
  EXPECT_EQ(rig.admitted, 5u + 4);  // five names; in, the, news, end
}

TEST(Intake, ADocumentMappedInPartsGivesNoWordTheTextOfAnother) {
  const auto script = script_of(1, "a");
  script->document = [](int64_t) {
    Document document;
    for (int i = 0; i < 4'030; ++i) document.text += i < 1'030 ? "early " : "late ";
    return document;
  };
  int waits = 0;
  Rig rig({{"one", script}}, Rig::fast(), {}, {.min_count = 1, .vocab_max = 1}, [&] { ++waits; });
  rig.run_to_end();
  EXPECT_EQ(waits, 4);
  // The slot is the later word's once it has come more often, and so is the text from there on.
  EXPECT_EQ(rig.count("late"), 3'000);
  EXPECT_EQ(rig.tokens_taken, 3'000u - 1'030);
}

TEST(Intake, AFaultThatPassesCostsNothing) {
  const auto script = script_of(40, "a");
  script->faults = {{0, error(Code::kUnavailable, "away")}, {17, error(Code::kUnavailable, "away again")}};
  Rig rig({{"one", script}});
  rig.run_to_end();
  expect_each_once(rig, "a", 40);
  EXPECT_EQ(rig.intake->statistics()[0].errors, 2);
  EXPECT_THAT(rig.intake->notes(), ElementsAre(HasSubstr("away again")));
}

TEST(Intake, ASourceThatFailsForGoodIsLeftAndTheOthersGoOn) {
  const auto broken = script_of(40, "a");
  broken->faults = {{20, error(Code::kDataLoss, "torn at byte 7")}};
  Rig rig({{"broken", broken}, {"good", script_of(40, "b")}});
  rig.run_to_end();
  expect_each_once(rig, "a", 20);
  EXPECT_EQ(rig.count("a20"), 0);
  expect_each_once(rig, "b", 40);
  EXPECT_TRUE(rig.intake->status().ok());
  EXPECT_THAT(rig.intake->notes(), ElementsAre(HasSubstr("torn at byte 7")));
}

TEST(Intake, IsAnErrorOnlyWhenAllSourcesHaveFailed) {
  const auto one = script_of(4, "a"), two = script_of(4, "b");
  one->faults = {{0, error(Code::kNotFound, "no one")}};
  two->faults = {{2, error(Code::kNotFound, "no two")}};
  Rig rig({{"one", one}, {"two", two}});
  rig.run_to_end();
  EXPECT_THAT(rig.intake->status().message(), HasSubstr("no one"));
}

TEST(Intake, DeletedRecordsLeaveReplayAndAreNotCounted) {
  const auto script = script_of(12, "a");
  const auto plain = script->document;
  script->document = [plain](int64_t number) {
    Document document = plain(number % 10);
    document.deleted = number >= 10;  // the last two withdraw the first two
    if (document.deleted) document.text.clear();
    return document;
  };
  Rig rig({{"one", script}});
  ASSERT_TRUE(rig.intake->start().ok());  // nobody takes: all chunks stay in replay
  while (!rig.intake->over()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(rig.replay->size(), 8);
  EXPECT_EQ(rig.replay->statistics().erased, 2);
  EXPECT_EQ(rig.intake->statistics()[0].deletes, 2);
  EXPECT_EQ(rig.count("a0"), 1);
}

// Documents of a script as it is, with these numbers in this order; below 0 the one is withdrawn.
std::shared_ptr<Script> script_in_order(const std::vector<int64_t>& numbers) {
  const auto script = script_of(static_cast<int64_t>(numbers.size()), "a");
  script->document = [numbers, plain = script->document](int64_t at) {
    const int64_t number = numbers[static_cast<size_t>(at)];
    Document document = plain(std::abs(number));
    document.deleted = number < 0;
    if (document.deleted) document.text.clear();
    return document;
  };
  return script;
}

TEST(Intake, AReplayOnTheWayToOthersTellsThemOfDeletesInTheirPlace) {
  std::vector<const ReplayItem*> announced;
  Rig rig({{"one", script_in_order({1, 2, -1, 1, 3, -7, -2})}}, Rig::fast(), {}, {.min_count = 1}, {}, {},
          [&](const auto& item) { announced.push_back(item.get()); });
  const auto items = rig.read_to_end();
  std::vector<std::pair<uint64_t, bool>> came;
  std::vector<const ReplayItem*> withdraw;
  for (const auto& item : items) {
    came.emplace_back(item->record, item->withdraws());
    if (item->withdraws()) withdraw.push_back(item.get());
  }
  // What was deleted here left at once, and its delete follows: others may have had more of it.
  ASSERT_EQ(came.size(), 5u);
  const uint64_t first = came[0].first, third = came[2].first;
  EXPECT_EQ(came[1], std::pair(first, false));
  EXPECT_TRUE(came[0].second && came[3].second && came[4].second && !came[2].second);
  EXPECT_EQ((std::set<uint64_t>{first, third, came[3].first, came[4].first}.size()), 4u);
  EXPECT_EQ(announced, withdraw);
}

TEST(Intake, RecordsOfTwoNodesAreOnlyTheSameWhereTheyShareTheSource) {
  const auto record = [](const std::string& node, const std::string& source, bool shared) {
    const auto script = script_of(1, "a");
    script->shared = shared;
    Intake::Options options = Rig::fast();
    options.node = node;
    return Rig({{source, script}}, options).read_to_end().at(0)->record;
  };
  EXPECT_EQ(record("1", "news", false), record("1", "news", false));
  EXPECT_NE(record("1", "news", false), record("2", "news", false));
  EXPECT_NE(record("", "news", false), record("2", "news", false));
  EXPECT_EQ(record("1", "news", true), record("2", "news", true));
  EXPECT_NE(record("1", "news", true), record("1", "others", true));
}

TEST(Intake, DocumentsLeftOutAreCountedAsSuchAndPassed) {
  const auto script = script_of(6, "a");
  script->document = [](int64_t number) {
    Document document;
    document.text = number % 2 == 0
                        ? "the committee will meet again on thursday to vote on the plan for the new library and its "
                          "large garden by the river"
                        : "der ausschuss trifft sich am donnerstag wieder um über den plan für die neue bücherei und "
                          "ihren großen garten am fluss abzustimmen";
    return document;
  };
  Rig rig({{"one", script}}, Rig::fast(), {.drop_duplicates = true, .languages = {"en"}});
  rig.run_to_end();
  const Intake::Totals totals = rig.intake->totals();
  EXPECT_EQ(totals.documents, 6);
  EXPECT_EQ(totals.other_languages, 3);
  EXPECT_EQ(totals.duplicates, 2);
  EXPECT_EQ(rig.count("committee"), 1);
  EXPECT_EQ(rig.count("ausschuss"), 0);
}

// Another machine that answers when it likes: who asks it stands still at the gate until it is opened.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
    --waiting_;
  }
  void await_somebody() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ > 0; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool open_ = false;
};

TEST(Intake, ASourceThatDoesNotAnswerHoldsUpNoCheckpointAndNoStop) {
  const auto silent = script_of(5, "a"), other = script_of(1'000'000, "b");
  Gate reading;
  silent->remote = true;
  silent->before_read = [&] { reading.pass(); };
  Rig rig({{"silent", silent}, {"other", other}});
  rig.start();
  reading.await_somebody();
  while (rig.intake->totals().documents < 20) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  rig.intake->pause();
  const auto state = rig.intake->state();
  EXPECT_EQ(state["sources"][0]["cursor"], "");
  EXPECT_GE(state["sources"][1]["documents"], 20);
  rig.intake->commit();
  rig.intake->resume();
  rig.intake->stop();
  EXPECT_EQ(silent->reads, 0) << "it stands there to this day";
  reading.open();
  rig.intake->join();
  EXPECT_EQ(silent->reads, 1);
  EXPECT_EQ(rig.intake->statistics()[0].documents, 0) << "what came after the stop is for the next run";
}

TEST(Intake, WhatARemoteSourceReadsDuringACheckpointIsTakenInAfterIt) {
  const auto late = script_of(5, "a");
  Gate reading;
  late->remote = true;
  late->before_read = [&] { reading.pass(); };
  Rig rig({{"late", late}});
  rig.start();
  reading.await_somebody();
  rig.intake->pause();
  reading.open();
  while (late->reads == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(rig.intake->totals().documents, 0);
  rig.intake->resume();
  while (!rig.intake->over()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(rig.intake->totals().documents, 5);
  expect_each_once(rig, "a", 5);
}

TEST(Intake, ABrokerThatTakesNoCommitHoldsUpNoCheckpointAndIsToldInTheEnd) {
  const auto script = script_of(1'000'000, "a");
  Gate committing;
  script->remote = true;
  script->before_commit = [&] { committing.pass(); };
  Rig rig({{"one", script}});
  rig.start();
  while (rig.intake->totals().documents < 20) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  rig.intake->pause();
  rig.intake->state();
  rig.intake->commit();
  rig.intake->resume();
  committing.await_somebody();
  rig.intake->stop();
  const auto last = rig.intake->state();
  rig.intake->commit();
  committing.open();
  rig.intake->join();
  EXPECT_EQ(script->committed, std::stoll(last["sources"][0]["cursor"].get<std::string>().substr(6)));
  EXPECT_TRUE(rig.intake->notes().empty());
}

TEST(Intake, StopsAtOnceWhileASourceIsBeingWaitedFor) {
  const auto script = script_of(1, "a");
  for (int64_t i = 0; i < 100; ++i) script->faults[0] = error(Code::kUnavailable, "away");
  Intake::Options options = Rig::fast();
  options.retry_first = options.retry_max = std::chrono::hours(1);
  Rig rig({{"one", script}}, options);
  rig.start();
  while (rig.intake->statistics()[0].errors == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  rig.intake->pause();  // and it can be paused
  rig.intake->resume();
  rig.intake->stop();
  EXPECT_FALSE(rig.intake->over());
}

}  // namespace
}  // namespace streamvec
