#include "streamvec/eval/svd.h"

#include <gtest/gtest.h>

#include "streamvec/eval/dense_svd.h"
#include "streamvec/eval/gram.h"
#include "streamvec/eval/test_text.h"

namespace streamvec {
namespace {

// About a tenth of the entries, positive, not symmetric.
Eigen::MatrixXd random_sparse(int size, uint64_t seed) {
  Random random(seed);
  Eigen::MatrixXd matrix = Eigen::MatrixXd::Zero(size, size);
  for (int i = 0; i < size; ++i)
    for (int j = 0; j < size; ++j)
      if (random.below(10) == 0) matrix(i, j) = static_cast<float>(random.uniform() * 3);
  return matrix;
}

TEST(Gram, ProductsAgreeWithDenseForAnyShape) {
  for (const int64_t rows : {1, 5, 256, 700})
    for (const int64_t cols : {1, 8, 50, 97}) {
      const Matrix x = random_matrix(rows, cols, 1), y = random_matrix(rows, 33, 2);
      EXPECT_LT((gram(x.view()) - dense(x).transpose() * dense(x)).norm(), 1e-5 * static_cast<double>(rows));
      EXPECT_LT((cross_gram(x.view(), y.view()) - dense(x).transpose() * dense(y)).norm(),
                1e-5 * static_cast<double>(rows));
      EXPECT_LT((column_sums(x.view()) - dense(x).colwise().sum().transpose()).norm(), 1e-9);
      const Eigen::MatrixXd right = dense(random_matrix(cols, 33, 3));
      Matrix out = y.copy().value();
      multiply_add(x.view(), right, out.view());
      EXPECT_LT((dense(out) - dense(y) - dense(x) * right).norm(), 1e-4);
      multiply(x.view(), right, out.view());
      EXPECT_LT((dense(out) - dense(x) * right).norm(), 1e-4);
    }
}

TEST(Gram, AProductMayReplaceItsFactor) {
  Matrix x = random_matrix(100, 60, 4);
  const Eigen::MatrixXd right = dense(random_matrix(60, 60, 5)), expected = dense(x) * right;
  multiply(x.view(), right, x.view());
  EXPECT_LT((dense(x) - expected).norm(), 1e-4);
}

TEST(Factorise, MatchesTheDenseSvd) {
  const Eigen::MatrixXd matrix = random_sparse(120, 1);
  const DenseSvd svd = dense_svd(matrix);
  SvdOptions options;
  options.rank = 20;
  const Factorisation factors = factorise(sparse(matrix), options).value();
  ASSERT_EQ(factors.singular_values.size(), 20u);
  for (int i = 0; i < 20; ++i) EXPECT_NEAR(factors.singular_values[static_cast<size_t>(i)], svd.values[i], 1e-3) << i;
  const Eigen::MatrixXd left = dense(factors.left), expected = svd.left.leftCols(20);
  EXPECT_LT((left.transpose() * left - Eigen::MatrixXd::Identity(20, 20)).norm(), 1e-4);
  EXPECT_LT((left * left.transpose() - expected * expected.transpose()).norm(), 1e-2);
}

TEST(Factorise, SettlesOnAFlatSpectrumWithABasisFarBelowTheSize) {
  // 1,500 rows, singular values 100, 99.9, ..., and a basis of 400 + 4 * 10 columns.
  const int size = 1500;
  Eigen::MatrixXd matrix = Eigen::MatrixXd::Zero(size, size);
  for (int i = 0; i < size; ++i) matrix((i * 7) % size, i) = 100 - i * 0.05;
  SvdOptions options;
  options.rank = 10;
  const Factorisation factors = factorise(sparse(matrix), options).value();
  for (int i = 0; i < 10; ++i) EXPECT_NEAR(factors.singular_values[static_cast<size_t>(i)], 100 - i * 0.05, 0.002);
}

TEST(Factorise, StandsAMatrixOfLowerRank) {
  const Eigen::MatrixXd thin = dense(random_matrix(50, 3, 1));
  SvdOptions options;
  options.rank = 10;
  const Factorisation factors = factorise(sparse(thin * thin.transpose()), options).value();
  for (size_t i = 3; i < 10; ++i) EXPECT_NEAR(factors.singular_values[i], 0, 1e-3 * factors.singular_values[0]);
  const Eigen::MatrixXd vectors = dense(root_vectors(factors, 10).value());
  EXPECT_LT((vectors * vectors.transpose() - thin * thin.transpose()).norm(), 1e-2 * thin.squaredNorm());
}

TEST(Factorise, StandsZerosAndRanksAboveTheSize) {
  SvdOptions options;
  options.rank = 50;
  const Factorisation zeros = factorise(sparse(Eigen::MatrixXd::Zero(20, 20)), options).value();
  EXPECT_EQ(zeros.left.cols(), 20);
  for (const double value : zeros.singular_values) EXPECT_EQ(value, 0);
  const Factorisation one = factorise(sparse(Eigen::MatrixXd::Constant(1, 1, 3)), options).value();
  EXPECT_NEAR(one.singular_values[0], 3, 1e-6);
  EXPECT_EQ(factorise(SparseMatrix(), options).status().code(), Code::kInvalidArgument);
}

TEST(Factorise, OneSeedGivesOneResultBitForBit) {
  const SparseMatrix matrix = sparse(random_sparse(60, 3));
  SvdOptions options;
  options.rank = 5;
  const Factorisation a = factorise(matrix, options).value(), b = factorise(matrix, options).value();
  EXPECT_EQ(a.singular_values, b.singular_values);
  EXPECT_EQ(dense(a.left), dense(b.left));
}

TEST(RootVectors, ScaleTheLeftVectorsByTheRootsOfTheValues) {
  SvdOptions options;
  options.rank = 6;
  const Factorisation factors = factorise(sparse(random_sparse(60, 4)), options).value();
  const Eigen::MatrixXd vectors = dense(root_vectors(factors, 4).value());
  ASSERT_EQ(vectors.cols(), 4);
  for (int j = 0; j < 4; ++j)
    EXPECT_NEAR(vectors.col(j).squaredNorm(), factors.singular_values[static_cast<size_t>(j)], 1e-3);
}

}  // namespace
}  // namespace streamvec
