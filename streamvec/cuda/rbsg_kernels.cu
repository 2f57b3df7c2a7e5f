#include <algorithm>

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

__global__ void fill_rows_kernel(const float* row, int64_t rows, int64_t cols, float* to) {
  const int64_t i = thread_index();
  if (i < rows * cols) to[i] = row[i % cols];
}

__global__ void gather_kernel(const float* from, const int32_t* index, int64_t rows, int64_t cols, float* to) {
  const int64_t i = thread_index();
  if (i < rows * cols) to[i] = from[index[i / cols] * cols + i % cols];
}

__global__ void scatter_kernel(const float* from, const int32_t* index, int64_t rows, int64_t cols, float* to) {
  const int64_t i = thread_index();
  if (i < rows * cols) atomicAdd(&to[index[i / cols] * cols + i % cols], from[i]);
}

constexpr int64_t kRowsPerSum = 64;

__global__ void column_sums_kernel(const float* from, int64_t rows, int64_t cols, float* to) {
  const int64_t k = thread_index(), begin = blockIdx.y * kRowsPerSum, end = min(begin + kRowsPerSum, rows);
  if (k >= cols) return;
  float sum = 0;
  for (int64_t i = begin; i < end; ++i) sum += from[i * cols + k];
  atomicAdd(&to[k], sum);
}

__host__ __device__ int32_t nodes_of(const LevelNodes& level) {
  return level.inner_end - level.inner_begin + level.leaf_end - level.leaf_begin;
}

// The i-th node of a level, its inner ones first.
__device__ int64_t node_at(const LevelNodes& level, int64_t i) {
  const int32_t inner = level.inner_end - level.inner_begin;
  return i < inner ? level.inner_begin + i : level.leaf_begin + i - inner;
}

__global__ void lstm_kernel(LstmNodes nodes, LevelNodes level, const float* product, int32_t first_parent) {
  const int64_t i = thread_index(), H = nodes.hidden;
  if (i / H >= nodes_of(level)) return;
  const int64_t node = node_at(level, i / H), k = i % H;
  const int64_t parent = nodes.parents[node];
  const float* table = nodes.table + nodes.characters[node] * 4 * H + k;
  float z[4] = {table[0], table[H], table[2 * H], table[3 * H]};
  float c_before = 0;
  if (product != nullptr) {
    const float* row = product + (parent - first_parent) * 4 * H + k;
    for (int gate = 0; gate < 4; ++gate) z[gate] += row[gate * H];
    c_before = nodes.c[parent * H + k];
  }
  const float in = sigmoid(z[0]), forget = sigmoid(z[1]), g = tanhf(z[2]), out = sigmoid(z[3]);
  const float c = forget * c_before + in * g;
  float* gates = nodes.gates + node * 4 * H + k;
  gates[0] = in;
  gates[H] = forget;
  gates[2 * H] = g;
  gates[3 * H] = out;
  nodes.c[node * H + k] = c;
  nodes.h[node * H + k] = out * tanhf(c);
}

__global__ void climb_lstm_kernel(LstmNodes nodes, LstmSlopes slopes, LevelNodes level, bool first_level) {
  const int64_t i = thread_index(), H = nodes.hidden;
  if (i / H >= nodes_of(level)) return;
  const int64_t node = node_at(level, i / H), k = i % H;
  const bool inner = node < level.inner_end;
  const int64_t parent = nodes.parents[node];
  const float* gates = nodes.gates + node * 4 * H + k;
  const float in = gates[0], forget = gates[H], g = gates[2 * H], out = gates[3 * H];
  const float tanh_c = tanhf(nodes.c[node * H + k]), dh = slopes.dh[node * H + k];
  const float c_before = first_level ? 0 : nodes.c[parent * H + k];
  const float dc = (inner ? slopes.dc[node * H + k] : 0) + dh * out * (1 - tanh_c * tanh_c);
  const float dz[4] = {dc * g * in * (1 - in), dc * c_before * forget * (1 - forget), dc * in * (1 - g * g),
                       dh * tanh_c * out * (1 - out)};
  for (int gate = 0; gate < 4; ++gate) {
    slopes.dz[(node * 4 + gate) * H + k] = dz[gate];
    if (!first_level) atomicAdd(&slopes.dz_sum[(parent * 4 + gate) * H + k], dz[gate]);
  }
  if (!first_level) atomicAdd(&slopes.dc[parent * H + k], dc * forget);
}

constexpr int32_t kNodesPerSum = 64;

__global__ void sum_by_character_kernel(const float* dz, const int32_t* order, const int32_t* begins, int32_t cols,
                                        float* dtable) {
  const int32_t a = blockIdx.z, end = begins[a + 1];
  const int64_t k = thread_index();
  float sum = 0;
  int32_t first = begins[a] + static_cast<int32_t>(blockIdx.y) * kNodesPerSum;
  if (k >= cols || first >= end) return;
  for (; first < end; first += static_cast<int32_t>(gridDim.y) * kNodesPerSum)
    for (int32_t i = first; i < min(first + kNodesPerSum, end); ++i) sum += dz[int64_t{order[i]} * cols + k];
  atomicAdd(&dtable[int64_t{a} * cols + k], sum);
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

__global__ void adam_kernel(AdamNumbers numbers, int64_t size, const double* square, const double* loss, float* slopes,
                            float* means, float* variances, float* values, int32_t* refused) {
  constexpr float kBeta1 = 0.9f, kBeta2 = 0.999f, kEpsilon = 1e-8f;
  const int64_t i = thread_index();
  const bool finite = isfinite(*square) && isfinite(*loss);
  if (i == 0 && !finite) ++*refused;
  if (i >= size) return;
  const float slope = slopes[i];
  slopes[i] = 0;
  if (!finite) return;
  const float mean = kBeta1 * means[i] + (1 - kBeta1) * slope;
  const float variance = kBeta2 * variances[i] + (1 - kBeta2) * slope * slope;
  means[i] = mean;
  variances[i] = variance;
  const float change = numbers.rate * mean / (sqrtf(variance) * numbers.root_scale + kEpsilon);
  values[i] += fminf(fmaxf(change, -numbers.most), numbers.most);
}

}  // namespace

void fill_rows(const float* row, int64_t rows, int64_t cols, float* to, cudaStream_t stream) {
  if (rows > 0) fill_rows_kernel<<<blocks_for(rows * cols), kThreads, 0, stream>>>(row, rows, cols, to);
}

void gather_rows(const float* from, const int32_t* index, int64_t rows, int64_t cols, float* to, cudaStream_t stream) {
  if (rows > 0) gather_kernel<<<blocks_for(rows * cols), kThreads, 0, stream>>>(from, index, rows, cols, to);
}

void add_to_rows(const float* from, const int32_t* index, int64_t rows, int64_t cols, float* to, cudaStream_t stream) {
  if (rows > 0) scatter_kernel<<<blocks_for(rows * cols), kThreads, 0, stream>>>(from, index, rows, cols, to);
}

void add_column_sums(const float* from, int64_t rows, int64_t cols, float* to, cudaStream_t stream) {
  if (rows == 0) return;
  const dim3 grid(blocks_for(cols), static_cast<uint32_t>((rows + kRowsPerSum - 1) / kRowsPerSum));
  column_sums_kernel<<<grid, kThreads, 0, stream>>>(from, rows, cols, to);
}

void lstm_level(const LstmNodes& nodes, const LevelNodes& level, const float* product, int32_t first_parent,
                cudaStream_t stream) {
  const int64_t threads = int64_t{nodes_of(level)} * nodes.hidden;
  if (threads > 0) lstm_kernel<<<blocks_for(threads), kThreads, 0, stream>>>(nodes, level, product, first_parent);
}

void climb_lstm_level(const LstmNodes& nodes, const LstmSlopes& slopes, const LevelNodes& level, bool first_level,
                      cudaStream_t stream) {
  const int64_t threads = int64_t{nodes_of(level)} * nodes.hidden;
  if (threads > 0) climb_lstm_kernel<<<blocks_for(threads), kThreads, 0, stream>>>(nodes, slopes, level, first_level);
}

void sum_by_character(const float* dz, const int32_t* order, const int32_t* begins, int32_t alphabet, int32_t cols,
                      float* dtable, cudaStream_t stream) {
  constexpr uint32_t kParts = 8;
  const dim3 grid(blocks_for(cols), kParts, static_cast<uint32_t>(alphabet));
  if (alphabet > 0) sum_by_character_kernel<<<grid, kThreads, 0, stream>>>(dz, order, begins, cols, dtable);
}

void climb_pairs(const LossRows& rows, const RowPair* pairs, int32_t count, cudaStream_t stream) {
  if (count > 0) pairs_kernel<<<blocks_for(int64_t{count} * 32), kThreads, 0, stream>>>(rows, pairs, count);
}

void weigh_pool(const RowPair* pairs, int32_t count, const int32_t* places, const float* pool_weights, int32_t pool,
                int32_t centres, int32_t* counts, float* weights, cudaStream_t stream) {
  const int64_t size = int64_t{centres} * pool;
  if (size == 0 || count == 0) return;
  cudaMemsetAsync(counts, 0, sizeof(int32_t) * static_cast<size_t>(centres), stream);
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
  adam_kernel<<<blocks_for(size), kThreads, 0, stream>>>(numbers, size, square, loss, slopes, means, variances, values,
                                                         refused);
}

}  // namespace streamvec::cuda
