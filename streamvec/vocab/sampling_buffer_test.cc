#include "streamvec/vocab/sampling_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "streamvec/vocab/stream_vocabulary_testing.h"

namespace streamvec {
namespace {

using Words = std::vector<std::string_view>;

// `times` occurrences of each of `words`.
void add(StreamVocabulary& vocabulary, const Words& words, int times, double t = 0) {
  for (int i = 0; i < times; ++i) map(vocabulary, words, t);
}

bool renew(SamplingTablesBuffer& buffer, const StreamVocabulary& vocabulary) {
  const bool due = buffer.stage(vocabulary);
  if (due) buffer.build();
  return due;
}

TEST(ShareChange, IsHalfTheSumOfDifferences) {
  StreamVocabulary vocabulary({.min_count = 1});
  add(vocabulary, {"a", "b"}, 1);
  add(vocabulary, {"a"}, 2);
  const auto from = [&](std::vector<double> counts, double sum) { return vocabulary.share_change(counts, sum); };
  EXPECT_DOUBLE_EQ(from({1, 1}, 2), 0.25);
  EXPECT_DOUBLE_EQ(from({30, 10}, 40), 0);
  EXPECT_DOUBLE_EQ(from({5}, 5), 0.25) << "a word that is new";
  for (int i = 0; i < 9; ++i) add(vocabulary, {("w" + std::to_string(i)).c_str()}, 4);
  EXPECT_DOUBLE_EQ(from({3, 1}, 4), 0.9);
  EXPECT_DOUBLE_EQ(from({3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 36}, 40), 0.8);
}

TEST(SamplingTablesBuffer, HasTablesOnceThereIsAWord) {
  StreamVocabulary vocabulary({.min_count = 1});
  SamplingTablesBuffer buffer({});
  EXPECT_FALSE(renew(buffer, vocabulary));
  EXPECT_EQ(buffer.tables(), nullptr);
  add(vocabulary, {"a"}, 1);
  EXPECT_TRUE(buffer.stage(vocabulary));
  EXPECT_EQ(buffer.tables(), nullptr) << "staged is not built";
  buffer.build();
  EXPECT_NE(buffer.tables(), nullptr);
}

TEST(SamplingTablesBuffer, RenewsAtOnePercentOfChangeAndNotBefore) {
  StreamVocabulary vocabulary({.min_count = 1});
  SamplingTablesBuffer buffer({});
  add(vocabulary, {"a", "b"}, 5'000);
  ASSERT_TRUE(renew(buffer, vocabulary));
  const auto first = buffer.tables();
  add(vocabulary, {"a"}, 150);  // shares moved by 75 / 10,000
  EXPECT_FALSE(renew(buffer, vocabulary));
  EXPECT_EQ(buffer.tables(), first);
  add(vocabulary, {"a"}, 80);
  EXPECT_FALSE(renew(buffer, vocabulary)) << "not looked at before another percent has come";
  add(vocabulary, {"a"}, 80);
  EXPECT_TRUE(renew(buffer, vocabulary));
  EXPECT_NE(buffer.tables(), first);
}

TEST(SamplingTablesBuffer, MoreTextOfTheSameKindIsNoChange) {
  StreamVocabulary vocabulary({.min_count = 1, .half_life = 1'000});
  SamplingTablesBuffer buffer({});
  add(vocabulary, {"a", "b", "b"}, 1'000);
  ASSERT_TRUE(renew(buffer, vocabulary));
  for (int t = 1; t < 50; ++t) {
    add(vocabulary, {"a", "b", "b"}, 100, t * 100);
    EXPECT_FALSE(renew(buffer, vocabulary));
  }
}

TEST(SamplingTablesBuffer, WithPacesMoreTextOfTheSameKindIsAChangeOnceItIsAQuarterMore) {
  StreamVocabulary vocabulary({.min_count = 1});
  SamplingTablesBuffer buffer({.pace = {.pace_max = 8}});
  add(vocabulary, {"a", "b"}, 100);
  ASSERT_TRUE(renew(buffer, vocabulary));
  EXPECT_NEAR(buffer.tables()->pace.input(0), 3.162, 1e-3);
  add(vocabulary, {"a", "b"}, 20);
  EXPECT_FALSE(renew(buffer, vocabulary));
  add(vocabulary, {"a", "b"}, 10);
  EXPECT_TRUE(renew(buffer, vocabulary));
  EXPECT_NEAR(buffer.tables()->pace.input(0), 2.774, 1e-3);
}

TEST(SamplingTablesBuffer, DecayedCountsDrawWhatIsSaidNow) {
  StreamVocabulary vocabulary({.min_count = 1, .vocab_max = 10, .half_life = 10});
  SamplingTablesBuffer buffer({.sample = 1e-3});
  add(vocabulary, {"old"}, 1'000, 0);
  add(vocabulary, {"new"}, 1'000, 200);
  ASSERT_TRUE(renew(buffer, vocabulary));
  const auto tables = buffer.tables();
  Random random(1);
  std::vector<Slot> drawn(1'000);
  tables->negatives.sample(random, drawn);
  EXPECT_GE(std::count(drawn.begin(), drawn.end(), vocabulary.find("new")), 999);
  EXPECT_LT(tables->subsampling.probability(vocabulary.find("new")), 0.05);
  EXPECT_EQ(tables->subsampling.probability(vocabulary.find("old")), 1);
}

TEST(SamplingTablesBuffer, OlderTablesServeTextWithNewerSlots) {
  StreamVocabulary vocabulary({.min_count = 1});
  SamplingTablesBuffer buffer({});
  add(vocabulary, {"a", "b"}, 10'000);
  ASSERT_TRUE(renew(buffer, vocabulary));
  const Slot late = map(vocabulary, {"late"})[0];
  EXPECT_TRUE(buffer.tables()->subsampling.keep(late, 0xffff'ffffU));
}

TEST(SamplingTablesBuffer, SlotsThatChangedHandsMakeTablesNew) {
  StreamVocabulary vocabulary({.min_count = 1, .vocab_max = 2, .half_life = 1});
  SamplingTablesBuffer buffer({});
  add(vocabulary, {"a", "b"}, 100, 0);
  ASSERT_TRUE(renew(buffer, vocabulary));
  add(vocabulary, {"c"}, 300, 0);
  ASSERT_NE(vocabulary.find("c"), kNoSlot);
  EXPECT_TRUE(renew(buffer, vocabulary));
}

TEST(SamplingTablesBuffer, WhatIsRestoredDrawsAndRenewsAsBefore) {
  StreamVocabulary vocabulary({.min_count = 1});
  SamplingTablesBuffer buffer({}), restored({});
  add(vocabulary, {"a", "b", "b", "c"}, 1'000);
  ASSERT_TRUE(renew(buffer, vocabulary));
  add(vocabulary, {"a"}, 30);
  ASSERT_FALSE(renew(buffer, vocabulary));
  ASSERT_TRUE(restored.restore(buffer.save()).ok());
  Random random_a(1), random_b(1);
  std::vector<Slot> drawn_a(500), drawn_b(500);
  buffer.tables()->negatives.sample(random_a, drawn_a);
  restored.tables()->negatives.sample(random_b, drawn_b);
  EXPECT_EQ(drawn_a, drawn_b);
  for (int i = 0; i < 20; ++i) {
    add(vocabulary, {"a"}, 10);
    ASSERT_EQ(renew(buffer, vocabulary), renew(restored, vocabulary));
  }
  EXPECT_EQ(buffer.save(), restored.save());
}

TEST(SamplingTablesBuffer, DamagedBytesAreDataLossAndChangeNothing) {
  StreamVocabulary vocabulary({.min_count = 1});
  SamplingTablesBuffer buffer({});
  add(vocabulary, {"a", "b"}, 10);
  ASSERT_TRUE(renew(buffer, vocabulary));
  const std::string saved = buffer.save();
  for (size_t size = 0; size < saved.size(); ++size)
    ASSERT_EQ(buffer.restore(saved.substr(0, size)).code(), Code::kDataLoss);
  EXPECT_EQ(buffer.restore(saved + "x").code(), Code::kDataLoss);
  EXPECT_EQ(buffer.save(), saved);
}

}  // namespace
}  // namespace streamvec
