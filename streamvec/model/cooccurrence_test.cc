#include "streamvec/model/cooccurrence.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "streamvec/model/testing.h"

namespace streamvec {
namespace {

using testing::chunk_of;
using testing::random_chunk;
using Pair = std::pair<Slot, Slot>;

std::string temporary_dir() {
  return ::testing::TempDir();
}

CellCounter::Options counter_options(int32_t window, int64_t memory_bytes = 1 << 24) {
  return {window, memory_bytes, temporary_dir()};
}

// Both halves of the matrix.
std::map<Pair, float> matrix_of(const CellStore& store) {
  std::map<Pair, float> matrix;
  CellStore::Cells cells;
  for (const CellStore::Tile& tile : store.tiles()) {
    EXPECT_TRUE(store.read(tile, cells).ok());
    for (size_t i = 0; i < cells.places.size(); ++i) {
      const Slot low = tile.first_low + (cells.places[i] >> 8), high = tile.first_high + (cells.places[i] & 255);
      EXPECT_TRUE(matrix.insert({{low, high}, cells.x[i]}).second);
      matrix[{high, low}] = cells.x[i];
    }
  }
  return matrix;
}

CellStore counted(const std::vector<Chunk>& chunks, int32_t window, int64_t memory_bytes, size_t counters,
                  int64_t result_bytes = 1 << 24) {
  std::vector<CellCounter> all;
  for (size_t i = 0; i < counters; ++i) all.emplace_back(counter_options(window, memory_bytes));
  for (size_t i = 0; i < chunks.size(); ++i) EXPECT_TRUE(all[i % counters].add(chunks[i]).ok());
  return CellStore::merge(std::move(all), result_bytes, temporary_dir()).value();
}

// The definition: every word looks to its left and to its right.
std::map<Pair, double> defined(const Chunk& chunk, int32_t window) {
  std::map<Pair, double> matrix;
  int32_t begin = 0;
  for (const int32_t end : chunk.sentence_ends) {
    for (int32_t i = begin; i < end; ++i)
      for (int32_t j = std::max(begin, i - window); j <= std::min(end - 1, i + window); ++j)
        if (i != j) matrix[{chunk.slots[i], chunk.slots[j]}] += 1.0 / std::abs(i - j);
    begin = end;
  }
  return matrix;
}

TEST(CellKey, HoldsAnyTwoSlotsInEitherOrder) {
  for (const Pair& pair :
       std::vector<Pair>{{0, 0}, {3, 700}, {255, 256}, {70'000, 12}, {(1 << 24) - 1, (1 << 24) - 2}}) {
    const CellKey key(pair.first, pair.second), turned(pair.second, pair.first);
    EXPECT_EQ(key.value(), turned.value());
    EXPECT_EQ(key.low(), std::min(pair.first, pair.second));
    EXPECT_EQ(key.high(), std::max(pair.first, pair.second));
    EXPECT_LT(key.value(), uint64_t{1} << 48);
  }
}

TEST(Cooccurrence, CountsWhatTheDefinitionSays) {
  const Chunk chunk = random_chunk(40, 3'000, 1);
  for (const int32_t window : {1, 2, 7, 50}) {
    const auto matrix = matrix_of(counted({chunk}, window, 1 << 24, 1));
    const auto wanted = defined(chunk, window);
    ASSERT_EQ(matrix.size(), wanted.size());
    for (const auto& [pair, x] : wanted) EXPECT_NEAR(matrix.at(pair), x, 1e-5 * x);
  }
}

TEST(Cooccurrence, DoesNotCrossSentences) {
  const auto matrix = matrix_of(counted({chunk_of({{0, 1}, {2}, {3, 1}})}, 10, 1 << 24, 1));
  EXPECT_EQ(matrix, (std::map<Pair, float>{{{0, 1}, 1}, {{1, 0}, 1}, {{1, 3}, 1}, {{3, 1}, 1}}));
}

TEST(Cooccurrence, SpilledRunsMergeToExactlyTheCountsOfOneTable) {
  std::vector<Chunk> chunks;
  for (uint64_t i = 0; i < 12; ++i) chunks.push_back(random_chunk(600, 3'000, i));
  const CellStore whole = counted(chunks, 6, 1 << 26, 1);
  CellCounter small(counter_options(6, 1 << 16));
  for (const Chunk& chunk : chunks) ASSERT_TRUE(small.add(chunk).ok());
  ASSERT_GT(small.runs(), 10);
  std::vector<CellCounter> one;
  one.push_back(std::move(small));
  const CellStore merged = CellStore::merge(std::move(one), 1 << 24, temporary_dir()).value();
  const CellStore three = counted(chunks, 6, 1 << 16, 3), in_file = counted(chunks, 6, 1 << 16, 2, 1'000);
  EXPECT_TRUE(merged.resident());
  EXPECT_FALSE(in_file.resident());
  for (const CellStore* store : {&merged, &three, &in_file}) {
    EXPECT_EQ(store->fingerprint(), whole.fingerprint());
    EXPECT_EQ(store->cells(), whole.cells());
    EXPECT_EQ(matrix_of(*store), matrix_of(whole));
  }
  EXPECT_EQ(static_cast<int64_t>(matrix_of(whole).size()), whole.cells());
}

TEST(Cooccurrence, TheTableNeverTakesMoreThanItsLimit) {
  for (const int64_t limit : {int64_t{1} << 16, int64_t{3'000'000}, int64_t{1} << 23}) {
    CellCounter counter(counter_options(10, limit));
    for (uint64_t i = 0; i < 10; ++i) {
      ASSERT_TRUE(counter.add(random_chunk(3'000, 20'000, i)).ok());
      ASSERT_LE(counter.memory_bytes(), limit);
    }
    EXPECT_LE(counter.memory_bytes_max(), limit);
    EXPECT_GT(counter.runs(), 0);
  }
}

TEST(Cooccurrence, DenseTilesComeInRandomParts) {
  const CellStore store = counted({random_chunk(300, 30'000, 3)}, 5, 1 << 26, 1);
  CellStore::Cells cells;
  std::map<Pair, int> parts;
  for (const CellStore::Tile& tile : store.tiles()) {
    ++parts[{tile.first_low, tile.first_high}];
    ASSERT_TRUE(store.read(tile, cells).ok());
    ASSERT_LE(cells.places.size(), CellStore::kTileCellsMax);
    EXPECT_EQ(cells.x.size() % 16, 0u);
    EXPECT_FALSE(std::is_sorted(cells.places.begin(), cells.places.end()));
  }
  EXPECT_EQ(parts.size(), 3u);
  EXPECT_GT((parts[{0, 0}]), 8);
  EXPECT_EQ(static_cast<int64_t>(matrix_of(store).size()), store.cells());
}

TEST(Cooccurrence, SaysWhereRunsCannotBeWritten) {
  CellCounter counter({5, 1 << 16, "/no/such/directory"});
  const Status status = counter.add(random_chunk(3'000, 20'000, 1));
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_NE(status.message().find("/no/such/directory"), std::string::npos);
}

TEST(Cooccurrence, LeavesNoFilesBehind) {
  const std::string dir = temporary_dir() + "/cooccurrence_files";
  std::filesystem::create_directories(dir);
  CellCounter counter({5, 1 << 16, dir});
  ASSERT_TRUE(counter.add(random_chunk(3'000, 20'000, 1)).ok());
  ASSERT_GT(counter.runs(), 0);
  EXPECT_TRUE(std::filesystem::is_empty(dir));
}

}  // namespace
}  // namespace streamvec
