#include "streamvec/eval/sentences.h"

#include <gtest/gtest.h>

#include <cmath>

#include "streamvec/eval/test_text.h"

namespace streamvec {
namespace {

std::vector<std::vector<Slot>> kept(const Sentences& text, const Vocabulary& vocabulary, const PairOptions& options) {
  std::vector<std::vector<Slot>> result;
  const Status status = visit_subsampled(stream_of(text), vocabulary, options,
                                         [&](int64_t number, std::span<const Slot> sentence) -> Status {
                                           EXPECT_EQ(number, std::ssize(result));
                                           result.emplace_back(sentence.begin(), sentence.end());
                                           return {};
                                         });
  EXPECT_TRUE(status.ok()) << status.message();
  return result;
}

TEST(VisitSubsampled, KeepsEverythingWithoutAThreshold) {
  const Sentences text = {{0, 1, kNoSlot, 2}, {}, {2, 2}};
  PairOptions options;
  options.sample = 0;
  EXPECT_EQ(kept(text, vocabulary_of({{0, 1, 2}, {}, {2, 2}}, 3), options), (Sentences{{0, 1, 2}, {}, {2, 2}}));
}

TEST(VisitSubsampled, KeepsFrequentWordsWithWord2vecsProbability) {
  Sentences text(2000, std::vector<Slot>(50, 0));
  for (std::vector<Slot>& sentence : text) sentence.back() = 1;
  PairOptions options;
  options.sample = 0.01;
  const Vocabulary vocabulary = vocabulary_of(text, 2);
  int64_t frequent = 0;
  for (const auto& sentence : kept(text, vocabulary, options))
    frequent += std::count(sentence.begin(), sentence.end(), 0);
  const double f = 0.98, expected = (std::sqrt(f / options.sample) + 1) * options.sample / f;
  EXPECT_NEAR(static_cast<double>(frequent) / (2000 * 49), expected, 4 * std::sqrt(expected / (2000 * 49)));
}

TEST(VisitSubsampled, OneSeedGivesOneDraw) {
  const Sentences text = random_sentences(20, 50, 20, 1);
  const Vocabulary vocabulary = vocabulary_of(text, 20);
  PairOptions options;
  options.sample = 0.01;
  const auto first = kept(text, vocabulary, options);
  EXPECT_EQ(first, kept(text, vocabulary, options));
  options.seed = 2;
  EXPECT_NE(first, kept(text, vocabulary, options));
}

TEST(VisitSubsampled, PassesOnTheFailureOfTheStreamAndOfTheVisitor) {
  const Vocabulary vocabulary = vocabulary_of({{0}}, 1);
  const auto broken = [](const SentenceVisitor&) { return error(Code::kUnavailable, "gone"); };
  const auto fine = [](int64_t, std::span<const Slot>) -> Status { return {}; };
  EXPECT_EQ(visit_subsampled(broken, vocabulary, {}, fine).code(), Code::kUnavailable);
  const auto refuse = [](int64_t, std::span<const Slot>) { return error(Code::kAborted, "enough"); };
  EXPECT_EQ(visit_subsampled(stream_of({{0}, {0}}), vocabulary, {}, refuse).code(), Code::kAborted);
}

TEST(PairOptions, OutOfRangeIsRefused) {
  EXPECT_TRUE(check(PairOptions{}).ok());
  PairOptions window, negatives, sample;
  window.window = 0;
  negatives.negatives = 0;
  sample.sample = -1;
  for (const PairOptions& options : {window, negatives, sample})
    EXPECT_EQ(check(options).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace streamvec
