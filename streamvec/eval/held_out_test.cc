#include "streamvec/eval/held_out.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "streamvec/eval/test_text.h"
#include "streamvec/vocab/sampling.h"

namespace streamvec {
namespace {

constexpr int32_t kModelWords = 20;

Snapshot random_model(const std::string& kind, float scale) {
  Snapshot snapshot;
  snapshot.model = kind;
  snapshot.vocabulary = vocabulary_of(random_sentences(kModelWords, 100, 10, 1), kModelWords);
  snapshot.input = random_matrix(kModelWords, 6, 2, scale);
  snapshot.output = random_matrix(kModelWords, 6, 3, scale);
  return snapshot;
}

PairOptions unsampled_pairs(int32_t window, int32_t negatives) {
  PairOptions options;
  options.window = window;
  options.negatives = negatives;
  options.sample = 0;
  return options;
}

double softplus(double x) {
  return std::log1p(std::exp(x));
}

// -log sigma(u_o.v) - E[sum over negatives other than o of log sigma(-u_k.v)], the expectation taken exactly.
double expected_loss(const Snapshot& model, const Eigen::VectorXd& v, Slot target, int32_t negatives) {
  const Eigen::MatrixXd output = dense(model.output);
  const std::vector<double> noise = unigram_probabilities(model.vocabulary, 0.75);
  double loss = softplus(-output.row(target).dot(v));
  for (Slot k = 0; k < kModelWords; ++k)
    if (k != target) loss += negatives * noise[static_cast<size_t>(k)] * softplus(output.row(k).dot(v));
  return loss;
}

// The mean over all windows 1..window and the pairs in them.
double brute_force_loss(const Snapshot& model, const Sentences& text, const PairOptions& options) {
  const Eigen::MatrixXd input = dense(model.input);
  double loss = 0, weight = 0;
  for (const std::vector<Slot>& sentence : text)
    for (int64_t c = 0; c < std::ssize(sentence); ++c)
      for (int64_t drawn = 1; drawn <= options.window; ++drawn) {
        Eigen::VectorXd mean = Eigen::VectorXd::Zero(input.cols());
        int words = 0;
        for (int64_t o = std::max<int64_t>(0, c - drawn); o <= std::min(c + drawn, std::ssize(sentence) - 1); ++o) {
          if (o == c) continue;
          const Slot centre = sentence[static_cast<size_t>(c)], other = sentence[static_cast<size_t>(o)];
          mean += input.row(other);
          ++words;
          if (model.model == "cbow") continue;
          loss += expected_loss(model, input.row(centre), other, options.negatives);
          weight += 1;
        }
        if (model.model != "cbow" || words == 0) continue;
        loss += expected_loss(model, mean / words, sentence[static_cast<size_t>(c)], options.negatives);
        weight += 1;
      }
  return loss / weight;
}

TEST(HeldOut, AModelOfZerosHasTheLossOfGuessing) {
  Snapshot model = random_model("sgns", 0);
  const Sentences text = {{0, 1, 2, 3}};
  // Words that the noise never draws, so that no negative is passed over.
  model.vocabulary = {};
  for (int i = 0; i < kModelWords; ++i) model.vocabulary.add("w" + std::to_string(i), i < 4 ? 0 : 1);
  const HeldOutLoss result = measure_held_out(model, stream_of(text), unsampled_pairs(5, 10)).value();
  EXPECT_NEAR(result.loss, 11 * std::log(2), 1e-9);
  EXPECT_NEAR(result.weight, 2 * (3 * 1.0 + 2 * 0.8 + 1 * 0.6), 1e-12);
  EXPECT_EQ(result.tokens, 4);
}

TEST(HeldOut, MatchesTheExactExpectationForSkipGram) {
  const Snapshot model = random_model("sgns", 3);
  const Sentences text = random_sentences(kModelWords, 3000, 9, 4);
  EXPECT_NEAR(measure_held_out(model, stream_of(text), unsampled_pairs(3, 5))->loss,
              brute_force_loss(model, text, unsampled_pairs(3, 5)), 0.01);
}

TEST(HeldOut, MatchesTheExactExpectationForCbow) {
  const Snapshot model = random_model("cbow", 3);
  const Sentences text = random_sentences(kModelWords, 3000, 9, 5);
  const HeldOutLoss result = measure_held_out(model, stream_of(text), unsampled_pairs(3, 5)).value();
  EXPECT_NEAR(result.loss, brute_force_loss(model, text, unsampled_pairs(3, 5)), 0.01);
  EXPECT_NEAR(result.weight, 3000 * 9, 1e-6);
}

TEST(HeldOut, FallsWhenTheModelFitsTheText) {
  Snapshot model = random_model("sgns", 0);
  for (Slot slot = 0; slot < kModelWords; ++slot) {  // words of one residue stand together; the last column is a bias
    model.input.row(slot)[slot % 4] = model.output.row(slot)[slot % 4] = 1;
    model.input.row(slot)[5] = 1;
    model.output.row(slot)[5] = -2;
  }
  const Sentences text = random_sentences(kModelWords, 200, 10, 6);
  EXPECT_LT(measure_held_out(model, stream_of(text), unsampled_pairs(5, 5))->loss,
            measure_held_out(random_model("sgns", 0), stream_of(text), unsampled_pairs(5, 5))->loss);
}

TEST(HeldOut, OneSeedGivesOneLossBitForBit) {
  const Snapshot model = random_model("sgns", 3);
  const SentenceStream text = stream_of(random_sentences(kModelWords, 100, 9, 7));
  PairOptions options;
  options.sample = 0.01;
  const double first = measure_held_out(model, text, options)->loss;
  EXPECT_EQ(first, measure_held_out(model, text, options)->loss);
  options.seed = 2;
  EXPECT_NE(first, measure_held_out(model, text, options)->loss);
}

TEST(HeldOut, LargeProductsStayFinite) {
  const Snapshot model = random_model("sgns", 1e4f);
  EXPECT_TRUE(std::isfinite(
      measure_held_out(model, stream_of(random_sentences(kModelWords, 20, 9, 8)), unsampled_pairs(5, 5))->loss));
}

TEST(HeldOut, SaysWhyThereIsNoLoss) {
  Snapshot model = random_model("sgns", 1);
  EXPECT_EQ(measure_held_out(model, stream_of({{1}, {}, {kNoSlot, 2}}), unsampled_pairs(5, 5)).status().code(),
            Code::kInvalidArgument);
  model.output = Matrix();
  EXPECT_EQ(measure_held_out(model, stream_of({{1, 2}}), unsampled_pairs(5, 5)).status().code(),
            Code::kFailedPrecondition);
}

}  // namespace
}  // namespace streamvec
