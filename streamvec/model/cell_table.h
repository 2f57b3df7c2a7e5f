// The co-occurrence matrix of a stream: a table of bounded size that keeps the heavy cells and fades with the stream's
// half-life. When there is no room, a new pair and the lightest cell of its bucket become one cell of their summed
// weight, which has the new pair's name with the chance that its share says: every pair's expected weight is what was
// counted of it (unbiased space saving; Ting 2018).
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>
#include <vector>

#include "streamvec/core/forward_decay.h"
#include "streamvec/core/random.h"
#include "streamvec/core/status.h"
#include "streamvec/model/cooccurrence.h"

namespace streamvec {

// Thread-safe: one lock, held while a chunk is counted, a batch is drawn or a piece is copied for a checkpoint.
class CellTable {
 public:
  struct Options {
    int64_t memory_bytes = int64_t{1} << 30;  // for cells, never more; about 13 bytes each
    int32_t window = 5;
    double half_life = ForwardDecay::kForever;  // in the unit of `t`
    uint64_t seed = 1;
  };
  struct Drawn {
    Slot word = 0, context = 0;
    float x = 0;
  };
  explicit CellTable(Options options);

  // Counts the chunk, which is of time t, and returns how many pairs it had.
  int64_t add(const Chunk& chunk, double t);
  // Drops the cells of this slot: another word has it now.
  void forget(Slot slot);
  // Draws `count` cells, all held with equal chance, either way round; fewer, also none, when few are held.
  void draw(int64_t count, Random& random, std::vector<Drawn>& cells);

  int32_t window() const { return options_.window; }
  int64_t cells() const;  // held; cells of words that are gone count until they are met
  int64_t memory_bytes() const;

  // All cells, for a checkpoint; and back, into an empty table, which may have another half-life. Counting goes on
  // while `sink` is busy: each cell is as it was when its piece was copied. kDataLoss for bytes that are no such cells,
  // or name slots from `slots` on.
  Status write(const std::function<Status(std::string_view)>& sink) const;
  Status restore(std::string_view bytes, int64_t slots);

 private:
  static constexpr int kPlaces = 5;
  struct alignas(64) Bucket {
    uint64_t keys[kPlaces] = {};  // a CellKey and, above it, the generations of its slots
    float weights[kPlaces] = {};  // 0: empty
  };

  uint64_t tagged(CellKey key) const;
  bool stale(uint64_t tagged_key) const;
  Bucket& bucket_of(uint64_t key);
  void add(uint64_t key, float weight);  // a tagged key
  void replace_lightest(Bucket& bucket, uint64_t key, float weight);
  void make_room();
  void drop_stale();
  void advance(double t);
  struct Piece;
  bool copy_piece(Piece& piece) const;

  const Options options_;
  mutable std::mutex mutex_;
  std::vector<Bucket> buckets_;
  int32_t doublings_left_ = 0;
  int64_t used_ = 0;
  ForwardDecay decay_;
  double now_ = 0;
  Random random_;
  std::vector<uint8_t> generations_;  // by slot; none: 0. Where one has run out, all begin anew (drop_stale)
};

}  // namespace streamvec
