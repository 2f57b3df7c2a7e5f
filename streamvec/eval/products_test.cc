#include "streamvec/eval/products.h"

#include <gtest/gtest.h>

#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/cuda/card_testing.h"
#include "streamvec/eval/neighbours.h"

namespace streamvec {
namespace {

Matrix drawn_rows(int64_t rows, int64_t cols, uint64_t seed) {
  Matrix made = std::move(Matrix::make(rows, cols)).value();
  Random random(seed);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t d = 0; d < cols; ++d) made.row(i)[d] = random.uniform() - 0.5f;
  return std::move(unit_rows(made.view())).value();
}

TEST(Products, AreTheCpusWhereNothingElseIsAskedFor) {
  const auto products = std::move(make_products("cpu")).value();
  const Matrix rows = drawn_rows(50, 8, 1);
  std::vector<double> gram(64);
  ASSERT_TRUE(products->cross_gram(rows.view(), rows.view(), gram).ok());
  double trace = 0;
  for (size_t i = 0; i < 8; ++i) trace += gram[9 * i];
  EXPECT_NEAR(trace, 50, 1e-4);
}

TEST(Products, OfADeviceThatNobodyKnowsAreRefused) {
  EXPECT_EQ(make_products("tpu").status().code(), Code::kInvalidArgument);
}

class ProductsOnCard : public ::testing::Test {
 protected:
  void SetUp() override {
    STREAMVEC_SKIP_WITHOUT_CARD();
    card_ = std::move(make_products("cuda")).value();
  }
  std::unique_ptr<Products> card_;
};

// More rows than a piece has.
constexpr int64_t kProductRows = 70'000;

TEST_F(ProductsOnCard, NearestRowsAreTheCpus) {
  const Matrix rows = drawn_rows(kProductRows, 20, 2);
  constexpr int32_t k = 10, kQueries = 40;
  const MatrixView<const float> queries{rows.row(kProductRows - kQueries), kQueries, 20, rows.stride()};
  std::vector<int32_t> own;
  for (int32_t i = 0; i < kQueries; ++i) own.push_back(static_cast<int32_t>(kProductRows) - kQueries + i);
  std::vector<std::span<const int32_t>> excluded;
  for (const int32_t& row : own) excluded.emplace_back(&row, 1);
  std::vector<Hit> expected(kQueries * k), found(kQueries * k);
  ASSERT_TRUE(cpu_products().top_k(rows.view(), queries, excluded, k, expected).ok());
  ASSERT_TRUE(card_->top_k(rows.view(), queries, excluded, k, found).ok());
  int same = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i].score, expected[i].score, 1e-5);
    same += found[i].row == expected[i].row;
  }
  EXPECT_GE(same, 395);  // of 400: nearly equal ones may change places
}

TEST_F(ProductsOnCard, FewerRowsThanAskedForLeaveRoom) {
  const Matrix rows = drawn_rows(3, 5, 3);
  std::vector<Hit> found(5);
  ASSERT_TRUE(card_->top_k(rows.view(), {rows.row(0), 1, 5, rows.stride()}, {}, 5, found).ok());
  EXPECT_EQ(found[0].row, 0);
  EXPECT_GE(found[2].row, 0);
  EXPECT_EQ(found[3], Hit());
}

TEST_F(ProductsOnCard, AnalogiesAreTheCpus) {
  const Matrix rows = drawn_rows(kProductRows, 20, 4);
  Random random(5);
  std::vector<AnalogyQuestion> questions(300);
  for (AnalogyQuestion& question : questions)
    for (int32_t* row : {&question.a, &question.b, &question.c})
      *row = static_cast<int32_t>(random.below(kProductRows));
  std::vector<AnalogyAnswer> expected(questions.size()), found(questions.size());
  ASSERT_TRUE(cpu_products().best_analogies(rows.view(), questions, expected).ok());
  ASSERT_TRUE(card_->best_analogies(rows.view(), questions, found).ok());
  int same = 0;
  for (size_t i = 0; i < found.size(); ++i) same += found[i] == expected[i];
  EXPECT_GE(same, 297);
}

TEST_F(ProductsOnCard, GramMatricesAreTheCpus) {
  const Matrix x = drawn_rows(kProductRows * 2, 30, 6), y = drawn_rows(kProductRows * 2, 17, 7);
  std::vector<double> expected(30 * 17), found(30 * 17);
  ASSERT_TRUE(cpu_products().cross_gram(x.view(), y.view(), expected).ok());
  ASSERT_TRUE(card_->cross_gram(x.view(), y.view(), found).ok());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-2) << i;  // of 140,000 / 20
}

}  // namespace
}  // namespace streamvec
