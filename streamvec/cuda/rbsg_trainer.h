// The character model's batches on the card (model/rbsg.h, model/trie_lstm.h have the same on the CPU): both encoders
// run over the tries of a batch level by level, each level one kernel of
// its product (tf32 or bf16, sums in fp32) and cells, and come back the same way; skip-gram's loss over the batch's
// vectors with its pool of negatives; Muon's products and Adam's kernel. The host lays out the next batch meanwhile.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"

namespace streamvec::cuda {

struct RbsgShape {
  int32_t characters = 0;  // rows of the table
  int32_t character_dim = 128;
  int32_t hidden = 512;
  int32_t dim = 200;
  bool gru = false;   // cells are GRUs, of three gates; else LSTMs, of four
  bool bf16 = false;  // products of a level in bf16, else in tf32
  bool muon = true;   // steps matrices of weights; false: Adam steps all
  int32_t gates() const { return gru ? 3 : 4; }
};

// Of one encoder, in the order of EncoderParameters::all(): characters, input, recurrent, bias, output, output_bias.
constexpr int kEncoderParts = 6;
using EncoderViews = std::array<MatrixView<float>, kEncoderParts>;

// One side of a batch: the trie of its distinct words, as model/char_trie.h describes it.
struct RbsgSide {
  struct Level {
    int32_t inner_begin, inner_end;
    int32_t leaf_begin, leaf_end;
  };
  std::span<const int32_t> parents, characters;  // by node
  std::vector<int32_t> alphabet;                 // rows of the table of characters
  std::span<const int32_t> word_nodes;
  std::vector<Level> levels;
  int32_t inner = 0;
};

struct RowPair {
  int32_t centre, output;  // words of the two sides
};

struct RbsgWork {
  RbsgSide sides[2];  // of centres; of contexts and negatives
  std::vector<RowPair> pairs;
  std::span<const int32_t> pool;        // words of the second side, each once
  std::span<const float> pool_weights;  // what one pair gives each
  float lr = 1e-3f;
  float adam_lr = 1e-3f;  // of what Adam steps
};

struct RbsgTotals {
  int64_t pairs = 0, batches_refused = 0;
  double loss = 0;
};

// Not thread-safe. Errors of the card come late, with whatever call comes next.
class RbsgTrainer {
 public:
  virtual ~RbsgTrainer() = default;
  // Values and moments of both encoders; `steps` so far. Waits.
  virtual Status put(const EncoderViews (&values)[2], const EncoderViews (&means)[2],
                     const EncoderViews (&variances)[2], int64_t steps) = 0;
  virtual Status get(const EncoderViews (&values)[2], const EncoderViews (&means)[2],
                     const EncoderViews (&variances)[2]) = 0;
  // One step on the mean loss of the pairs; changes nothing when a slope is not finite. Returns before it is
  // done.
  virtual Status train(const RbsgWork& work) = 0;
  // What has been done since the last call; with what is still in work if `all`, waiting for it.
  virtual Result<RbsgTotals> totals(bool all) = 0;
};

// The errors of find_device(); kUnavailable without cuBLAS.
Result<std::unique_ptr<RbsgTrainer>> make_rbsg_trainer(const RbsgShape& shape);

}  // namespace streamvec::cuda
