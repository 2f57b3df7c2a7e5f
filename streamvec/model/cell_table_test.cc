#include "streamvec/model/cell_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "streamvec/model/testing.h"

namespace streamvec {
namespace {

using testing::chunk_of;
using testing::random_chunk;
using Pair = std::pair<Slot, Slot>;

std::map<Pair, float> drawn_from(CellTable& table, int64_t count = 20'000) {
  Random random(1);
  std::vector<CellTable::Drawn> cells;
  std::map<Pair, float> found;
  table.draw(count, random, cells);
  for (const auto& cell : cells) found[{cell.word, cell.context}] = cell.x;
  return found;
}

TEST(CellTable, HoldsEveryCellWhileThereIsRoom) {
  CellTable table({.memory_bytes = 1 << 20, .window = 2});
  table.add(chunk_of({{0, 1, 2}, {0, 1}}), 0);
  EXPECT_EQ(table.cells(), 3);
  EXPECT_EQ(drawn_from(table),
            (std::map<Pair, float>{{{0, 1}, 2}, {{1, 0}, 2}, {{1, 2}, 1}, {{2, 1}, 1}, {{0, 2}, 0.5}, {{2, 0}, 0.5}}));
}

TEST(CellTable, GrowsBeforeItDropsAnything) {
  CellTable table({.memory_bytes = 1 << 27, .window = 5});
  std::set<uint64_t> pairs;
  for (uint64_t i = 0; i < 20; ++i) {
    const Chunk chunk = random_chunk(500, 2'000, i);
    table.add(chunk, 0);
    visit_pairs(chunk, 5, [&](CellKey key, uint64_t) { pairs.insert(key.value()); });
  }
  EXPECT_EQ(table.cells(), static_cast<int64_t>(pairs.size()));
}

TEST(CellTable, SaysHowManyPairsAChunkHas) {
  CellTable table({.memory_bytes = 1 << 20, .window = 2});
  EXPECT_EQ(table.add(chunk_of({{0, 1, 2, 3}}), 0), 5);
  EXPECT_EQ(table.add(chunk_of({{0}}), 0), 0);
}

TEST(CellTable, NeverTakesMoreThanItsLimit) {
  constexpr int64_t kLimit = 1 << 20;
  CellTable table({.memory_bytes = kLimit, .window = 10});
  for (uint64_t i = 0; i < 10; ++i) {
    table.add(random_chunk(5'000, 20'000, i), 0);
    ASSERT_LE(table.memory_bytes(), kLimit);
  }
  EXPECT_GT(table.cells(), kLimit / 64 * 5 / 2);
}

TEST(CellTable, KeepsTheHeavyCellsWhenThereIsNoRoom) {
  CellTable table({.memory_bytes = 1 << 14, .window = 1});
  for (uint64_t i = 0; i < 200; ++i) {
    table.add(chunk_of({{0, 1}, {2, 3}, {4, 5}}), 0);
    table.add(random_chunk(2'000, 100, i), 0);
  }
  const auto held = drawn_from(table);
  for (const Pair& pair : std::vector<Pair>{{0, 1}, {2, 3}, {4, 5}}) {
    ASSERT_EQ(held.count(pair), 1u);
    EXPECT_NEAR(held.at(pair), 200, 40);
  }
}

TEST(CellTable, KeepsTheWeightOfAllPairsTogether) {
  CellTable table({.memory_bytes = 1 << 14, .window = 1});
  double added = 0;
  for (uint64_t i = 0; i < 50; ++i) added += static_cast<double>(table.add(random_chunk(2'000, 100, i), 0));
  double held = 0;
  for (const auto& [pair, x] : drawn_from(table, 200'000)) held += x / (pair.first == pair.second ? 2 : 1);
  EXPECT_NEAR(held / 2, added, 0.02 * added);
}

TEST(CellTable, ForgetsTheCellsOfASlot) {
  CellTable table({.memory_bytes = 1 << 20, .window = 2});
  table.add(chunk_of({{0, 1, 2}}), 0);
  table.forget(1);
  EXPECT_EQ(drawn_from(table), (std::map<Pair, float>{{{0, 2}, 0.5}, {{2, 0}, 0.5}}));
  table.add(chunk_of({{1, 2}}), 0);
  EXPECT_EQ(drawn_from(table).at({1, 2}), 1);
}

TEST(CellTable, FadesWithTheHalfLife) {
  CellTable table({.memory_bytes = 1 << 20, .window = 1, .half_life = 10});
  table.add(chunk_of({{0, 1}}), 0);
  table.add(chunk_of({{2, 3}}), 20);
  EXPECT_FLOAT_EQ(drawn_from(table).at({0, 1}), 0.25);
  EXPECT_FLOAT_EQ(drawn_from(table).at({2, 3}), 1);
  table.add(chunk_of({{4, 5}}), 10'000);  // many landmarks later
  EXPECT_EQ(drawn_from(table), (std::map<Pair, float>{{{4, 5}, 1}, {{5, 4}, 1}}));
}

TEST(CellTable, GoesOnWithWhatWasSaved) {
  const CellTable::Options options{.memory_bytes = 1 << 20, .window = 3, .half_life = 50};
  CellTable table(options), restored(options);
  table.add(random_chunk(20, 300, 1), 700);
  table.forget(3);
  std::string bytes;
  ASSERT_TRUE(table
                  .write([&](std::string_view more) {
                    bytes += more;
                    return Status();
                  })
                  .ok());
  ASSERT_TRUE(restored.restore(bytes, 20).ok());
  for (CellTable* each : {&table, &restored}) each->add(random_chunk(20, 300, 2), 720);
  EXPECT_EQ(drawn_from(restored), drawn_from(table));
}

TEST(CellTable, RefusesBytesThatAreNoCells) {
  const CellTable::Options options{.memory_bytes = 1 << 20, .window = 3};
  CellTable table(options);
  table.add(random_chunk(20, 300, 1), 0);
  std::string bytes;
  ASSERT_TRUE(table
                  .write([&](std::string_view more) {
                    bytes += more;
                    return Status();
                  })
                  .ok());
  for (const std::string& damaged : {std::string(), bytes.substr(0, 20), bytes.substr(0, bytes.size() - 1), bytes + "x",
                                     "x" + bytes.substr(1), bytes.substr(0, bytes.size() - 4) + "\xff\xff\xff\xff"})
    EXPECT_EQ(CellTable(options).restore(damaged, 20).code(), Code::kDataLoss);
  EXPECT_EQ(CellTable(options).restore(bytes, 19).code(), Code::kDataLoss);
  EXPECT_TRUE(CellTable(options).restore(bytes, 20).ok());
}

}  // namespace
}  // namespace streamvec
