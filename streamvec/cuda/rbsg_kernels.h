// The kernels of rbsg_trainer.cc: what stands between its products. All queue on `stream` and return at once.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "streamvec/cuda/rbsg_trainer.h"

namespace streamvec::cuda {

// rows x cols of `to`: each row a copy of `row`, or of row index[i] of `from`; or added to row index[i] of `to`.
void fill_rows(const float* row, int64_t rows, int64_t cols, float* to, cudaStream_t stream);
void gather_rows(const float* from, const int32_t* index, int64_t rows, int64_t cols, float* to, cudaStream_t stream);
void add_to_rows(const float* from, const int32_t* index, int64_t rows, int64_t cols, float* to, cudaStream_t stream);
// to[k] += the sum of column k.
void add_column_sums(const float* from, int64_t rows, int64_t cols, float* to, cudaStream_t stream);

// The nodes of a level (model/char_trie.h).
using LevelNodes = RbsgSide::Level;
// The cells of a level's nodes (kernel/lstm_cell.h). H hidden.
struct LstmNodes {
  const int32_t* parents;
  const int32_t* characters;
  const float* table;    // [alphabet][4 H]
  float *h, *c, *gates;  // [nodes][H], [nodes][H], [nodes][4 H]
  int32_t hidden;
};
// `product`: [parents' inner nodes][4 H], that of node `first_parent` first; null at the first level.
void lstm_level(const LstmNodes& nodes, const LevelNodes& level, const float* product, int32_t first_parent,
                cudaStream_t stream);
struct LstmSlopes {
  const float* dh;  // [nodes][H]
  float* dc;        // [inner nodes][H], zeroed before the last level
  float* dz;        // [nodes][4 H]: out
  float* dz_sum;    // [inner nodes][4 H], zeroed likewise: summed over children
};
void climb_lstm_level(const LstmNodes& nodes, const LstmSlopes& slopes, const LevelNodes& level, bool first_level,
                      cudaStream_t stream);
// dtable[a] = the sum of dz over the nodes order[begins[a]] .. order[begins[a + 1] - 1].
void sum_by_character(const float* dz, const int32_t* order, const int32_t* begins, int32_t alphabet, int32_t cols,
                      float* dtable, cudaStream_t stream);

// Skip-gram's loss. `scale` is on all slopes; loss is added to *loss.
struct LossRows {
  const float *u, *v;  // vectors of centres and outputs
  float *du, *dv;
  int32_t dim;
  float scale;
  double* loss;
};
void climb_pairs(const LossRows& rows, const RowPair* pairs, int32_t count, cudaStream_t stream);
// weights[c][p]: what the pairs of centre c give place p of the pool, those excused whose output is there.
void weigh_pool(const RowPair* pairs, int32_t count, const int32_t* places, const float* pool_weights, int32_t pool,
                int32_t centres, int32_t* counts, float* weights, cudaStream_t stream);
// products[c][p] = u.v becomes the slope at it.
void climb_pool(const float* weights, int64_t size, float scale, float* products, double* loss, cudaStream_t stream);

// *square += the sum of squares.
void add_squares(const float* values, int64_t size, double* square, cudaStream_t stream);
struct AdamNumbers {
  float rate, root_scale, most;  // kernel/row_ops.cc
};
// Leaves slopes zeroed. Nothing moves, and *refused grows, when *square or *loss is not finite.
void adam(const AdamNumbers& numbers, int64_t size, const double* square, const double* loss, float* slopes,
          float* means, float* variances, float* values, int32_t* refused, cudaStream_t stream);

}  // namespace streamvec::cuda
