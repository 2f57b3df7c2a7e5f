// GloVe's tables and its two ways of training: tile by tile over a finished matrix (cooccurrence.h), and on a stream,
// where every chunk is counted into a bounded table and as many cells are drawn from it as the chunk has pairs.
// A word's vector is the sum of its two rows, as the authors' program writes it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/core/random.h"
#include "streamvec/core/status.h"
#include "streamvec/kernel/glove_step.h"
#include "streamvec/model/cell_table.h"
#include "streamvec/model/cooccurrence.h"

namespace streamvec {

class Parameters;
struct StepStats;

// What GloVe has beside the rows of Parameters: [0] of the words, [1] of the contexts.
struct GloveTables {
  static Result<GloveTables> make(int64_t rows, int64_t dim, int64_t rows_max);
  void grow(int64_t rows);
  void restart(Slot row);  // everything of that slot begins anew

  Matrix sums[2];    // of squared steps
  Matrix biases[2];  // each with its own sum
  GloveWeighting weighting;
  std::unique_ptr<CellTable> cells;  // of streams and standard input
  bool counts_chunks = true;         // the worker counts the chunks it is given; false: somebody else does
};

// The vectors of the first `rows` slots: the sums of words' and contexts' rows. Threads may be training meanwhile.
Result<Matrix> glove_vectors(Parameters& parameters, int64_t rows);

// Trains on finished tiles. One per thread.
class GloveTrainer {
 public:
  // Borrows parameters, which must have `glove`.
  GloveTrainer(Parameters& parameters, GloveKernel kernel) : parameters_(parameters), kernel_(kernel) {}

  // Every cell of the tile once, in an order drawn from `random`: first words of the low slots, then of the high ones.
  // One thread and equal arguments give equal bits.
  Result<StepStats> step(const CellStore& store, const CellStore::Tile& tile, float lr, Random& random);
  // The cells given, in their order.
  StepStats step(const std::vector<CellTable::Drawn>& cells, float lr);

 private:
  StepStats step_cells(float lr);

  Parameters& parameters_;
  const GloveKernel kernel_;
  CellStore::Cells read_;
  std::vector<float> x_, log_x_, weights_;
  std::vector<GloveCell> cells_;
};

}  // namespace streamvec
