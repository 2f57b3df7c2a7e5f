#include "streamvec/cluster/met_counts.h"

#include <gtest/gtest.h>

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "streamvec/model/parameters.h"

namespace streamvec {
namespace {

using Counts = std::vector<std::pair<Slot, int64_t>>;
const std::vector<int64_t> kNone(4, 0);

class MetCountsTest : public ::testing::Test {
 protected:
  MetCountsTest() : hybrid_(std::move(Hybrid::make({.dim = 4, .words_max = 3, .bag = {.bucket_bits = 8}})).value()) {
    EXPECT_TRUE(hybrid_->only_count().ok());
  }
  void train(std::vector<Slot> slots) {
    Chunk chunk;
    chunk.slots = std::move(slots);
    hybrid_->learn(chunk, none_);
  }
  std::vector<int64_t> met() const { return {hybrid_->met(0), hybrid_->met(1), hybrid_->met(2)}; }

  std::unique_ptr<Hybrid> hybrid_;
  Parameters none_;
};

TEST_F(MetCountsTest, TellsWhatWasTrainedOnSinceItWasToldLast) {
  train({0, 0});  // of the checkpoint that all have read
  MetCounts counts(hybrid_.get());
  train({0, 2, 2});
  EXPECT_EQ(counts.take(1, 3), (Counts{{0, 1}, {2, 2}}));
  EXPECT_EQ(counts.take(2, 3), Counts());
  train({2});
  hybrid_->set_word(2, "other");
  counts.begin(2);
  train({2, 2, 1});
  EXPECT_EQ(counts.take(3, 3), (Counts{{1, 1}, {2, 2}}));
}

TEST_F(MetCountsTest, IsDueATenthOfASecondAfterTheLastIfSomethingWasTrainedOn) {
  MetCounts counts(hybrid_.get());
  EXPECT_FALSE(counts.is_due(1));
  train({0});
  EXPECT_TRUE(counts.is_due(1));
  counts.take(1, 3);
  train({0});
  EXPECT_FALSE(counts.is_due(1.05));
  EXPECT_TRUE(counts.is_due(1.2));
  EXPECT_FALSE(MetCounts(nullptr).is_due(9));
}

TEST_F(MetCountsTest, WhatTheLeaderKnowsAndWhatItWasNotToldYetAddUp) {
  MetCounts counts(hybrid_.get());
  train({0, 0, 1});
  counts.take(1, 3);
  train({0});
  counts.told(std::vector<uint32_t>{12, 1, 5}, kNone);
  EXPECT_EQ(met(), (std::vector<int64_t>{13, 1, 5}));
  EXPECT_EQ(counts.take(2, 3), (Counts{{0, 1}})) << "what others have trained on is not its own to tell";
  counts.told(std::vector<uint32_t>{1, 0, 0, 9}, kNone);  // of a leader that knows less
  EXPECT_EQ(met(), (std::vector<int64_t>{13, 1, 5}));
}

TEST_F(MetCountsTest, TheLeaderAddsWhatWasTrainedOnInSlotsThatHaveKeptTheirWords) {
  StreamVocabulary::Options options;
  options.min_count = 2;
  options.vocab_max = 1;
  options.half_life = 4;
  StreamVocabulary words(options);
  const std::vector<std::string_view> first(2, "first"), second(9, "second");
  std::vector<Slot> slots(9), admitted;
  words.map(first, 1, std::span(slots).first(2), admitted);
  VocabularyReport report;
  report.stamp = words.stamp();
  report.met = {{0, 7}, {2, 1}};  // the latter is no slot at all
  MetCounts counts(hybrid_.get());
  counts.add(report, words);
  EXPECT_EQ(met(), (std::vector<int64_t>{7, 0, 0}));
  EXPECT_EQ(counts.all(1, {}), std::vector<uint32_t>{7});
  words.map(second, 9, slots, admitted);
  ASSERT_EQ(words.find("second"), 0);
  counts.add(report, words);
  EXPECT_EQ(met(), (std::vector<int64_t>{7, 0, 0}));
  VocabularyChanges changes;
  changes.changes = {{0, words.born(0), 9, "second"}};
  EXPECT_EQ(counts.all(1, changes), std::vector<uint32_t>{0}) << "of the word that it has from now on";
}

}  // namespace
}  // namespace streamvec
