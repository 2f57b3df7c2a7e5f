// The LSTM or GRU of rbsg_batch.cu over a level of two tries, one of each encoder, at once. All queue on `stream` and
// return at once. H hidden, a multiple of 16; G gates, 4 of an LSTM and 3 of a GRU.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "streamvec/cuda/rbsg_trainer.h"

namespace streamvec::cuda {

constexpr int kKept = 4;  // values of a cell that the way back needs, for each unit

// The nodes of a level (model/char_trie.h).
using LevelNodes = RbsgSide::Level;

struct LstmSide {
  const int32_t *parents, *characters;  // by node
  const float* table;                   // [alphabet][G H]
  const float* recurrent;               // [H][G H]
  const __nv_bfloat16* recurrent_bf16;  // the same, rounded; for products in bf16 alone
  float *h, *c, *gates;                 // [nodes][H], [nodes][H] (of an LSTM), [nodes][4 H]: what the way back needs
  LevelNodes level;
};
struct LstmLevel {
  LstmSide sides[2];
  int32_t hidden;
  bool gru;
  bool bf16;  // products in bf16, else in tf32; sums in fp32 either way
};
// The cells of all nodes (kernel/lstm_cell.h, kernel/gru_cell.h). At the first level, where parents are nothing, no
// product is needed, and node 0 gets its h of zeros.
void first_lstm_level(const LstmLevel& work, cudaStream_t stream);
// h of the parents times the recurrent weights and the cells, in one kernel.
cudaError_t next_lstm_level(const LstmLevel& work, cudaStream_t stream);

struct LstmSlopes {
  const float* dh[2];  // [nodes][H]: from the words that end there
  float* dc[2];        // [inner nodes][H], zero before: of c, or what came past the gates of GRUs to h
  float* dz[2];        // [nodes][G H]: out
  float* dz_sum[2];    // [inner nodes][G H], zero before: those of the recurrent product, summed over children
};
// The cells of leaves, all levels' at once: `leaves` has them in its levels.
void climb_lstm_leaves(const LstmLevel& leaves, const LstmSlopes& slopes, cudaStream_t stream);
// The cells of a level's inner nodes, whose dh also has dz_sum times the recurrent weights, transposed.
// After the leaves, and the level that follows.
cudaError_t climb_lstm_level(const LstmLevel& work, const LstmSlopes& slopes, cudaStream_t stream);

}  // namespace streamvec::cuda
