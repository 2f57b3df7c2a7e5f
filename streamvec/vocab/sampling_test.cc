#include "streamvec/vocab/sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace streamvec {
namespace {

Vocabulary zipfian(int words) {
  Vocabulary vocabulary;
  for (int i = 0; i < words; ++i) vocabulary.add("w" + std::to_string(i), 1'000'000 / (i + 1));
  return vocabulary;
}

// Pearson's statistic, as standard deviations away from what the true distribution gives on average.
double chi_square_sigmas(const std::vector<int64_t>& seen, const std::vector<double>& probabilities, double draws) {
  double statistic = 0;
  for (size_t i = 0; i < seen.size(); ++i) {
    const double expected = draws * probabilities[i];
    statistic += (static_cast<double>(seen[i]) - expected) * (static_cast<double>(seen[i]) - expected) / expected;
  }
  const double freedom = static_cast<double>(seen.size()) - 1;
  return (statistic - freedom) / std::sqrt(2 * freedom);
}

TEST(UnigramProbabilities, AreCountsToThePowerScaledToOne) {
  Vocabulary vocabulary;
  vocabulary.add("a", 16);
  vocabulary.add("b", 1);
  vocabulary.add("none", 0);
  const std::vector<double> probabilities = unigram_probabilities(vocabulary, 0.75);
  EXPECT_DOUBLE_EQ(probabilities[0], 8.0 / 9);
  EXPECT_DOUBLE_EQ(probabilities[1], 1.0 / 9);
  EXPECT_EQ(probabilities[2], 0);
}

TEST(UnigramProbabilities, AreEqualWhenNoWordHasACount) {
  Vocabulary vocabulary;
  for (const char* word : {"a", "b", "c", "d"}) vocabulary.add(word, 0);
  EXPECT_THAT(unigram_probabilities(vocabulary), ::testing::Each(0.25));
}

TEST(AliasTable, DrawsWithTheExactProbabilities) {
  const Vocabulary vocabulary = zipfian(500);
  const AliasTable table(vocabulary);
  Random random(1);
  std::vector<int64_t> seen(500);
  for (int i = 0; i < 1'000'000; ++i) ++seen[static_cast<size_t>(table.sample(random))];
  EXPECT_LT(std::abs(chi_square_sigmas(seen, unigram_probabilities(vocabulary), 1e6)), 4);
}

TEST(AliasTable, NeverDrawsAWordWithoutWeight) {
  const AliasTable table(std::vector<double>{0, 3, 0, 1});
  Random random(2);
  std::vector<int64_t> seen(4);
  for (int i = 0; i < 100'000; ++i) ++seen[static_cast<size_t>(table.sample(random))];
  EXPECT_EQ(seen[0], 0);
  EXPECT_EQ(seen[2], 0);
  EXPECT_NEAR(static_cast<double>(seen[1]), 75'000, 1'000);
}

TEST(AliasTable, OneWordIsAlwaysDrawn) {
  const AliasTable table(std::vector<double>{0.5});
  Random random(3);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(table.sample(random), 0);
}

TEST(StratifiedSampler, DrawsWithTheExactProbabilities) {
  constexpr size_t kDraws = 7;
  const Vocabulary vocabulary = zipfian(500);
  const StratifiedSampler sampler(vocabulary);
  Random random(4);
  std::vector<int64_t> seen(500);
  std::vector<Slot> drawn(kDraws);
  for (int i = 0; i < 150'000; ++i) {
    sampler.sample(random, drawn);
    for (const Slot slot : drawn) ++seen[static_cast<size_t>(slot)];
  }
  // Strata lower the variance, so the statistic may fall below its mean, never rise above it.
  EXPECT_LT(chi_square_sigmas(seen, unigram_probabilities(vocabulary), 150'000.0 * kDraws), 4);
}

TEST(StratifiedSampler, ASingleDrawIsAnIndependentDraw) {
  const Vocabulary vocabulary = zipfian(300);
  const StratifiedSampler sampler(vocabulary);
  Random random(5);
  std::vector<int64_t> seen(300);
  Slot drawn[1];
  for (int i = 0; i < 500'000; ++i) {
    sampler.sample(random, drawn);
    ++seen[static_cast<size_t>(drawn[0])];
  }
  EXPECT_LT(std::abs(chi_square_sigmas(seen, unigram_probabilities(vocabulary), 5e5)), 4);
}

TEST(StratifiedSampler, EverySetHoldsAWordOfMoreThanTwoStrata) {
  const StratifiedSampler sampler(std::vector<double>{6, 1, 1, 1, 1});
  Random random(6);
  std::vector<Slot> drawn(5);
  for (int i = 0; i < 1'000; ++i) {
    sampler.sample(random, drawn);
    ASSERT_EQ(std::count(drawn.begin(), drawn.end(), 0), 3);
    ASSERT_TRUE(std::is_sorted(drawn.begin(), drawn.end()));
  }
}

TEST(StratifiedSampler, InvertsTheDistributionAtEveryBoundary) {
  const StratifiedSampler sampler(std::vector<double>{0, 1, 0, 1, 2, 0});
  EXPECT_EQ(sampler.invert(0), 1);
  EXPECT_EQ(sampler.invert((uint64_t{1} << 62) - 1), 1);
  EXPECT_EQ(sampler.invert(uint64_t{1} << 62), 3);
  EXPECT_EQ(sampler.invert((uint64_t{1} << 63) - 1), 3);
  EXPECT_EQ(sampler.invert(uint64_t{1} << 63), 4);
  EXPECT_EQ(sampler.invert(~uint64_t{0} - 1), 4);
  const StratifiedSampler uneven(std::vector<double>{3, 5});
  EXPECT_EQ(uneven.invert((uint64_t{3} << 61) - 1), 0);
  EXPECT_EQ(uneven.invert(uint64_t{3} << 61), 1);
}

TEST(Subsampling, KeepsWithWord2vecsProbability) {
  Vocabulary vocabulary;
  vocabulary.add("the", 60'000);
  vocabulary.add("of", 39'900);
  vocabulary.add("rare", 100);
  const double sample = 2e-3;
  const Subsampling subsampling(vocabulary, sample);
  for (Slot slot = 0; slot < 2; ++slot) {
    const double f = static_cast<double>(vocabulary.count(slot)) / 100'000;
    EXPECT_NEAR(subsampling.probability(slot), (std::sqrt(f / sample) + 1) * sample / f, 1e-9);
  }
  EXPECT_EQ(subsampling.thresholds()[2], 0xffff'ffffU) << "a rare word is always kept";
  EXPECT_TRUE(subsampling.keep(2, 0xffff'ffffU));
  EXPECT_FALSE(subsampling.keep(0, 0xffff'ffffU));
  EXPECT_TRUE(subsampling.keep(0, 0));
}

TEST(Sampling, CountsBySlotGiveTheTablesOfAVocabulary) {
  const Vocabulary vocabulary = zipfian(300);
  const std::vector<double> counts(vocabulary.counts().begin(), vocabulary.counts().end());
  EXPECT_EQ(unigram_probabilities(counts), unigram_probabilities(vocabulary));
  const Subsampling by_words(vocabulary, 1e-3), by_counts(counts, 1e-3);
  EXPECT_THAT(by_counts.thresholds(), ::testing::ElementsAreArray(by_words.thresholds()));
}

TEST(Subsampling, KeepsSlotsThatCameAfterTheTable) {
  const Subsampling subsampling(std::vector<double>{1e6}, 1e-5);
  EXPECT_FALSE(subsampling.keep(0, 0xffff'ffffU));
  EXPECT_TRUE(subsampling.keep(1, 0xffff'ffffU));
}

TEST(Subsampling, WithoutSampleOrCountsEverythingIsKept) {
  Vocabulary uncounted;
  uncounted.add("imported", 0);
  const Subsampling none(zipfian(10), 0);
  for (const uint32_t threshold : none.thresholds()) EXPECT_EQ(threshold, 0xffff'ffffU);
  EXPECT_TRUE(Subsampling(uncounted, 1e-3).keep(0, 0xffff'ffffU));
}

}  // namespace
}  // namespace streamvec
