// What an intake saves of its sources' places, and how they find them again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "streamvec/core/json.h"
#include "streamvec/core/random.h"
#include "streamvec/ingest/intake.h"
#include "streamvec/ingest/intake_testing.h"

namespace streamvec {
namespace {

using namespace streamvec::testing;  // NOLINT: the sources of this folder's tests

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

TEST(Intake, ASharedSourceReadsNothingBeforeItsShareAndGoesOnWhereThatSays) {
  const auto script = script_of(1'000, "a"), own = script_of(10, "b");
  script->shared = script->remote = true;
  Intake::Options options = Rig::fast();
  options.divided = true;
  Rig rig({{"one", script}, {"two", own}}, options);
  rig.start();
  while (rig.intake->totals().documents < 10) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(script->reads, 0);
  rig.intake->share("one", "saved:990", {1, {1, 2}});
  while (!rig.intake->over()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  rig.intake->stop();
  EXPECT_EQ(rig.count("a989"), 0);
  for (int64_t i = 990; i < 1'000; ++i) EXPECT_EQ(rig.count("a" + std::to_string(i)), 1) << i;
}

TEST(Intake, WhatIsWithheldStandsWhereItsStateSaysUntilItIsSharedAnew) {
  const auto script = script_of(1'000'000, "a");
  script->shared = script->remote = true;
  Rig rig({{"one", script}});
  rig.start();
  for (int64_t more = 20; more <= 60; more += 20) {
    while (rig.intake->totals().documents < more) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    rig.intake->pause();
    rig.intake->withhold_shared();
    const auto state = rig.intake->state();
    rig.intake->resume();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // what was read meanwhile is not taken in
    const std::string cursor = state["sources"][0]["cursor"];
    const int64_t taken = std::stoll(cursor.substr(cursor.rfind(':') + 1));
    EXPECT_EQ(rig.intake->totals().documents, taken);
    EXPECT_TRUE(state["sources"][0]["shared"]);
    rig.intake->share("one", std::to_string(taken), {});
  }
  rig.intake->stop();
  expect_each_once(rig, "a", rig.intake->totals().documents);
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
    EXPECT_EQ(
        ::testing::Matches(::testing::ElementsAre(::testing::HasSubstr("could not be told")))(rig.intake->notes()),
        committed == 0);
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

}  // namespace
}  // namespace streamvec
