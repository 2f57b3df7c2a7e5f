// Which words meet in training: subsampled text is cut into blocks of neighbouring centres, each centre draws its
// window, and the block draws the negatives that all its centres share.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/vocab/chunk.h"
#include "streamvec/vocab/sampling.h"
#include "streamvec/vocab/vocabulary.h"

namespace streamvec {

struct WindowOptions {
  int32_t window = 5;            // a centre looks 1..window words to each side, drawn per centre
  int32_t negatives = 10;        // how many negatives each pair is weighed against
  int32_t centres = 0;           // of a block; 0: what fills the kernels' tiles
  int32_t negatives_shared = 0;  // drawn per block; 0: as many as an input would meet if each centre drew its own
};
// The options with their zeros filled in.
WindowOptions settled(WindowOptions options);

// One block. Positions are columns of the block: its centres and up to `window` words to each side.
struct WindowPlan {
  struct Window {
    int32_t centre;      // its column
    int32_t begin, end;  // columns it looks at, itself excepted
  };
  std::vector<Slot> columns;
  std::vector<Window> windows;  // one per centre; it may hold the centre alone
  std::vector<Slot> negatives;
  int64_t pairs = 0;
};

// Walks over one chunk after another. Draws depend on the chunk, the tables and the generator alone.
class WindowPlanner {
 public:
  explicit WindowPlanner(const WindowOptions& options) : options_(options) {}

  // Subsamples the chunk and goes to its beginning. `tables` and `random` are used until the next begin().
  void begin(const Chunk& chunk, const SamplingTables& tables, Random& random);
  // The next block; false at the end of the chunk. Blocks without any pair are passed over.
  bool next(WindowPlan& plan);

 private:
  void plan_windows(WindowPlan& plan);

  WindowOptions options_;
  std::vector<Slot> kept_;
  std::vector<int32_t> sentence_ends_;
  size_t sentence_ = 0;  // the sentence of the next centre
  int32_t next_centre_ = 0;
  const SamplingTables* tables_ = nullptr;
  Random* random_ = nullptr;
};

}  // namespace streamvec
