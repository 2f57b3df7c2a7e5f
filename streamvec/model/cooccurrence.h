// Which words stand near which, and how often: the co-occurrence matrix that GloVe learns from, counted in bounded
// memory. What does not fit is written to temporary files as sorted runs, which are merged at the end.
//
// Two words at distance d, 1 to `window`, in one sentence add 1/d. The matrix is symmetric, so a pair is kept once, and
// a word beside itself counts twice, as it does when each side is counted. Weights are whole multiples of 2^-32: sums
// are exact, whatever the order, the threads and the runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/core/temporary_file.h"
#include "streamvec/vocab/chunk.h"
#include "streamvec/vocab/vocabulary.h"

namespace streamvec {

// An unordered pair of slots as a number. Sorted, pairs go by tile: squares of 256 x 256 slots.
class CellKey {
 public:
  static constexpr int kTileBits = 8;
  static constexpr int64_t kSlotsMax = int64_t{1} << 24;

  CellKey(Slot a, Slot b) {
    const auto low = static_cast<uint64_t>(a < b ? a : b), high = static_cast<uint64_t>(a < b ? b : a);
    value_ = (low >> 8) << 32 | (high >> 8) << 16 | (low & 255) << 8 | (high & 255);
  }
  explicit CellKey(uint64_t value) : value_(value) {}

  uint64_t value() const { return value_; }  // below 2^48
  Slot low() const { return static_cast<Slot>((value_ >> 32) << 8 | (value_ >> 8 & 255)); }
  Slot high() const { return static_cast<Slot>((value_ >> 16 & 65535) << 8 | (value_ & 255)); }
  uint32_t tile() const { return static_cast<uint32_t>(value_ >> 16); }
  uint16_t place() const { return static_cast<uint16_t>(value_); }  // in the tile

 private:
  uint64_t value_;
};

struct CountedCell {
  uint64_t key = 0;
  uint64_t units = 0;  // of 2^-32; 0: no cell
};

// Every pair of the chunk that is at most `window` apart, with 1/distance in units.
template <typename Visit>
void visit_pairs(const Chunk& chunk, int32_t window, const Visit& visit) {
  int32_t begin = 0;
  for (const int32_t end : chunk.sentence_ends) {
    for (int32_t i = begin; i < end; ++i)
      for (int32_t d = 1; d <= window && i - d >= begin; ++d) {
        const Slot a = chunk.slots[static_cast<size_t>(i)], b = chunk.slots[static_cast<size_t>(i - d)];
        const uint64_t units = (uint64_t{1} << 32) / static_cast<uint64_t>(d);
        visit(CellKey(a, b), a == b ? 2 * units : units);
      }
    begin = end;
  }
}

// Counts for one thread.
class CellCounter {
 public:
  struct Options {
    int32_t window = 5;
    int64_t memory_bytes = int64_t{1} << 30;  // the table never takes more; 64 KB at least
    std::string dir = ".";                    // where runs are written
  };
  explicit CellCounter(Options options);

  // An error when a run could not be written (a full disk); the counts are of no use then.
  Status add(const Chunk& chunk);

  int64_t memory_bytes() const { return static_cast<int64_t>(table_.capacity() * sizeof(CountedCell)); }
  int64_t memory_bytes_max() const { return memory_bytes_max_; }  // the most it took so far, growing included
  int64_t runs() const { return static_cast<int64_t>(runs_.size()); }

 private:
  friend class CellMerge;
  struct Run {
    int64_t offset = 0, cells = 0;
  };

  void add(uint64_t key, uint64_t units);
  size_t place_of(uint64_t key) const;
  Status make_room();
  void grow();
  int64_t sort();  // the cells to the front, by key; returns how many
  Status spill();

  Options options_;
  std::vector<CountedCell> table_;
  int64_t used_ = 0, capacity_max_ = 0, memory_bytes_max_ = 0;
  int32_t doublings_left_ = 0;
  std::optional<TemporaryFile> file_;
  std::vector<Run> runs_;
  std::vector<CountedCell> batch_;
};

// The finished matrix, by tiles, in memory or in a temporary file; 6 bytes a cell. Threads may read at once.
class CellStore {
 public:
  // A tile, or a random part of a dense one. More: faster, and the cost falls more slowly (docs/BENCHMARKS.md).
  static constexpr size_t kTileCellsMax = 1'024;
  struct Tile {
    Slot first_low = 0, first_high = 0;  // the slots at its corner
    int32_t cells = 0;
    int64_t offset = 0;
  };
  // The cells of one tile: slots first_low + (place >> 8) and first_high + (place & 255).
  struct Cells {
    std::vector<uint16_t> places;
    std::vector<float> x;  // filled up with ones to a multiple of 16
  };

  // What the counters hold. `memory_bytes` is for the result: what would be larger goes to a file in `dir`.
  static Result<CellStore> merge(std::vector<CellCounter> counters, int64_t memory_bytes, const std::string& dir);

  const std::vector<Tile>& tiles() const { return tiles_; }
  Status read(const Tile& tile, Cells& cells) const;

  int64_t cells() const { return cells_; }               // of the matrix: those off the diagonal count twice
  uint64_t fingerprint() const { return fingerprint_; }  // of all cells and their weights
  bool resident() const { return !file_; }

 private:
  friend class CellMerge;

  std::vector<Tile> tiles_;
  std::vector<char> bytes_;
  std::optional<TemporaryFile> file_;
  int64_t cells_ = 0;
  uint64_t fingerprint_ = 0;
};

}  // namespace streamvec
