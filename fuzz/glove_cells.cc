// glove.bin (model/cell_table.h): what is taken back holds cells of slots that are there, each with a finite weight,
// and written and taken back again it holds the same.
#include <cmath>
#include <map>

#include "fuzz/fuzz.h"
#include "streamvec/model/cell_table.h"

namespace streamvec {
namespace {

constexpr int64_t kSlots = 300;
const CellTable::Options kOptions{.memory_bytes = 1 << 16, .window = 3, .half_life = 50};

std::string file_of(const CellTable& table) {
  std::string bytes;
  const Status status = table.write([&](std::string_view more) {
    bytes += more;
    return Status();
  });
  STREAMVEC_CHECK(status.ok());
  return bytes;
}

std::string cells_of(std::vector<Slot> slots, double t) {
  CellTable table(kOptions);
  Chunk chunk;
  chunk.sentence_ends = {static_cast<int32_t>(slots.size())};
  chunk.slots = std::move(slots);
  table.add(chunk, t);
  return file_of(table);
}

std::string first_version(const std::string& file) {
  std::string older = file.substr(0, file.size() - 24);
  older[4] = 1;
  return older;
}

void check_cells(CellTable& table) {
  Random random(1);
  std::vector<CellTable::Drawn> cells;
  table.draw(200, random, cells);
  for (const CellTable::Drawn& cell : cells) {
    STREAMVEC_CHECK(cell.word >= 0 && cell.word < kSlots && cell.context >= 0 && cell.context < kSlots);
    STREAMVEC_CHECK(cell.x > 0 && std::isfinite(cell.x));
  }
}

}  // namespace

FuzzStart fuzz_start() {
  const std::string some = cells_of({1, 2, 3, 2, 299}, 700);
  return {.seeds = {some, first_version(some), cells_of({0, 1}, 1e9), cells_of({}, 0)},
          .words = {std::string("GLC1\2\0\0\0", 8), std::string("GLC1\1\0\0\0", 8), std::string(24, '\0'),
                    std::string("\0\0\0\0\0\0\xF0\x7F", 8), std::string("\xFF\xFF\xFF\xFF\xFF\xFF\xEF\x7F", 8),
                    std::string("\1\0\0\0\0\0\0\0", 8), std::string(8, '\xFF')}};
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  CellTable table(kOptions), again(kOptions);
  if (!table.restore({reinterpret_cast<const char*>(data), size}, kSlots).ok()) return 0;
  const std::string file = file_of(table);
  STREAMVEC_CHECK(again.restore(file, kSlots).ok());
  STREAMVEC_CHECK(again.cells() <= table.cells());
  for (CellTable* each : {&table, &again}) check_cells(*each);
  Chunk chunk;
  chunk.slots = {4, 5, 6};
  chunk.sentence_ends = {3};
  table.add(chunk, 800);
  check_cells(table);
  return 0;
}
