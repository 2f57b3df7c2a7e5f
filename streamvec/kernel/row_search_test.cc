#include "streamvec/kernel/row_search.h"

#include <gtest/gtest.h>

#include <cmath>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

// Rows near to each other by `spread`, so that many lie within the rounding of the first pass.
Matrix spread_unit_rows(int64_t rows, int64_t cols, uint64_t seed, float spread) {
  Matrix matrix = Matrix::make(rows, cols).value();
  Random random(seed), common(99);
  std::vector<float> centre(static_cast<size_t>(cols));
  for (float& value : centre) value = common.uniform() - 0.5f;
  for (int64_t i = 0; i < rows; ++i) {
    double norm = 0;
    for (int64_t j = 0; j < cols; ++j) {
      matrix.row(i)[j] = centre[static_cast<size_t>(j)] + spread * (random.uniform() - 0.5f);
      norm += matrix.row(i)[j] * matrix.row(i)[j];
    }
    for (int64_t j = 0; j < cols; ++j) matrix.row(i)[j] /= static_cast<float>(std::sqrt(norm));
  }
  return matrix;
}

std::vector<Hit> exact(const Matrix& rows, const Matrix& queries, std::span<const std::span<const int32_t>> excluded,
                       int32_t k) {
  std::vector<Hit> hits(static_cast<size_t>(queries.rows() * k));
  top_k(rows.view(), queries.view(), excluded, k, hits);
  return hits;
}

class RowSearchTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!make_packed_gemm(GetParam()).ok()) GTEST_SKIP() << "this machine has no " << GetParam();
  }
  // The same rows with the same scores, but for the order of sums.
  static void expect_same(const std::vector<Hit>& found, const std::vector<Hit>& wanted) {
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < found.size(); ++i) {
      if (wanted[i].row < 0) {
        EXPECT_EQ(found[i], wanted[i]) << i;
        continue;
      }
      EXPECT_NEAR(found[i].score, wanted[i].score, 2e-6) << i;
    }
  }
};

TEST_P(RowSearchTest, FindsWhatAFullScanFinds) {
  for (const float spread : {2.0f, 0.2f, 0.002f})
    for (const int64_t count : {1, 8, 19}) {
      const Matrix rows = spread_unit_rows(5'000, 50, 1, spread), queries = spread_unit_rows(count, 50, 2, spread);
      const auto search = RowSearch::make(rows.view(), GetParam()).value();
      std::vector<Hit> hits(static_cast<size_t>(count * 10));
      search->top_k(queries.view(), {}, 10, hits);
      expect_same(hits, exact(rows, queries, {}, 10));
    }
}

TEST_P(RowSearchTest, LeavesOutWhatIsExcluded) {
  const Matrix rows = spread_unit_rows(3'000, 20, 1, 1.0f);
  const auto search = RowSearch::make(rows.view(), GetParam()).value();
  const std::vector<int32_t> own = {0, 7, 2'999};
  const std::vector<std::span<const int32_t>> excluded = {own, {}};
  std::vector<Hit> hits(10);
  search->top_k({rows.row(0), 2, 20, rows.stride()}, excluded, 5, hits);
  std::vector<Hit> wanted(10);
  top_k(rows.view(), {rows.row(0), 2, 20, rows.stride()}, excluded, 5, wanted);
  expect_same(hits, wanted);
  for (size_t i = 0; i < 5; ++i) EXPECT_TRUE(hits[i].row != 0 && hits[i].row != 7 && hits[i].row != 2'999);
}

TEST_P(RowSearchTest, GivesFewerWhereThereAreNoMoreAndTheLowerOfEquals) {
  Matrix rows = spread_unit_rows(3, 8, 1, 1.0f);
  std::copy_n(rows.row(0), 8, rows.row(2));
  const auto search = RowSearch::make(rows.view(), GetParam()).value();
  std::vector<Hit> hits(5);
  search->top_k({rows.row(0), 1, 8, rows.stride()}, {}, 5, hits);
  EXPECT_EQ(hits[0].row, 0);
  EXPECT_EQ(hits[1].row, 2);
  EXPECT_EQ(hits[3], Hit{});
  const Matrix none = Matrix::make(0, 8).value();
  RowSearch::make(none.view(), GetParam()).value()->top_k({rows.row(0), 1, 8, rows.stride()}, {}, 5, hits);
  EXPECT_EQ(hits[0], Hit{});
}

TEST_P(RowSearchTest, AnswersAQueryOfZeros) {
  const Matrix rows = spread_unit_rows(100, 8, 1, 1.0f), zeros = Matrix::make(1, 8).value();
  const auto search = RowSearch::make(rows.view(), GetParam()).value();
  std::vector<Hit> hits(3);
  search->top_k(zeros.view(), {}, 3, hits);
  for (int32_t i = 0; i < 3; ++i) EXPECT_EQ(hits[static_cast<size_t>(i)], (Hit{i, 0.0f}));
}

INSTANTIATE_TEST_SUITE_P(Kinds, RowSearchTest, ::testing::Values("auto", "reference", "simd", "bf16", "amx"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace streamvec
