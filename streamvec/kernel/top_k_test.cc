#include "streamvec/kernel/top_k.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

using Lists = std::vector<std::vector<int32_t>>;

// Small whole numbers: their sums of products are exact in any order, so that scores and ties must agree bit for bit.
Matrix whole_numbers(int64_t rows, int64_t cols, uint64_t seed) {
  Matrix matrix = Matrix::make(rows, cols).value();
  Random random(seed);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) matrix.row(i)[j] = static_cast<float>(random.below(5)) - 2.0f;
  return matrix;
}

Matrix unit_rows(int64_t rows, int64_t cols, uint64_t seed) {
  Matrix matrix = Matrix::make(rows, cols).value();
  Random random(seed);
  for (int64_t i = 0; i < rows; ++i) {
    double norm = 0;
    for (int64_t j = 0; j < cols; ++j) {
      matrix.row(i)[j] = random.uniform() - 0.5f;
      norm += matrix.row(i)[j] * matrix.row(i)[j];
    }
    for (int64_t j = 0; j < cols; ++j) matrix.row(i)[j] /= static_cast<float>(std::sqrt(norm));
  }
  return matrix;
}

std::vector<std::span<const int32_t>> spans(const Lists& lists) {
  return {lists.begin(), lists.end()};
}

std::vector<Hit> search(const Matrix& rows, const Matrix& queries, const Lists& excluded, int32_t k) {
  std::vector<Hit> hits(static_cast<size_t>(queries.rows() * k));
  top_k(rows.view(), queries.view(), spans(excluded), k, hits);
  return hits;
}

std::vector<Hit> search_reference(const Matrix& rows, const Matrix& queries, const Lists& excluded, int32_t k) {
  std::vector<Hit> hits(static_cast<size_t>(queries.rows() * k));
  top_k_reference(rows.view(), queries.view(), spans(excluded), k, hits);
  return hits;
}

TEST(InnerProduct, IsTheSumOfProductsForAnyLengthAndPlace) {
  const Matrix rows = whole_numbers(2, 300, 3);
  for (const int64_t cols : {0, 1, 7, 16, 31, 32, 33, 50, 200, 299})
    for (const int64_t shift : {0, 1}) {
      float sum = 0;
      for (int64_t i = 0; i < cols; ++i) sum += rows.row(0)[i + shift] * rows.row(1)[i];
      EXPECT_EQ(inner_product(rows.row(0) + shift, rows.row(1), cols), sum) << cols;
    }
}

TEST(TopK, AgreesWithTheReferenceForAnyShape) {
  for (const int64_t rows : {1, 7, 48, 49, 300})
    for (const int64_t cols : {1, 3, 16, 50, 200})
      for (const int64_t queries : {1, 2, 6, 7, 8, 9, 33}) {
        const Matrix table = whole_numbers(rows, cols, 1), asked = whole_numbers(queries, cols, 2);
        for (const int32_t k : {1, 10})
          ASSERT_EQ(search(table, asked, {}, k), search_reference(table, asked, {}, k))
              << rows << " x " << cols << ", " << queries << " queries, k " << k;
      }
}

TEST(TopK, AgreesWithTheReferenceOverSeveralBlocksOfQueries) {
  const Matrix table = whole_numbers(100, 20, 3), asked = whole_numbers(1100, 20, 4);
  EXPECT_EQ(search(table, asked, {}, 5), search_reference(table, asked, {}, 5));
}

TEST(TopK, TheReferenceFindsTheGreatestProducts) {
  Matrix table = Matrix::make(4, 2).value(), asked = Matrix::make(1, 2).value();
  const float values[4][2] = {{1, 0}, {0, 1}, {0.6f, 0.8f}, {-1, 0}};
  for (int i = 0; i < 4; ++i) std::copy_n(values[i], 2, table.row(i));
  asked.row(0)[0] = 1;
  EXPECT_THAT(search_reference(table, asked, {}, 4),
              ::testing::ElementsAre(Hit{0, 1}, Hit{2, 0.6f}, Hit{1, 0}, Hit{3, -1}));
}

TEST(TopK, OfEqualScoresTheLowerRowComesFirst) {
  Matrix table = Matrix::make(200, 30).value();
  for (int64_t i = 0; i < 200; ++i)
    for (int64_t j = 0; j < 30; ++j) table.row(i)[j] = 0.1f * static_cast<float>(j + 1);  // rounding and all
  for (const int64_t queries : {1, 20}) {
    Matrix asked = Matrix::make(queries, 30).value();
    for (int64_t q = 0; q < queries; ++q) std::copy_n(table.row(0), 30, asked.row(q));
    const std::vector<Hit> hits = search(table, asked, {}, 3);
    for (size_t q = 0; q < static_cast<size_t>(queries); ++q)
      for (size_t i = 0; i < 3; ++i) EXPECT_EQ(hits[q * 3 + i].row, static_cast<int32_t>(i));
  }
}

TEST(TopK, ExcludedRowsAreNeverHits) {
  const Matrix table = whole_numbers(60, 8, 5);
  for (const int64_t queries : {3, 12}) {
    Matrix asked = Matrix::make(queries, 8).value();
    Lists excluded;
    for (int32_t q = 0; q < queries; ++q) {
      std::copy_n(table.row(q), 8, asked.row(q));
      excluded.push_back({q, 59 - q});
    }
    const std::vector<Hit> hits = search(table, asked, excluded, 4);
    EXPECT_EQ(hits, search_reference(table, asked, excluded, 4));
    for (int32_t q = 0; q < queries; ++q)
      for (int32_t i = 0; i < 4; ++i) {
        EXPECT_NE(hits[static_cast<size_t>(q * 4 + i)].row, q);
        EXPECT_NE(hits[static_cast<size_t>(q * 4 + i)].row, 59 - q);
      }
  }
}

TEST(TopK, FewerRowsThanAskedForLeaveEmptyHits) {
  const Matrix table = whole_numbers(3, 4, 6), asked = whole_numbers(9, 4, 7);
  const std::vector<Hit> hits = search(table, asked, Lists(9, {1}), 5);
  for (size_t q = 0; q < 9; ++q) {
    EXPECT_GE(hits[q * 5 + 1].row, 0);
    for (size_t i = 2; i < 5; ++i) EXPECT_EQ(hits[q * 5 + i], Hit{});
  }
}

TEST(TopK, ARowOfNanIsNeverAHit) {
  Matrix table = whole_numbers(20, 5, 8);
  table.row(4)[2] = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t queries : {1, 10}) {
    const Matrix asked = whole_numbers(queries, 5, 9);
    for (const Hit& hit : search(table, asked, {}, 20)) EXPECT_NE(hit.row, 4);
  }
}

TEST(BestAnalogies, AgreesWithTheReferenceForAnyShape) {
  for (const int32_t rows : {4, 47, 384, 1000})
    for (const int64_t cols : {3, 40}) {
      const Matrix table = unit_rows(rows, cols, 10);
      Random random(11);
      std::vector<AnalogyQuestion> questions(200);
      for (AnalogyQuestion& question : questions)
        question = {static_cast<int32_t>(random.below(rows)), static_cast<int32_t>(random.below(rows)),
                    static_cast<int32_t>(random.below(rows))};
      std::vector<AnalogyAnswer> answers(questions.size()), expected(questions.size());
      best_analogies(table.view(), questions, answers);
      best_analogies_reference(table.view(), questions, expected);
      EXPECT_EQ(answers, expected) << rows << " x " << cols;
    }
}

TEST(BestAnalogies, TheReferenceCompletesAParallelogram) {
  // Rows on a sphere: the offset from 0 to 1 is the offset from 2 to 3; 4 lies elsewhere.
  Matrix table = Matrix::make(5, 3).value();
  const float values[5][3] = {{0.8f, 0.6f, 0}, {0.8f, 0, 0.6f}, {-0.8f, 0.6f, 0}, {-0.8f, 0, 0.6f}, {0, 1, 0}};
  for (int i = 0; i < 5; ++i) std::copy_n(values[i], 3, table.row(i));
  const std::vector<AnalogyQuestion> questions = {{0, 1, 2}};
  std::vector<AnalogyAnswer> answers(1);
  best_analogies_reference(table.view(), questions, answers);
  EXPECT_EQ(answers[0], (AnalogyAnswer{3, 3}));
}

TEST(BestAnalogies, HasNoAnswerWhenEveryRowIsInTheQuestion) {
  const Matrix table = unit_rows(3, 4, 12);
  const std::vector<AnalogyQuestion> questions = {{0, 1, 2}, {1, 1, 0}};
  std::vector<AnalogyAnswer> answers(2);
  best_analogies(table.view(), questions, answers);
  EXPECT_EQ(answers[0], AnalogyAnswer{});
  EXPECT_EQ(answers[1], (AnalogyAnswer{2, 2}));
}

TEST(BestAnalogies, NoQuestionsAreNoWork) {
  best_analogies(unit_rows(3, 4, 13).view(), {}, {});
}

TEST(BestAnalogies, OppositeRowsDoNotOvercomeTheExclusion) {
  Matrix table = Matrix::make(3, 1).value();
  table.row(0)[0] = 1;
  table.row(1)[0] = -1;
  table.row(2)[0] = -1.0000001f;
  const std::vector<AnalogyQuestion> questions = {{0, 1, 0}, {1, 0, 1}, {1, 0, 0}};
  std::vector<AnalogyAnswer> answers(3);
  best_analogies(table.view(), questions, answers);
  for (const AnalogyAnswer& answer : answers) EXPECT_EQ(answer, (AnalogyAnswer{2, 2}));
}

}  // namespace
}  // namespace streamvec
