#include <algorithm>

#include "streamvec/cuda/both_sides.cuh"
#include "streamvec/cuda/rbsg_kernels.h"

namespace streamvec::cuda {
namespace {

constexpr int kThreads = 256;

uint32_t blocks_for(int64_t items) {
  return static_cast<uint32_t>((items + kThreads - 1) / kThreads);
}

__device__ int64_t thread_index() {
  return blockIdx.x * int64_t{kThreads} + threadIdx.x;
}

__device__ float sigmoid(float x) {
  return 1.0f / (1.0f + __expf(-x));
}

__device__ double block_sum(double x) {
  __shared__ double sums[kThreads / 32];
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = x;
  __syncthreads();
  double sum = 0;
  for (double each : sums) sum += each;
  return sum;
}

__global__ void fill_kernel(BothRows both) {
  const int64_t i = thread_index();
  if (i < of_side(both.rows) * both.cols) of_side(both.to)[i] = of_side(both.from)[i % both.cols];
}

__global__ void gather_kernel(BothRows both) {
  const int64_t i = thread_index(), cols = both.cols;
  if (i < of_side(both.rows) * cols)
    of_side(both.to)[i] = of_side(both.from)[of_side(both.index)[i / cols] * cols + i % cols];
}

__global__ void scatter_kernel(BothRows both) {
  const int64_t i = thread_index(), cols = both.cols;
  if (i < of_side(both.rows) * cols)
    atomicAdd(&of_side(both.to)[of_side(both.index)[i / cols] * cols + i % cols], of_side(both.from)[i]);
}

__global__ void round_kernel(RoundedBoth both) {
  const int64_t i = thread_index();
  if (i >= both.size / 4) return;
  const float4 four = reinterpret_cast<const float4*>(of_side(both.from))[i];
  auto* to = reinterpret_cast<__nv_bfloat162*>(of_side(both.to)) + 2 * i;
  to[0] = __floats2bfloat162_rn(four.x, four.y);
  to[1] = __floats2bfloat162_rn(four.z, four.w);
}

constexpr int64_t kRowsPerSum = 64;

__global__ void column_sums_kernel(BothRows both) {
  const int64_t k = thread_index(), begin = blockIdx.y * kRowsPerSum,
                end = min(begin + kRowsPerSum, of_side(both.rows));
  if (k >= both.cols || begin >= end) return;
  float sum = 0;
  for (int64_t i = begin; i < end; ++i) sum += of_side(both.from)[i * both.cols + k];
  atomicAdd(&of_side(both.to)[k], sum);
}

constexpr int32_t kNodesPerSum = 64, kSumParts = 8;

// Blocks of x: columns, and some of a character's nodes. Of y: characters.
__global__ void sum_by_character_kernel(BothSums both) {
  const int32_t a = static_cast<int32_t>(blockIdx.y), part = static_cast<int32_t>(blockIdx.x) % kSumParts;
  if (a >= of_side(both.alphabet)) return;
  const int64_t k = int64_t{blockIdx.x} / kSumParts * kThreads + threadIdx.x, cols = both.cols;
  const int32_t end = of_side(both.begins)[a + 1];
  const int32_t* order = of_side(both.order);
  const float* dz = of_side(both.dz);
  float sum = 0;
  int32_t first = of_side(both.begins)[a] + part * kNodesPerSum;
  if (k >= cols || first >= end) return;
  for (; first < end; first += kSumParts * kNodesPerSum)
    for (int32_t i = first; i < min(first + kNodesPerSum, end); ++i) sum += dz[int64_t{order[i]} * cols + k];
  atomicAdd(&of_side(both.dtable)[int64_t{a} * cols + k], sum);
}

// A warp a pair.
__global__ void pairs_kernel(LossRows rows, const RowPair* pairs, int32_t count) {
  const int64_t i = thread_index() / 32;
  const int32_t lane = threadIdx.x % 32;
  double loss = 0;
  if (i < count) {
    const int64_t a = int64_t{pairs[i].centre} * rows.dim, b = int64_t{pairs[i].output} * rows.dim;
    float product = 0;
    for (int32_t d = lane; d < rows.dim; d += 32) product += rows.u[a + d] * rows.v[b + d];
    for (int step = 16; step > 0; step /= 2) product += __shfl_xor_sync(~0u, product, step);
    const float slope = rows.scale * (1 - sigmoid(product));
    for (int32_t d = lane; d < rows.dim; d += 32) {
      atomicAdd(&rows.du[a + d], slope * rows.v[b + d]);
      atomicAdd(&rows.dv[b + d], slope * rows.u[a + d]);
    }
    if (lane == 0) loss = fmaxf(-product, 0.0f) + log1pf(__expf(-fabsf(product)));
  }
  loss = block_sum(loss);
  if (threadIdx.x == 0) atomicAdd(rows.loss, loss);
}

__global__ void count_kernel(const RowPair* pairs, int32_t count, int32_t* counts) {
  const int64_t i = thread_index();
  if (i < count) atomicAdd(&counts[pairs[i].centre], 1);
}

__global__ void weights_kernel(const int32_t* counts, const float* pool_weights, int32_t pool, int64_t size,
                               float* weights) {
  const int64_t i = thread_index();
  if (i < size) weights[i] = pool_weights[i % pool] * static_cast<float>(counts[i / pool]);
}

__global__ void excuse_kernel(const RowPair* pairs, int32_t count, const int32_t* places, const float* pool_weights,
                              int32_t pool, float* weights) {
  const int64_t i = thread_index();
  if (i >= count) return;
  const int32_t place = places[pairs[i].output];
  if (place >= 0) atomicAdd(&weights[int64_t{pairs[i].centre} * pool + place], -pool_weights[place]);
}

__global__ void pool_kernel(const float* weights, int64_t size, float scale, float* products, double* loss_sum) {
  const int64_t i = thread_index();
  double loss = 0;
  if (i < size) {
    const float x = products[i];
    loss = weights[i] * (fmaxf(x, 0.0f) + log1pf(__expf(-fabsf(x))));
    products[i] = -scale * weights[i] * sigmoid(x);
  }
  loss = block_sum(loss);
  if (threadIdx.x == 0) atomicAdd(loss_sum, loss);
}

__global__ void squares_kernel(const float* values, int64_t size, double* square) {
  double sum = 0;
  for (int64_t i = thread_index(); i < size; i += int64_t{gridDim.x} * kThreads)
    sum += static_cast<double>(values[i]) * values[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) atomicAdd(square, sum);
}

// Four values a thread; all that it reads is on its way before it waits for any.
__global__ void adam_kernel(AdamNumbers numbers, int64_t fours, const double* square, const double* loss,
                            float4* slopes, float4* means, float4* variances, float4* values, int32_t* refused) {
  constexpr float kBeta1 = 0.9f, kBeta2 = 0.999f, kEpsilon = 1e-8f;
  const int64_t i = thread_index();
  if (i >= fours) return;
  const float4 slope = slopes[i];
  float4 mean = means[i], variance = variances[i], value = values[i];
  const bool finite = isfinite(*square) && isfinite(*loss);
  slopes[i] = make_float4(0, 0, 0, 0);
  if (i == 0 && !finite && refused != nullptr) ++*refused;
  if (!finite) return;
  const auto step = [&](float by, float& m, float& v, float& x) {
    m = kBeta1 * m + (1 - kBeta1) * by;
    v = kBeta2 * v + (1 - kBeta2) * by * by;
    const float change = numbers.rate * m / (sqrtf(v) * numbers.root_scale + kEpsilon);
    x += fminf(fmaxf(change, -numbers.most), numbers.most);
  };
  step(slope.x, mean.x, variance.x, value.x);
  step(slope.y, mean.y, variance.y, value.y);
  step(slope.z, mean.z, variance.z, value.z);
  step(slope.w, mean.w, variance.w, value.w);
  means[i] = mean;
  variances[i] = variance;
  values[i] = value;
}

int64_t most_rows(const BothRows& both) {
  return std::max(both.rows[0], both.rows[1]);
}

dim3 grid_of(const BothRows& both) {
  return {blocks_for(most_rows(both) * both.cols), 1, 2};
}

}  // namespace

void fill_rows(const BothRows& both, cudaStream_t stream) {
  if (most_rows(both) > 0) fill_kernel<<<grid_of(both), kThreads, 0, stream>>>(both);
}

void gather_rows(const BothRows& both, cudaStream_t stream) {
  if (most_rows(both) > 0) gather_kernel<<<grid_of(both), kThreads, 0, stream>>>(both);
}

void add_to_rows(const BothRows& both, cudaStream_t stream) {
  if (most_rows(both) > 0) scatter_kernel<<<grid_of(both), kThreads, 0, stream>>>(both);
}

void round_to_bf16(const RoundedBoth& both, cudaStream_t stream) {
  if (both.size > 0) round_kernel<<<dim3(blocks_for(both.size / 4), 1, 2), kThreads, 0, stream>>>(both);
}

void add_column_sums(const BothRows& both, cudaStream_t stream) {
  if (most_rows(both) == 0) return;
  const dim3 grid(blocks_for(both.cols), static_cast<uint32_t>((most_rows(both) + kRowsPerSum - 1) / kRowsPerSum), 2);
  column_sums_kernel<<<grid, kThreads, 0, stream>>>(both);
}

void sum_by_character(const BothSums& both, cudaStream_t stream) {
  const dim3 grid(blocks_for(both.cols) * kSumParts,
                  static_cast<uint32_t>(std::max(both.alphabet[0], both.alphabet[1])), 2);
  if (grid.y > 0) sum_by_character_kernel<<<grid, kThreads, 0, stream>>>(both);
}

void climb_pairs(const LossRows& rows, const RowPair* pairs, int32_t count, cudaStream_t stream) {
  if (count > 0) pairs_kernel<<<blocks_for(int64_t{count} * 32), kThreads, 0, stream>>>(rows, pairs, count);
}

void weigh_pool(const RowPair* pairs, int32_t count, const int32_t* places, const float* pool_weights, int32_t pool,
                int32_t centres, int32_t* counts, float* weights, cudaStream_t stream) {
  const int64_t size = int64_t{centres} * pool;
  if (size == 0 || count == 0) return;
  count_kernel<<<blocks_for(count), kThreads, 0, stream>>>(pairs, count, counts);
  weights_kernel<<<blocks_for(size), kThreads, 0, stream>>>(counts, pool_weights, pool, size, weights);
  excuse_kernel<<<blocks_for(count), kThreads, 0, stream>>>(pairs, count, places, pool_weights, pool, weights);
}

void climb_pool(const float* weights, int64_t size, float scale, float* products, double* loss, cudaStream_t stream) {
  if (size > 0) pool_kernel<<<blocks_for(size), kThreads, 0, stream>>>(weights, size, scale, products, loss);
}

void add_squares(const float* values, int64_t size, double* square, cudaStream_t stream) {
  constexpr uint32_t kBlocksMax = 264;
  squares_kernel<<<std::min(blocks_for(size), kBlocksMax), kThreads, 0, stream>>>(values, size, square);
}

void adam(const AdamNumbers& numbers, int64_t size, const double* square, const double* loss, float* slopes,
          float* means, float* variances, float* values, int32_t* refused, cudaStream_t stream) {
  const auto fours = [](float* array) { return reinterpret_cast<float4*>(array); };
  adam_kernel<<<blocks_for(size / 4), kThreads, 0, stream>>>(numbers, size / 4, square, loss, fours(slopes),
                                                             fours(means), fours(variances), fours(values), refused);
}

}  // namespace streamvec::cuda
