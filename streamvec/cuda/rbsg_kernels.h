// The kernels of rbsg_batch.cu: what stands between its products and levels (lstm_kernels.h). What is there of both
// encoders is done for both at once: [2] is by side. All queue on `stream` and return at once.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "streamvec/cuda/rbsg_trainer.h"

namespace streamvec::cuda {

// rows x cols values of each side.
struct BothRows {
  const float* from[2];
  float* to[2];
  const int32_t* index[2];
  int64_t rows[2];
  int64_t cols;
};
// to[i] = from[0], a row for all; to[i] = from[index[i]]; to[index[i]] += from[i].
void fill_rows(const BothRows& both, cudaStream_t stream);
void gather_rows(const BothRows& both, cudaStream_t stream);
void add_to_rows(const BothRows& both, cudaStream_t stream);
// to[0][k] += the sum of column k.
void add_column_sums(const BothRows& both, cudaStream_t stream);

// to = from, rounded to the nearest. `size` is a multiple of 4, and both lie at 16-byte boundaries.
struct RoundedBoth {
  const float* from[2];
  __nv_bfloat16* to[2];
  int64_t size;
};
void round_to_bf16(const RoundedBoth& both, cudaStream_t stream);

// dtable[a] = the sum of dz over the nodes order[begins[a]] .. order[begins[a + 1] - 1], where it was zero.
struct BothSums {
  const float* dz[2];
  const int32_t *order[2], *begins[2];
  float* dtable[2];
  int32_t alphabet[2];
  int32_t cols;
};
void sum_by_character(const BothSums& both, cudaStream_t stream);

// Skip-gram's loss. `scale` is on all slopes; loss is added to *loss.
struct LossRows {
  const float *u, *v;  // vectors of centres and outputs
  float *du, *dv;
  int32_t dim;
  float scale;
  double* loss;
};
void climb_pairs(const LossRows& rows, const RowPair* pairs, int32_t count, cudaStream_t stream);
// weights[c][p]: what the pairs of centre c give place p of the pool, those excused whose output is there. `counts`, of
// the centres, are zero before.
void weigh_pool(const RowPair* pairs, int32_t count, const int32_t* places, const float* pool_weights, int32_t pool,
                int32_t centres, int32_t* counts, float* weights, cudaStream_t stream);
// products[c][p] = u.v becomes the slope at it.
void climb_pool(const float* weights, int64_t size, float scale, float* products, double* loss, cudaStream_t stream);

// *square += the sum of squares.
void add_squares(const float* values, int64_t size, double* square, cudaStream_t stream);
struct AdamNumbers {
  float rate, root_scale, most;  // kernel/row_ops.cc
};
// Leaves slopes zeroed. Nothing moves, and *refused grows if there is one, when *square or *loss is not finite.
void adam(const AdamNumbers& numbers, int64_t size, const double* square, const double* loss, float* slopes,
          float* means, float* variances, float* values, int32_t* refused, cudaStream_t stream);

}  // namespace streamvec::cuda
