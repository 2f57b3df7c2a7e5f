#include "streamvec/eval/cooccurrence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "streamvec/eval/test_text.h"

namespace streamvec {
namespace {

PairCountOptions keep_all(int32_t window) {
  PairCountOptions options;
  options.pairs.window = window;
  options.pairs.sample = 0;
  return options;
}

// By the definition: every ordered pair, the chance that a window drawn from 1..window reaches it.
Eigen::MatrixXd brute_force_counts(const Sentences& text, int32_t words, int64_t window) {
  Eigen::MatrixXd counts = Eigen::MatrixXd::Zero(words, words);
  for (const std::vector<Slot>& sentence : text)
    for (int64_t i = 0; i < std::ssize(sentence); ++i)
      for (int64_t j = 0; j < std::ssize(sentence); ++j)
        for (int64_t drawn = 1; drawn <= window; ++drawn)
          if (i != j && std::abs(i - j) <= drawn)
            counts(sentence[static_cast<size_t>(i)], sentence[static_cast<size_t>(j)]) +=
                1.0 / static_cast<double>(window);
  return counts;
}

TEST(CountPairs, MatchesTheDefinition) {
  const Sentences text = random_sentences(30, 60, 12, 1);
  const Vocabulary vocabulary = vocabulary_of(text, 30);
  for (const int32_t window : {1, 2, 5, 20}) {
    const PairCounts counts = count_pairs(stream_of(text), vocabulary, keep_all(window)).value();
    EXPECT_LT((dense(counts) - brute_force_counts(text, 30, window)).norm(), 1e-9) << window;
    const Eigen::VectorXd sums = brute_force_counts(text, 30, window).rowwise().sum();
    const std::vector<double> marginals = counts.marginals();
    for (int i = 0; i < 30; ++i) EXPECT_NEAR(marginals[static_cast<size_t>(i)], sums[i], 1e-9);
  }
}

TEST(CountPairs, CountsAWordBesideItselfInBothOrders) {
  const Sentences text = {{0, 0}};
  const PairCounts counts = count_pairs(stream_of(text), vocabulary_of(text, 1), keep_all(5)).value();
  EXPECT_DOUBLE_EQ(dense(counts)(0, 0), 2);
}

TEST(CountPairs, DistancesAreThoseAfterSubsampling) {
  // Six of the frequent word 0 part 1 and 2; of each, subsampling keeps one in thirteen, and all of 1 and 2.
  Sentences text(300, {1, 0, 0, 0, 0, 0, 0, 2});
  text.resize(3300, std::vector<Slot>(20, 0));
  const Vocabulary vocabulary = vocabulary_of(text, 3);
  PairCountOptions options = keep_all(5);
  EXPECT_EQ(dense(count_pairs(stream_of(text), vocabulary, options).value())(1, 2), 0);
  options.pairs.sample = 0.005;
  EXPECT_NEAR(dense(count_pairs(stream_of(text), vocabulary, options).value())(1, 2), 300 * (1 - 6 * 0.076 / 5), 10);
}

TEST(CountPairs, ASmallBufferChangesNothing) {
  const Sentences text = random_sentences(50, 100, 15, 2);
  const Vocabulary vocabulary = vocabulary_of(text, 50);
  PairCountOptions options = keep_all(5);
  const PairCounts whole = count_pairs(stream_of(text), vocabulary, options).value();
  options.buffer_max = 20;
  const PairCounts merged = count_pairs(stream_of(text), vocabulary, options).value();
  EXPECT_EQ(merged.begin, whole.begin);
  EXPECT_EQ(merged.column, whole.column);
  EXPECT_EQ(merged.units, whole.units);
}

TEST(CountPairs, MorePairsThanAllowedIsAnError) {
  const Sentences text = random_sentences(50, 100, 15, 3);
  PairCountOptions options = keep_all(5);
  options.pairs_max = 100;
  options.buffer_max = 10;
  const auto counts = count_pairs(stream_of(text), vocabulary_of(text, 50), options);
  EXPECT_EQ(counts.status().code(), Code::kResourceExhausted);
  EXPECT_THAT(counts.status().message(), testing::HasSubstr("more than 100 distinct word pairs"));
}

TEST(CountPairs, BothHalvesAddUpToTheWhole) {
  const Sentences text = random_sentences(40, 81, 10, 4);
  const Vocabulary vocabulary = vocabulary_of(text, 40);
  PairCountOptions options = keep_all(3);
  options.pairs.sample = 0.01;
  const auto halves = count_pairs_of_halves(stream_of(text), vocabulary, options).value();
  const PairCounts whole = count_pairs(stream_of(text), vocabulary, options).value();
  const PairCounts sum = add(halves[0], halves[1]);
  EXPECT_EQ(sum.begin, whole.begin);
  EXPECT_EQ(sum.column, whole.column);
  EXPECT_EQ(sum.units, whole.units);
  EXPECT_GT(halves[0].pairs(), 0);
  EXPECT_GT(halves[1].pairs(), 0);
}

TEST(CountPairs, EmptyTextHasNoPairs) {
  const PairCounts counts = count_pairs(stream_of({{}, {1}}), vocabulary_of({{0, 1}}, 2), keep_all(5)).value();
  EXPECT_EQ(counts.pairs(), 0);
  EXPECT_EQ(counts.size(), 2);
}

}  // namespace
}  // namespace streamvec
