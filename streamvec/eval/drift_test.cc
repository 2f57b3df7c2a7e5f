#include "streamvec/eval/drift.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "streamvec/eval/test_text.h"

namespace streamvec {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr int32_t kTopics = 12, kWordsOfTopic = 50, kTopicDim = 24;

// A language of topics: a word's vector is its topic's, its own part, and noise that falls with its count, as sampling
// makes it. `seed` is the sample; two snapshots of different seeds differ by chance alone.
struct Language {
  std::vector<int32_t> topic;
  std::vector<int64_t> count;

  Language() {
    for (int32_t i = 0; i < kTopics * kWordsOfTopic; ++i) {
      topic.push_back(i % kTopics);
      count.push_back(20'000 / (1 + i) + 45);
    }
  }
  static std::string name(int32_t word) {
    return std::string(1, static_cast<char>('a' + word % kTopics)) + std::to_string(word);
  }
  Snapshot sample(uint64_t seed) const {
    const Matrix centres = random_matrix(kTopics, kTopicDim, 100, 2);
    const Matrix own = random_matrix(static_cast<int64_t>(topic.size()), kTopicDim, 101);
    const Matrix noise = random_matrix(static_cast<int64_t>(topic.size()), kTopicDim, seed, 8);
    Snapshot snapshot;
    snapshot.input = Matrix::make(static_cast<int64_t>(topic.size()), kTopicDim).value();
    for (size_t i = 0; i < topic.size(); ++i) {
      const auto row = static_cast<int64_t>(i);
      snapshot.vocabulary.add(name(static_cast<int32_t>(i)), count[i]);
      const float scale = 1 / std::sqrt(static_cast<float>(count[i]));
      for (int64_t j = 0; j < kTopicDim; ++j)  // columns in another order each time: a rotation
        snapshot.input.row(row)[(j + static_cast<int64_t>(seed)) % kTopicDim] =
            centres.row(topic[i])[j] + own.row(row)[j] + scale * noise.row(row)[j];
    }
    return snapshot;
  }
};

// A language at one moment, sampled once as a whole and once for each half. Rotated by their seeds.
struct Moment {
  Snapshot whole, a, b;

  Moment(const Language& language, uint64_t seed)
      : whole(language.sample(seed)), a(language.sample(seed + 1)), b(language.sample(seed + 2)) {}
  StreamState state() const { return {whole, &a, &b}; }
};

std::vector<std::string> alerted(const DriftReport& report) {
  std::vector<std::string> words;
  for (const WordDrift& word : report.moved)
    if (word.alert) words.push_back(word.word);
  return words;
}

TEST(Drift, AWordThatMovedIsFoundWithItsNeighboursThenAndNow) {
  Language language;
  const Moment then(language, 1);
  language.topic[150] = 1;  // g150 goes to the words with b
  const Moment now(language, 4);
  const DriftReport report = find_drift(then.state(), now.state()).value();
  EXPECT_TRUE(report.calibrated);
  EXPECT_EQ(report.words, kTopics * kWordsOfTopic);
  EXPECT_EQ(report.alerts, 1);
  EXPECT_THAT(alerted(report), ElementsAre("g150"));
  const WordDrift& word = report.moved[0];
  EXPECT_THAT(word.neighbours_old, AllOf(testing::SizeIs(10), Each(StartsWith("g"))));
  EXPECT_THAT(word.neighbours_new, AllOf(testing::SizeIs(10), Each(StartsWith("b"))));
  EXPECT_EQ(word.overlap, 0);
  EXPECT_LT(word.cosine, 0.6);
  EXPECT_LT(word.p, 1e-4);
  EXPECT_EQ(word.count_old, language.count[150]);
  EXPECT_GT(word.score, 2 * report.moved[1].score);
}

TEST(Drift, WithoutHalvesTheChangeItselfIsJudgedAndTheReportSaysSo) {
  Language language;
  const Moment then(language, 1);
  language.topic[150] = 1;
  const Snapshot now = language.sample(2);
  const DriftReport report = find_drift(then.state(), {now}).value();
  EXPECT_FALSE(report.calibrated);
  EXPECT_EQ(report.moved[0].word, "g150");
  EXPECT_TRUE(report.moved[0].alert);
  EXPECT_LE(report.alerts, 3);
}

TEST(Drift, ChanceAloneRaisesHardlyAnAlert) {
  const Language language;
  int64_t alerts = 0;
  for (uint64_t seed = 10; seed < 70; seed += 6)
    alerts += find_drift(Moment(language, seed).state(), Moment(language, seed + 3).state()).value().alerts;
  EXPECT_LE(alerts, 2);  // in ten comparisons of 600 words
}

TEST(Drift, ManyWordsThatMovedAreFoundAndMostAlertsAreRight) {
  Language before, after;
  std::vector<std::string> planted;
  for (int32_t word = 100; word < 400; word += 15) {
    after.topic[static_cast<size_t>(word)] = (word + 5) % kTopics;
    planted.push_back(Language::name(word));
  }
  int64_t found = 0, right = 0;
  for (uint64_t seed = 10; seed < 70; seed += 6)
    for (const std::string& word :
         alerted(find_drift(Moment(before, seed).state(), Moment(after, seed + 3).state()).value())) {
      ++found;
      right += std::count(planted.begin(), planted.end(), word);
    }
  RecordProperty("found", static_cast<int>(found));
  RecordProperty("right", static_cast<int>(right));
  EXPECT_GE(right, 180);                 // of 200
  EXPECT_LE(found - right, found / 10);  // 5% are asked for; 60 comparisons had 6.6%
}

TEST(Drift, WhatOnlyTheWholeSawAndNoHalfIsChance) {
  Language language;
  const Moment then(language, 1);
  Moment now(language, 4);
  language.topic[150] = 1;
  now.whole = language.sample(4);  // its neighbours are others, but neither half knows of it
  EXPECT_THAT(alerted(find_drift(then.state(), now.state()).value()), Not(testing::Contains("g150")));
}

TEST(Drift, TheCommonestWordsAreNotJudged) {
  Language before, after;
  before.topic[0] = 0;
  after.topic[0] = 5;  // the commonest of all: a fifth of the text
  const Snapshot then = before.sample(1), now = after.sample(2);
  DriftOptions judge_all;
  judge_all.share_max = 1;
  EXPECT_EQ(find_drift({then}, {now}, judge_all).value().moved[0].word, Language::name(0));
  EXPECT_NE(find_drift({then}, {now}).value().moved[0].word, Language::name(0));
}

TEST(Drift, RareWordsThatScatterMoreAreNotTakenForMovedOnes) {
  const Language language;
  DriftOptions options;
  options.listed_max = kTopics * kWordsOfTopic;
  double changes[2] = {}, scored[2] = {}, words[2] = {};
  for (uint64_t seed = 10; seed < 70; seed += 6) {
    const Moment then(language, seed), now(language, seed + 3);
    const DriftReport report = find_drift(then.state(), now.state(), options).value();
    for (const WordDrift& word : report.moved) {
      if (word.count_old >= 100 && word.count_old < 300) continue;
      const size_t rare = word.count_old < 100;
      changes[rare] += word.change;
      scored[rare] += word.score > 1;
      ++words[rare];
    }
  }
  EXPECT_GT(changes[1] / words[1], 1.2 * changes[0] / words[0]);
  EXPECT_LT(scored[1] / words[1], 0.3);
  EXPECT_NEAR(scored[1] / words[1], scored[0] / words[0], 0.15);
}

TEST(Drift, WordsOfOneSideOnlyAndWordsWithoutDirectionAreLeftOut) {
  const Language language;
  const Snapshot then = language.sample(1);
  Snapshot now = language.sample(2);
  Snapshot other;
  other.input = Matrix::make(now.input.rows(), kTopicDim).value();
  for (Slot slot = 0; slot < now.vocabulary.size(); ++slot) {  // another order, and two words renamed
    const Slot from = now.vocabulary.size() - 1 - slot;
    other.vocabulary.add(from < 2 ? "new" + std::to_string(from) : std::string(now.vocabulary.word(from)), 100);
    std::copy_n(now.input.row(from), kTopicDim, other.input.row(slot));
  }
  std::fill_n(other.input.row(0), kTopicDim, 0.0f);
  other.input.row(1)[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(find_drift({then}, {other}).value().words, kTopics * kWordsOfTopic - 4);
}

TEST(Drift, WordsWithTooLittleEvidenceAreNotJudged) {
  Language language;
  for (size_t i = 0; i < language.count.size(); ++i) language.count[i] = i < 100 ? 40 : 39;  // evidence is n / 2
  const Snapshot then = language.sample(1), now = language.sample(2);
  EXPECT_EQ(find_drift({then}, {now}).value().words, 100);
}

TEST(Drift, WhatCannotBeComparedIsSaid) {
  const Language language;
  const Snapshot then = language.sample(1);
  Snapshot wide;
  wide.vocabulary.add("a0", 100);
  wide.input = Matrix::make(1, kTopicDim + 1).value();
  const auto other_dim = find_drift({then}, {wide});
  EXPECT_EQ(other_dim.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(other_dim.status().message(), AllOf(HasSubstr("24"), HasSubstr("25")));
  Snapshot small;
  small.vocabulary.add("a0", 100);
  small.input = Matrix::make(1, kTopicDim).value();
  small.input.row(0)[0] = 1;
  EXPECT_EQ(find_drift({then}, {small}).status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(find_drift({then, &wide, &then}, {then, &then, &then}).status().code(), Code::kInvalidArgument);
}

TEST(Drift, WordsThatAHalfDoesNotKnowAreNotJudged) {
  const Language language;
  const Moment then(language, 1), now(language, 4);
  Snapshot half = language.sample(9);
  std::fill_n(half.input.row(7), kTopicDim, 0.0f);
  EXPECT_EQ(find_drift(then.state(), {now.whole, &now.a, &half}).value().words, kTopics * kWordsOfTopic - 1);
}

TEST(CompareWords, GivesTheWayOfAWordAndKnowsWhenItWasNotThere) {
  Language language;
  const Snapshot then = language.sample(1);
  language.topic[150] = 1;
  const Snapshot now = language.sample(2);
  const std::string words[] = {"G150", "g162", "nowhere"};
  const std::vector<WordDrift> found = compare_words(then, now, words).value();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_THAT(found[0].neighbours_old, Each(StartsWith("g")));
  EXPECT_THAT(found[0].neighbours_new, Each(StartsWith("b")));
  EXPECT_LT(found[0].cosine, found[1].cosine - 0.2);
  EXPECT_GT(found[1].overlap, 0.2);
  EXPECT_EQ(found[2].count_old, 0);
  EXPECT_THAT(found[2].neighbours_new, IsEmpty());
}

}  // namespace
}  // namespace streamvec
