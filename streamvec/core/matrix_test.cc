#include "streamvec/core/matrix.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "streamvec/core/memory.h"

namespace streamvec {
namespace {

Matrix make(int64_t rows, int64_t cols, int64_t rows_max = 0) {
  return std::move(Matrix::make(rows, cols, rows_max)).value();
}

TEST(Matrix, RowsAreZeroedAlignedAndPaddedToWholeVectors) {
  for (int64_t cols : {1, 15, 16, 17, 200, 300}) {
    const Matrix matrix = make(7, cols);
    EXPECT_EQ(matrix.stride() % Matrix::kRowMultiple, 0);
    EXPECT_GE(matrix.stride(), cols);
    EXPECT_LT(matrix.stride(), cols + Matrix::kRowMultiple);
    for (int64_t i = 0; i < 7; ++i) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(matrix.row(i)) % 64, 0);
      EXPECT_EQ(std::count(matrix.row(i), matrix.row(i) + matrix.stride(), 0.0f), matrix.stride());
    }
  }
}

TEST(Matrix, GrowingKeepsRowsWhereTheyAreAndAddsZeroedOnes) {
  Matrix matrix = make(2, 5, 1'000'000);
  const float* first = matrix.row(0);
  matrix.row(1)[4] = 3;
  matrix.grow(1'000'000);
  EXPECT_EQ(matrix.rows(), 1'000'000);
  EXPECT_EQ(matrix.row(0), first);
  EXPECT_EQ(matrix.row(1)[4], 3);
  EXPECT_EQ(matrix.row(999'999)[4], 0);
}

TEST(Matrix, AReservationLargerThanMemoryTakesNoneUntilTouched) {
  Matrix matrix = make(1, 200, int64_t{100} << 20);  // 80 GB of addresses
  matrix.row(0)[0] = 1;
  matrix.grow(matrix.rows_max());
  matrix.row(matrix.rows() - 1)[199] = 2;
  EXPECT_EQ(matrix.row(matrix.rows() - 1)[199], 2);
}

TEST(Matrix, AFewRowsTakeAFewPages) {
  std::vector<Matrix> tables;
  const int64_t before = resident_memory();
  for (int i = 0; i < 100; ++i) {
    tables.push_back(make(3, 20));
    tables.back().row(2)[19] = 1;
  }
  EXPECT_LT(resident_memory() - before, 100 * 64'000);
}

TEST(MatrixDeathTest, GrowingPastItsReservationIsABrokenInvariant) {
  Matrix matrix = make(2, 5, 4);
  EXPECT_DEATH(matrix.grow(5), "broken invariant");
  EXPECT_DEATH(matrix.grow(1), "broken invariant");
}

TEST(Matrix, MoreThanAnAddressSpaceIsResourceExhaustedAndSaysWhatToTry) {
  for (int64_t rows : {int64_t{1} << 45, int64_t{1} << 62, INT64_MAX}) {
    const Result<Matrix> matrix = Matrix::make(0, 200, rows);
    ASSERT_FALSE(matrix.ok()) << rows;
    EXPECT_EQ(matrix.status().code(), Code::kResourceExhausted);
    EXPECT_NE(matrix.status().message().find("--dim"), std::string::npos);
  }
}

TEST(Matrix, EmptyOnesAreFine) {
  const Matrix none, no_rows = make(0, 3);
  EXPECT_EQ(none.rows(), 0);
  EXPECT_EQ(no_rows.rows(), 0);
  EXPECT_EQ(no_rows.cols(), 3);
  EXPECT_EQ(std::move(no_rows.copy()).value().rows(), 0);
}

TEST(Matrix, ACopyHasTheSameValuesInMemoryOfItsOwn) {
  Matrix matrix = make(3, 17, 10);
  for (int64_t i = 0; i < 3; ++i) std::fill_n(matrix.row(i), 17, static_cast<float>(i + 1));
  const Matrix copy = std::move(matrix.copy()).value();
  matrix.row(2)[16] = -1;
  EXPECT_EQ(copy.rows(), 3);
  EXPECT_EQ(copy.rows_max(), 3);
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(std::count(copy.row(i), copy.row(i) + 17, static_cast<float>(i + 1)), 17);
}

TEST(Matrix, ViewsSeeRowsWithoutPadding) {
  Matrix matrix = make(3, 17);
  matrix.view().row_span(1)[16] = 4;
  const MatrixView<const float> view = matrix.view();
  EXPECT_EQ(view.row_span(1).size(), 17);
  EXPECT_EQ(view.row(1)[16], 4);
  EXPECT_EQ(view.row(1) - view.row(0), matrix.stride());
}

#ifdef MADV_POPULATE_WRITE
TEST(Matrix, TakesTheMemoryOfItsRowsAtOnceWhenAsked) {
  constexpr int64_t kRows = 10'000;
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE)), bytes = kRows * 256 * sizeof(float);
  Matrix another = make(kRows, 256);
  if (::madvise(another.row(0), bytes, MADV_POPULATE_WRITE) != 0)
    GTEST_SKIP() << "this system is older than Linux 5.14";
  for (const int32_t threads : {1, 3, 100}) {
    Matrix matrix = make(kRows, 256);
    std::vector<unsigned char> in_memory(bytes / page);
    const auto pages_in_memory = [&] {
      STREAMVEC_CHECK_EQ(::mincore(matrix.row(0), bytes, in_memory.data()), 0);
      return std::count_if(in_memory.begin(), in_memory.end(), [](unsigned char here) { return (here & 1) != 0; });
    };
    ASSERT_EQ(pages_in_memory(), 0);
    matrix.take_pages(threads);
    EXPECT_EQ(pages_in_memory(), static_cast<int64_t>(in_memory.size())) << threads;
    EXPECT_EQ(std::count(matrix.row(0), matrix.row(0) + kRows * 256, 0.0f), kRows * 256);
  }
}
#endif

TEST(Matrix, MovingKeepsTheRowsWhereTheyAre) {
  Matrix matrix = make(3, 4);
  const float* first = matrix.row(0);
  const Matrix moved = std::move(matrix);
  EXPECT_EQ(moved.row(0), first);
  EXPECT_EQ(moved.rows(), 3);
}

}  // namespace
}  // namespace streamvec
