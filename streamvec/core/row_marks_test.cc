#include "streamvec/core/row_marks.h"

#include <gtest/gtest.h>

#include <thread>

namespace streamvec {
namespace {

TEST(RowMarks, GiveEachChangedRowOnceAndInOrder) {
  RowMarks marks(200);
  for (const int64_t row : {199, 3, 64, 3, 127}) marks.mark(row);
  std::vector<uint32_t> rows;
  marks.take(std::vector<uint64_t>{~uint64_t{0}, ~uint64_t{0}, 0, 0}, rows);
  EXPECT_EQ(rows, (std::vector<uint32_t>{3, 64, 127}));
  marks.take(std::vector<uint64_t>(4, ~uint64_t{0}), rows);
  EXPECT_EQ(rows, (std::vector<uint32_t>{3, 64, 127, 199}));
}

TEST(RowMarks, OfRowsThatAreNotWantedStay) {
  RowMarks marks(64);
  for (const int64_t row : {1, 2, 3}) marks.mark(row);
  std::vector<uint32_t> rows;
  marks.take(std::vector<uint64_t>{uint64_t{1} << 2}, rows);
  EXPECT_EQ(rows, (std::vector<uint32_t>{2}));
  marks.take(std::vector<uint64_t>{~uint64_t{0}}, rows);
  EXPECT_EQ(rows, (std::vector<uint32_t>{2, 1, 3}));
}

TEST(RowMarks, LoseNoneWhileThreadsMarkAndOneTakes) {
  constexpr int64_t kRows = 128;
  constexpr int kTimes = 20'000;
  RowMarks marks(kRows);
  std::vector<std::atomic<int>> changed(kRows);  // as a row is, before its mark
  std::atomic<int> ended{0};
  const auto train = [&](int64_t first) {
    for (int i = 0; i < kTimes; ++i) {
      const int64_t row = (first + i) % kRows;
      changed[static_cast<size_t>(row)].fetch_add(1, std::memory_order_relaxed);
      marks.mark(row);
    }
    ++ended;
  };
  const std::vector<uint64_t> all(kRows / 64, ~uint64_t{0});
  std::vector<int> seen(kRows, 0);
  std::thread one(train, 0), other(train, 64);
  for (bool more = true; more;) {
    more = ended < 2;
    std::vector<uint32_t> rows;
    marks.take(all, rows);
    for (const uint32_t row : rows) seen[row] = changed[row].load(std::memory_order_relaxed);
  }
  one.join();
  other.join();
  for (size_t row = 0; row < seen.size(); ++row) EXPECT_EQ(seen[row], changed[row].load()) << row;
}

}  // namespace
}  // namespace streamvec
