// Skip-gram with negative sampling on the card. Text goes there as slots; what follows (subsampling, windows,
// negatives, blocks of pairs) happens there, with draws that depend on the chunk's seed and a word's place alone.
//
// A block is the CPU's (kernel/pair_block.h, model/window_plan.h): neighbouring centres with shared negatives, products
// in bf16 with fp32 sums on rows of fp32 or bf16, SGD's summed steps cut. Some blocks are in work at once, each on rows
// as they were when it began, and their steps are added without loss. So a row that many of them have gets the sum of
// steps that do not know of each other: such rows' steps are shortened (`crowd`), as a longer cut sum would be.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/vocab/chunk.h"
#include "streamvec/vocab/sampling.h"

namespace streamvec::cuda {

struct SgnsOptions {
  int64_t rows_max = 0;  // of each table
  int64_t dim = 0;
  // Settled: model/window_plan.h says what they mean.
  int32_t window = 5, negatives = 10, centres = 22, negatives_shared = 42;
  float step_max = 0.25f;  // of kernel/pair_block.h
  int64_t words = 0;       // that will be trained on in all, about: few have few blocks in work; 0: not known
  // In work at once at most; more: faster, and steps know less of each other; 0: one a multiprocessor.
  int32_t blocks = 0;
  float crowd = 0;  // what the steps of all blocks in work may sum up to in a row; 0: its own best
  // First steps matter most, and many at once go astray: so many words have to be trained for each block in work, but
  // for a few that always are; -1: its own best.
  int64_t words_per_block = -1;
  int64_t kept_bytes = 0;  // of text that may stay on the card for later epochs
  // Rows are kept in bf16, half as large; steps are rounded up or down by chance, so that none is lost.
  bool bf16 = false;
  bool adagrad = false;  // steps as optim/optimizer.h has them; else plain ones, cut by step_max
  bool at_once = false;  // text never waits for more while the card has nothing to do: of streams, which may be slow
};

struct SgnsTotals {
  int64_t pairs = 0, refused = 0;
  double loss = 0, slope = 0;
  int64_t fresh_pairs = 0;  // of these, those of fresh chunks (SgnsManner)
  double fresh_loss = 0;
};

// How a chunk is trained on.
struct SgnsManner {
  float lr = 0;
  uint64_t draw = 0;             // its seed
  bool fresh = false;            // counted apart as well
  std::optional<uint64_t> name;  // what it was like is asked for: told() says it under this name
};
struct SgnsTold {
  uint64_t name = 0;
  int64_t pairs = 0;
  double loss = 0, slope = 0;
};

// Thread-safe, but for what says otherwise. Errors of the card come late, with whatever call comes next, and stay.
class SgnsTrainer {
 public:
  virtual ~SgnsTrainer() = default;
  virtual std::string name() const = 0;  // the card's, and how it keeps tables

  // Copies the first `input.rows` rows of both tables to the card. Waits.
  virtual Status put(MatrixView<const float> input, MatrixView<const float> output) = 0;
  // Of AdaGrad, likewise: its sums, one a row.
  virtual Status put_sums(MatrixView<const float> input, MatrixView<const float> output) = 0;
  // Single rows, which take effect before any chunk that is added later; AdaGrad's sums begin anew.
  virtual Status put_row(int64_t row, std::span<const float> input, std::span<const float> output) = 0;
  // What draws go by, from the next chunk on. Costs nothing when they are the tables of the last call.
  virtual Status set_tables(const SamplingTables& tables) = 0;

  // Trains on the chunk, now or soon. Waits while the card has enough to do.
  virtual Status add(const Chunk& chunk, const SgnsManner& manner) = 0;
  Status add(const Chunk& chunk, float lr, uint64_t draw) { return add(chunk, {lr, draw, false, {}}); }
  // The same, and keeps the chunk on the card under `key` if there is room; then known(key), and add_known trains on it
  // again.
  virtual Status add(const Chunk& chunk, float lr, uint64_t draw, uint64_t key) = 0;
  virtual bool known(uint64_t key) const = 0;
  virtual bool keeps_all() const = 0;  // whether there was room for all that came with a key
  virtual Status add_known(uint64_t key, float lr, uint64_t draw) = 0;

  // What has been done since the last call; with what is still in work if `all`, waiting for it.
  virtual Result<SgnsTotals> totals(bool all) = 0;
  // What chunks with a name were like, of those known to be done by the last totals(), each once; one that was too long
  // for a batch in its parts.
  virtual std::vector<SgnsTold> told() = 0;
  // Waits for all that was added, and copies rows back.
  virtual Status get(MatrixView<float> input, MatrixView<float> output) = 0;
  virtual Status get_sums(MatrixView<float> input, MatrixView<float> output) = 0;
};

// The errors of find_device(). kInvalidArgument when a block does not fit the card's shared memory, kResourceExhausted
// when the tables do not fit its memory.
Result<std::unique_ptr<SgnsTrainer>> make_sgns_trainer(const SgnsOptions& options);

}  // namespace streamvec::cuda
