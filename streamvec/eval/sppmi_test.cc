#include "streamvec/eval/sppmi.h"

#include <gtest/gtest.h>

#include <cmath>

#include "streamvec/eval/test_text.h"

namespace streamvec {
namespace {

struct CountedText {
  Sentences sentences = random_sentences(40, 200, 12, 1);
  Vocabulary vocabulary = vocabulary_of(sentences, 41);  // the last word never occurs
  PairCountOptions options;
  PairCounts counts;

  CountedText() {
    options.pairs.negatives = 1;
    options.pairs.sample = 0.01;
    counts = count_pairs(stream_of(sentences), vocabulary, options).value();
  }
};

TEST(Sppmi, MatchesTheDenseDefinition) {
  const CountedText text;
  const Eigen::MatrixXd n = dense(text.counts);
  double noise_sum = 0;
  for (Slot j = 0; j < 41; ++j) noise_sum += std::pow(text.vocabulary.count(j), 0.75);
  Eigen::MatrixXd expected = Eigen::MatrixXd::Zero(41, 41);
  for (int i = 0; i < 41; ++i)
    for (int j = 0; j < 41; ++j) {
      const double noise = std::pow(text.vocabulary.count(j), 0.75) / noise_sum;
      if (n(i, j) > 0) expected(i, j) = std::max(0.0, std::log(n(i, j) / (n.row(i).sum() * noise)));
    }
  const Eigen::MatrixXd sppmi = dense(make_sppmi(text.counts, text.vocabulary, text.options.pairs));
  EXPECT_GT(expected.norm(), 1);
  EXPECT_LT((sppmi - expected).cwiseAbs().maxCoeff(), 1e-5);
  EXPECT_GT((sppmi - sppmi.transpose()).norm(), 0.1);  // smoothing touches only the columns
}

TEST(Sppmi, NegativesShiftAndClip) {
  const CountedText text;
  const Eigen::MatrixXd one = dense(make_sppmi(text.counts, text.vocabulary, text.options.pairs));
  PairOptions two = text.options.pairs;
  two.negatives = 2;
  const Eigen::MatrixXd shifted = dense(make_sppmi(text.counts, text.vocabulary, two));
  EXPECT_LT((shifted - (one.array() - std::log(2)).max(0).matrix()).cwiseAbs().maxCoeff(), 1e-5);
}

TEST(Sppmi, OfIndependentWordsWithoutSmoothingVanishes) {
  Random random(1);
  Sentences sentences(4000);
  for (auto& sentence : sentences)
    for (int i = 0; i < 20; ++i) sentence.push_back(static_cast<Slot>(random.below(4)));
  PairCountOptions options;
  options.pairs = {5, 1, 0, 1.0, 1};
  const Vocabulary vocabulary = vocabulary_of(sentences, 4);
  const PairCounts counts = count_pairs(stream_of(sentences), vocabulary, options).value();
  EXPECT_LT(dense(make_sppmi(counts, vocabulary, options.pairs)).maxCoeff(), 0.03);
}

TEST(Sppmi2018, UsesTokenCountsWherePairCountsBelong) {
  const CountedText text;
  const Eigen::MatrixXd n = dense(text.counts);
  Eigen::MatrixXd expected = Eigen::MatrixXd::Zero(41, 41);
  for (int i = 0; i < 41; ++i)
    for (int j = 0; j < 41; ++j)
      if (n(i, j) > 0)
        expected(i, j) = std::max(0.0, std::log(n(i, j) * static_cast<double>(text.vocabulary.tokens()) /
                                                static_cast<double>(text.vocabulary.count(i)) /
                                                static_cast<double>(text.vocabulary.count(j))));
  const Eigen::MatrixXd sppmi = dense(make_sppmi_2018(text.counts, text.vocabulary, text.options.pairs));
  EXPECT_LT((sppmi - expected).cwiseAbs().maxCoeff(), 1e-5);
}

TEST(Sppmi, WordsWithoutCountsStayFinite) {
  Vocabulary vocabulary;
  for (const char* word : {"a", "b", "c"}) vocabulary.add(word, 0);
  PairCountOptions options;
  const PairCounts counts = count_pairs(stream_of({{0, 1, 2, 0, 1}}), vocabulary, options).value();
  EXPECT_TRUE(dense(make_sppmi(counts, vocabulary, options.pairs)).allFinite());
  EXPECT_TRUE(dense(make_sppmi_2018(counts, vocabulary, options.pairs)).allFinite());
}

TEST(Sparse, TransposeAndDistanceAgreeWithDense) {
  const CountedText text;
  const SparseMatrix a = make_sppmi(text.counts, text.vocabulary, text.options.pairs);
  const SparseMatrix b = make_sppmi_2018(text.counts, text.vocabulary, text.options.pairs);
  EXPECT_EQ(dense(transpose(a)), dense(a).transpose());
  EXPECT_NEAR(squared_distance(a, b), (dense(a) - dense(b)).squaredNorm(), 1e-6);
  EXPECT_NEAR(a.squared_norm(), dense(a).squaredNorm(), 1e-6);
}

TEST(Sparse, ProductsAgreeWithDense) {
  const CountedText text;
  const SparseMatrix matrix = make_sppmi(text.counts, text.vocabulary, text.options.pairs);
  const Matrix rows = random_matrix(41, 7, 2);
  Matrix out = random_matrix(41, 7, 3);
  multiply(matrix, rows.view(), out.view());
  EXPECT_LT((dense(out) - dense(matrix) * dense(rows)).norm(), 1e-5);
  EXPECT_NEAR(inner_product(matrix, rows.view()),
              dense(matrix).cwiseProduct(dense(rows) * dense(rows).transpose()).sum(), 1e-4);
}

}  // namespace
}  // namespace streamvec
