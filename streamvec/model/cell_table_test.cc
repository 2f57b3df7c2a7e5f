#include "streamvec/model/cell_table.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <future>
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

// What a checkpoint keeps. `meanwhile` is called whenever bytes are on their way.
std::string written(
    const CellTable& table, const std::function<void()>& meanwhile = [] {}) {
  std::string bytes;
  const Status status = table.write([&](std::string_view more) {
    bytes += more;
    meanwhile();
    return Status();
  });
  EXPECT_TRUE(status.ok());
  return bytes;
}

// The cells of such bytes with their weights, each as of its block's time.
std::map<uint64_t, double> cells_in(std::string_view bytes) {
  constexpr size_t kHeader = 8, kBlock = 24, kCell = 16;
  std::map<uint64_t, double> cells;
  bytes.remove_prefix(kHeader);
  for (int64_t count = 1; count > 0;) {
    std::memcpy(&count, bytes.data(), sizeof count);
    bytes.remove_prefix(kBlock);
    for (int64_t i = 0; i < count; ++i, bytes.remove_prefix(kCell)) {
      std::pair<uint64_t, double> cell;
      std::memcpy(&cell.first, bytes.data(), sizeof cell.first);
      std::memcpy(&cell.second, bytes.data() + sizeof cell.first, sizeof cell.second);
      EXPECT_TRUE(cells.insert(cell).second) << "twice";
    }
  }
  EXPECT_TRUE(bytes.empty());
  return cells;
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

TEST(CellTable, NoWordInheritsTheCellsOfOneThatHadItsSlotLongAgo) {
  CellTable table({.memory_bytes = 1 << 20, .window = 2});
  for (int owner = 1; owner <= 1'000; ++owner) {
    table.add(chunk_of({{0, 1, 2}}), 0);
    table.forget(1);
    EXPECT_EQ(table.cells() > 0, true);
    if (owner % 255 > 1 && owner % 256 > 1) continue;
    const auto held = drawn_from(table);
    EXPECT_EQ(held.count({0, 1}), 0u) << owner;
    EXPECT_EQ(held.count({1, 2}), 0u) << owner;
    EXPECT_EQ(held.at({0, 2}), 0.5 * owner);
  }
}

TEST(CellTable, ACellThatIsNeverMetIsGoneWhenItsGenerationComesRound) {
  CellTable table({.memory_bytes = 1 << 20, .window = 2});
  table.add(chunk_of({{0, 1, 2}}), 0);
  for (int i = 0; i < 256; ++i) table.forget(1);
  EXPECT_EQ(drawn_from(table), (std::map<Pair, float>{{{0, 2}, 0.5}, {{2, 0}, 0.5}}));
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
  ASSERT_TRUE(restored.restore(written(table), 20).ok());
  for (CellTable* each : {&table, &restored}) each->add(random_chunk(20, 300, 2), 720);
  EXPECT_EQ(drawn_from(restored), drawn_from(table));
}

TEST(CellTable, CountingGoesOnWhileItIsWritten) {
  CellTable table({.memory_bytes = 1 << 20, .window = 2});
  table.add(chunk_of({{0, 1, 2}}), 0);
  written(table, [&] {
    const auto added = std::async(std::launch::async, [&] { return table.add(chunk_of({{0, 1}}), 0); });
    EXPECT_EQ(added.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  });
}

TEST(CellTable, HasEveryCellOnceThoughItGrowsAndFadesWhileItIsWritten) {
  const CellTable::Options options{.memory_bytes = 1 << 26, .window = 5, .half_life = 1'000};
  CellTable table(options), restored(options);
  for (uint64_t i = 0; i < 3; ++i) table.add(random_chunk(500, 2'000, i), 0);
  const std::map<uint64_t, double> before = cells_in(written(table));
  const int64_t memory = table.memory_bytes();
  double t = 0;
  const std::string bytes = written(table, [&] {
    if (t > 500) return;
    Chunk others = random_chunk(1'500, 1'000, static_cast<uint64_t>(t));
    for (Slot& slot : others.slots) slot += 500;
    table.add(others, t += 110);
  });
  EXPECT_GT(table.memory_bytes(), memory);
  ASSERT_TRUE(restored.restore(bytes, 2'000).ok());
  std::map<uint64_t, double> held = cells_in(written(restored));
  EXPECT_GT(held.size(), before.size());
  const auto& [key, x] = *before.begin();
  const double faded = held[key] / x;  // by how much is a matter of when the last piece was written
  EXPECT_GT(faded, 0.4);
  EXPECT_LT(faded, 0.9);
  for (const auto& [each, weight] : before) ASSERT_NEAR(held[each], weight * faded, 1e-5 * weight);
}

TEST(CellTable, GoesOnWithAnotherHalfLife) {
  CellTable table({.memory_bytes = 1 << 20, .window = 1, .half_life = 10});
  table.add(chunk_of({{0, 1}}), 20'000);
  table.add(chunk_of({{2, 3}}), 20'010);
  CellTable restored({.memory_bytes = 1 << 20, .window = 1});
  ASSERT_TRUE(restored.restore(written(table), 4).ok());
  restored.add(chunk_of({{2, 3}}), 20'010);
  EXPECT_FLOAT_EQ(drawn_from(restored).at({0, 1}), 0.5);
  EXPECT_FLOAT_EQ(drawn_from(restored).at({2, 3}), 2);
}

TEST(CellTable, RefusesBytesThatAreNoCells) {
  const CellTable::Options options{.memory_bytes = 1 << 20, .window = 3};
  CellTable table(options);
  table.add(random_chunk(20, 300, 1), 0);
  const std::string bytes = written(table);
  for (const std::string& damaged : {std::string(), bytes.substr(0, 20), bytes.substr(0, bytes.size() - 1), bytes + "x",
                                     "x" + bytes.substr(1), bytes.substr(0, bytes.size() - 4) + "\xff\xff\xff\xff"})
    EXPECT_EQ(CellTable(options).restore(damaged, 20).code(), Code::kDataLoss);
  EXPECT_EQ(CellTable(options).restore(bytes, 19).code(), Code::kDataLoss);
  EXPECT_TRUE(CellTable(options).restore(bytes, 20).ok());
}

}  // namespace
}  // namespace streamvec
