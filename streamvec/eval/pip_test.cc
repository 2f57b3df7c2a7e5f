#include "streamvec/eval/pip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "streamvec/eval/dense_svd.h"
#include "streamvec/eval/sppmi.h"
#include "streamvec/eval/test_text.h"

namespace streamvec {
namespace {

constexpr int32_t kOracleWords = 60;

struct OracleText {
  Sentences sentences = random_sentences(kOracleWords, 400, 12, 1);
  Vocabulary vocabulary = vocabulary_of(sentences, kOracleWords);
  OracleOptions options;
  OracleText() {
    options.counts.pairs.negatives = 1;
    options.dim = 8;
    options.overlap_words = kOracleWords;
  }
  Oracle oracle() const { return make_oracle(stream_of(sentences), vocabulary, options).value(); }
};

Eigen::MatrixXd pip(const Eigen::MatrixXd& vectors) {
  return vectors * vectors.transpose();
}

PipFigures reference(const PipReport& report, const std::string& name) {
  for (const auto& [key, figures] : report.references)
    if (key == name) return figures;
  ADD_FAILURE() << "no reference " << name;
  return {};
}

TEST(Compare, MatchesTheDenseDefinitions) {
  const Matrix vectors = random_matrix(kOracleWords, 5, 2, 3), oracle = random_matrix(kOracleWords, 8, 3);
  const OracleText text;
  const SparseMatrix sppmi =
      make_sppmi_2018(count_pairs(stream_of(text.sentences), text.vocabulary, text.options.counts).value(),
                      text.vocabulary, text.options.counts.pairs);
  const PipFigures figures = compare(vectors, oracle, sppmi, kOracleWords).value();
  const Eigen::MatrixXd e = dense(vectors), f = dense(oracle);
  EXPECT_NEAR(figures.relative_unscaled, (pip(e) - pip(f)).norm() / pip(f).norm(), 1e-5);
  EXPECT_NEAR(figures.relative, (figures.scale * pip(e) - pip(f)).norm() / pip(f).norm(), 1e-5);
  EXPECT_LE(figures.relative, (1.1 * figures.scale * pip(e) - pip(f)).norm() / pip(f).norm());
  EXPECT_LE(figures.relative, (0.9 * figures.scale * pip(e) - pip(f)).norm() / pip(f).norm());
  EXPECT_NEAR(figures.norm, pip(e).norm(), 1e-4);
  EXPECT_NEAR(figures.mean_square, (dense(sppmi) - pip(e)).array().square().mean(), 1e-5);
  const Eigen::MatrixXd ec = e.rowwise() - e.colwise().mean(), fc = f.rowwise() - f.colwise().mean();
  const double cka = pip(ec).cwiseProduct(pip(fc)).sum() / (pip(ec).norm() * pip(fc).norm());
  EXPECT_NEAR(figures.cka, cka, 1e-6);
  double least = 1e9;
  for (double scale = 0; scale < 5; scale += 0.001)
    least = std::min(least, (scale * pip(ec) - pip(fc)).norm() / pip(fc).norm());
  EXPECT_NEAR(figures.scale_free, least, 1e-4);
}

TEST(Compare, RotationChangesNothingAndScaleOnlyPip) {
  const Matrix oracle = random_matrix(kOracleWords, 4, 4);
  const SparseMatrix none = sparse(Eigen::MatrixXd::Zero(kOracleWords, kOracleWords));
  const Eigen::MatrixXd rotation = dense_svd(dense(random_matrix(4, 4, 5))).left;
  Matrix turned = Matrix::make(kOracleWords, 4).value(), doubled = Matrix::make(kOracleWords, 4).value();
  const Eigen::MatrixXd product = dense(oracle) * rotation;
  for (int i = 0; i < kOracleWords; ++i)
    for (int j = 0; j < 4; ++j) {
      turned.row(i)[j] = static_cast<float>(product(i, j));
      doubled.row(i)[j] = 2 * turned.row(i)[j];
    }
  const PipFigures same = compare(turned, oracle, none, kOracleWords).value();
  EXPECT_NEAR(same.relative, 0, 2e-3);
  EXPECT_NEAR(same.cka, 1, 1e-6);
  EXPECT_GT(same.neighbour_overlap, 0.98);
  const PipFigures scaled = compare(doubled, oracle, none, kOracleWords).value();
  EXPECT_NEAR(scaled.relative_unscaled, 3, 1e-4);
  EXPECT_NEAR(scaled.relative, 0, 2e-3);
  EXPECT_NEAR(scaled.scale, 0.25, 1e-4);
  EXPECT_NEAR(scaled.cka, 1, 1e-6);
  EXPECT_NEAR(scaled.scale_free, 0, 2e-3);
}

TEST(NeighbourOverlap, CountsSharedNeighbours) {
  // Six words on a circle; in the second matrix 0 and 3 have changed places.
  Matrix a = Matrix::make(6, 2).value(), b = Matrix::make(6, 2).value();
  for (int i = 0; i < 6; ++i) {
    const double angle = i * 0.3 + 0.02 * i * i;  // the nearest of i is i - 1
    a.row(i)[0] = static_cast<float>(std::cos(angle));
    a.row(i)[1] = static_cast<float>(std::sin(angle));
  }
  for (int i = 0; i < 6; ++i) std::copy_n(a.row(i == 0 ? 3 : i == 3 ? 0 : i), 2, b.row(i));
  EXPECT_DOUBLE_EQ(neighbour_overlap(a, a, 6, 1).value(), 1);
  // Nearest in a: 1 0 1 2 3 4; in b: 2 3 1 1 0 4.
  EXPECT_DOUBLE_EQ(neighbour_overlap(a, b, 6, 1).value(), 2.0 / 6);
}

TEST(Oracle, IsTheTruncatedSvdOfSppmi) {
  const OracleText text;
  const Oracle oracle = text.oracle();
  const PairCounts counts = count_pairs(stream_of(text.sentences), text.vocabulary, text.options.counts).value();
  const Eigen::MatrixXd sppmi = dense(make_sppmi(counts, text.vocabulary, text.options.counts.pairs));
  const DenseSvd svd = dense_svd(sppmi);
  const Eigen::MatrixXd expected = svd.left.leftCols(8) * svd.values.head(8).cwiseSqrt().asDiagonal();
  EXPECT_LT((pip(dense(oracle.vectors)) - pip(expected)).norm(), 1e-2 * pip(expected).norm());
  EXPECT_NEAR(oracle.singular_values[0], svd.values[0], 1e-3);
}

TEST(MeasurePip, TheOracleItselfIsPerfectAndTheReferencesAreNot) {
  const OracleText text;
  const Oracle oracle = text.oracle();
  const PipReport report = measure_pip(oracle.vectors, oracle).value();
  EXPECT_EQ(report.oracle_dim, 8);
  EXPECT_NEAR(report.model.relative, 0, 1e-3);
  EXPECT_NEAR(report.model.cka, 1, 1e-6);
  EXPECT_NEAR(report.model.norm, report.oracle_norm, 1e-3);
  const PipFigures zero = reference(report, "zero"), permuted = reference(report, "permuted"),
                   untrained = reference(report, "untrained"), halves = reference(report, "split_half");
  EXPECT_DOUBLE_EQ(zero.relative, 1);
  EXPECT_EQ(zero.cka, 0);
  EXPECT_EQ(zero.neighbour_overlap, 0);
  EXPECT_NEAR(permuted.norm, report.model.norm, 1e-3);
  EXPECT_GT(permuted.relative_unscaled, 0.9);
  EXPECT_GT(permuted.relative, halves.relative);
  EXPECT_LT(permuted.cka, 0.5);
  EXPECT_NEAR(untrained.relative, 1, 0.05);
  EXPECT_GT(halves.cka, permuted.cka);
}

TEST(MeasurePip, LeavesTheSplitHalfOutWhenItWasNotAskedFor) {
  OracleText text;
  text.options.split_half = false;
  const Oracle oracle = text.oracle();
  const PipReport report = measure_pip(oracle.vectors, oracle).value();
  EXPECT_EQ(report.references.size(), 3u);
  for (const auto& [name, figures] : report.references) EXPECT_NE(name, "split_half");
}

TEST(MeasurePip, RefusesVectorsOfAnotherVocabularyAndTextWithoutPairs) {
  const OracleText text;
  EXPECT_EQ(measure_pip(random_matrix(kOracleWords + 1, 8, 1), text.oracle()).status().code(), Code::kInvalidArgument);
  const auto empty = make_oracle(stream_of({{1}, {}}), text.vocabulary, text.options);
  EXPECT_THAT(empty.status().message(), testing::HasSubstr("no two words"));
}

}  // namespace
}  // namespace streamvec
