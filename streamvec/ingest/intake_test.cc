#include "streamvec/ingest/intake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <nlohmann/json.hpp>

#include "streamvec/core/json.h"
#include "streamvec/core/random.h"
#include "streamvec/vocab/shared_vocabulary.h"

namespace streamvec {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Hands out what its script says: documents, faults that pass, one that does not.
struct Script {
  int64_t documents = 0;
  std::map<int64_t, Status> faults;  // before document number ...; each once
  std::function<Document(int64_t)> document;
  std::atomic<int64_t> committed{0}, reads{0}, commit_faults{0};
  bool remote = false;
  std::function<void()> before_read = [] {}, before_commit = [] {};
};

class ScriptedSource : public Source {
 public:
  ScriptedSource(std::string name, std::shared_ptr<Script> script)
      : name_(std::move(name)), script_(std::move(script)) {}

  Result<int64_t> read(int64_t count_max, Deadline, std::vector<Document>& out) override {
    script_->before_read();
    ++script_->reads;
    int64_t count = 0;
    for (; count < count_max && next_ < script_->documents; ++count, ++next_) {
      if (const auto fault = script_->faults.find(next_); fault != script_->faults.end()) {
        const Status status = fault->second;
        if (status.code() == Code::kUnavailable) script_->faults.erase(fault);
        return status;
      }
      out.push_back(script_->document(next_));
      out.back().cursor = std::to_string(next_ + 1);
    }
    return count;
  }
  Status seek(const std::string& cursor) override {
    next_ = cursor.empty() ? 0 : std::stoll(cursor.substr(cursor.find(':') + 1));
    return {};
  }
  std::string saved(const std::string& cursor) const override { return "saved:" + cursor; }
  Status commit(const std::string& cursor) override {
    script_->before_commit();
    if (script_->commit_faults-- > 0) return error(Code::kUnavailable, "nobody takes it");
    script_->committed = std::stoll(cursor);
    return {};
  }
  Capabilities capabilities() const override { return {.remote = script_->remote}; }
  int64_t bytes_total() const override { return -1; }
  int64_t bytes_read() const override { return 0; }
  std::string name() const override { return name_; }

 private:
  std::string name_;
  std::shared_ptr<Script> script_;
  int64_t next_ = 0;
};

using Scripts = std::vector<std::pair<std::string, std::shared_ptr<Script>>>;  // by the sources' names

std::shared_ptr<Script> script_of(int64_t documents, const std::string& prefix) {
  auto script = std::make_shared<Script>();
  script->documents = documents;
  script->document = [prefix](int64_t number) {
    Document document;
    document.id = prefix + std::to_string(number);
    document.text = document.id + " in the news\nthe end";
    return document;
  };
  return script;
}

// An intake with all it fills, and a thread that takes from replay.
class Rig {
 public:
  explicit Rig(const Scripts& scripts, Intake::Options options = fast(), const DocumentFilter::Options& filter = {},
               const StreamVocabulary::Options& words = {.min_count = 1}, const std::function<void()>& await_words = {},
               const std::function<void()>& await_slots = {})
      : vocabulary(words) {
    ReplayOptions replay_options;
    replay_options.selector = ReplaySelector::kInOrderOnce;
    replay_options.limiter.samples_per_insert = 1;
    replay_options.limiter.size_min = 1;
    replay_options.limiter.inserts_ahead_max = 64;
    replay = std::move(ReplayTable::create(replay_options)).value();
    std::vector<std::unique_ptr<Source>> sources;
    for (const auto& [name, script] : scripts) sources.push_back(std::make_unique<ScriptedSource>(name, script));
    intake = std::make_unique<Intake>(
        std::move(sources), std::move(DocumentFilter::create(filter)).value(), options,
        Intake::Sinks{vocabulary, tables, *replay, [this](std::span<const Slot> slots) { admitted += slots.size(); },
                      await_words, await_slots});
  }
  ~Rig() {
    intake->stop();
    replay->close();
    if (taker_.joinable()) taker_.join();
  }

  static Intake::Options fast() {
    Intake::Options options;
    options.retry_first = std::chrono::milliseconds(1);
    options.retry_max = std::chrono::milliseconds(4);
    return options;
  }

  void start() {
    taker_ = std::thread([this] {
      std::vector<ReplaySample> samples;
      while (true) {
        samples.clear();
        const auto taken = replay->sample(8, Deadline::after(std::chrono::seconds(10)), samples);
        if (!taken.ok() || *taken == 0) break;
        for (const ReplaySample& sample : samples) tokens_taken += sample.item->chunk.slots.size();
      }
    });
    ASSERT_TRUE(intake->start().ok());
  }
  void run_to_end() {
    start();
    taker_.join();
    intake->stop();
  }
  int64_t count(const std::string& word) const {
    const Vocabulary words = vocabulary.to_vocabulary();
    const Slot slot = words.find(word);
    return slot == kNoSlot ? 0 : words.count(slot);
  }

  StreamVocabulary vocabulary;
  SamplingTablesBuffer tables{{}};
  std::unique_ptr<ReplayTable> replay;
  std::unique_ptr<Intake> intake;
  std::atomic<size_t> admitted{0}, tokens_taken{0};

 private:
  std::thread taker_;
};

void expect_each_once(const Rig& rig, const std::string& prefix, int64_t documents) {
  for (int64_t i = 0; i < documents; ++i) EXPECT_EQ(rig.count(prefix + std::to_string(i)), 1) << prefix << i;
}

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
  EXPECT_THAT(rig.intake->notes(), testing::ElementsAre(HasSubstr("away again")));
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
  EXPECT_THAT(rig.intake->notes(), testing::ElementsAre(HasSubstr("torn at byte 7")));
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

TEST(Intake, WhatIsCommittedIsWhatWasInTheState) {
  const auto script = script_of(1'000'000, "a");
  Rig rig({{"one", script}});
  rig.start();
  while (rig.intake->totals().documents < 20) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  rig.intake->pause();
  const auto state = rig.intake->state();
  EXPECT_EQ(script->committed, 0);
  rig.intake->commit();
  rig.intake->resume();
  const int64_t saved = std::stoll(state["sources"][0]["cursor"].get<std::string>().substr(6));
  while (script->committed == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(script->committed, saved);
}

TEST(Intake, ASourceIsToldOfTheCheckpointThatEndsTheRun) {
  const auto endless = script_of(1'000'000, "a"), ended = script_of(3, "b");
  Rig rig({{"one that ends", ended}, {"two", endless}});
  rig.start();
  while (rig.intake->totals().documents < 20 || rig.intake->statistics()[0].state != "ended")
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  rig.intake->stop();
  const auto state = rig.intake->state();
  rig.intake->commit();
  EXPECT_EQ(endless->committed, std::stoll(state["sources"][1]["cursor"].get<std::string>().substr(6)));
  EXPECT_EQ(ended->committed, 3);
}

TEST(Intake, WhatASourceCouldNotBeToldItIsToldAfterTheNextCheckpoint) {
  const auto script = script_of(3, "a");
  script->commit_faults = 1;
  Rig rig({{"one", script}});
  rig.start();
  while (!rig.intake->over()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  rig.intake->stop();
  for (const int64_t committed : {0, 3}) {
    rig.intake->state();
    rig.intake->commit();
    EXPECT_EQ(script->committed, committed);
    EXPECT_EQ(testing::Matches(ElementsAre(HasSubstr("could not be told")))(rig.intake->notes()), committed == 0);
  }
  EXPECT_EQ(rig.intake->statistics()[0].state, "ended");
  EXPECT_EQ(rig.intake->statistics()[0].errors, 1);
}

// The whole promise: stop anywhere without warning, go on from the last state.
TEST(Intake, NothingIsLostOrCountedTwiceHoweverOftenItIsCutOff) {
  constexpr int64_t kDocuments = 3'000;
  Random random(5);
  nlohmann::json state;
  std::string vocabulary;
  const auto scripts = [] {
    return Scripts{{"one", script_of(kDocuments, "a")}, {"two", script_of(kDocuments / 2, "b")}};
  };
  for (int cut = 0; cut < 30; ++cut) {
    Rig rig(scripts());
    if (!state.is_null()) {
      rig.vocabulary = std::move(StreamVocabulary::restore({.min_count = 1}, vocabulary)).value();
      ASSERT_TRUE(rig.intake->restore(state).ok());
    }
    const bool last = cut == 29;
    if (last) {
      rig.run_to_end();
      expect_each_once(rig, "a", kDocuments);
      expect_each_once(rig, "b", kDocuments / 2);
      EXPECT_EQ(rig.intake->totals().documents, kDocuments * 3 / 2);
      break;
    }
    rig.start();
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(1500)));
    rig.intake->pause();
    state = rig.intake->state();
    vocabulary = rig.vocabulary.save();
    rig.intake->resume();
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(1500)));  // what comes now is lost with it
  }
}

TEST(Intake, SourcesOfOneNameGoOnEachFromItsOwnPlace) {
  const auto a = script_of(5, "a"), b = script_of(9, "b");
  const auto rig_of = [&] {
    Scripts scripts = {{"nats://***@h/s", a}, {"nats://***@h/s", b}};
    return std::make_unique<Rig>(scripts);
  };
  const auto first = rig_of();
  first->run_to_end();
  nlohmann::json state = first->intake->state();
  state["sources"][1]["name"] = "nats://token@h/s";  // as it was once written
  const auto second = rig_of();
  ASSERT_TRUE(second->intake->restore(state).ok());
  second->run_to_end();
  EXPECT_EQ(second->intake->totals().documents, 14) << "nothing more was read";
  EXPECT_EQ(second->intake->state()["sources"], first->intake->state()["sources"]);
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

TEST(Intake, ThePlacesOfSourcesThatAreNotReadNowAreKept) {
  Intake::Options options = Rig::fast();
  options.keeps_others = true;
  Rig first({{"one", script_of(5, "a")}}, options);
  first.run_to_end();
  Rig between({{"two", script_of(3, "b")}}, options);
  ASSERT_TRUE(between.intake->restore_places(first.intake->state()).ok());
  between.run_to_end();
  Rig again({{"one", script_of(9, "a")}}, options);
  ASSERT_TRUE(again.intake->restore(between.intake->state()).ok());
  again.run_to_end();
  EXPECT_EQ(again.intake->statistics()[0].documents, 9);
  EXPECT_EQ(again.count("a4"), 0) << "read by the first";
  EXPECT_EQ(again.count("a5"), 1);
  EXPECT_EQ(again.intake->state()["sources"].size(), 2u);
}

TEST(Intake, ANameThatIsNoUtf8FindsItsPlaceAgain) {
  const auto rig_of = [] { return std::make_unique<Rig>(Scripts{{"caf\xe9", script_of(5, "a")}}); };
  const auto first = rig_of();
  first->run_to_end();
  const auto second = rig_of();
  ASSERT_TRUE(second->intake->restore(read_back(first->intake->state())).ok());
  second->run_to_end();
  EXPECT_EQ(second->tokens_taken, 0u);
}

TEST(Intake, AStateThatIsNoneIsRefused) {
  Rig rig({{"one", script_of(1, "a")}});
  EXPECT_EQ(rig.intake->restore({{"sources", 3}}).code(), Code::kDataLoss);
  EXPECT_EQ(rig.intake->restore(nlohmann::json::object()).code(), Code::kDataLoss);
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
