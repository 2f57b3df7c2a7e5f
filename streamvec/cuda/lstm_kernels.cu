// Products run on tensor cores in tiles: pieces of both factors come to shared memory a few steps ahead of the product.
// A level of a small batch has some ten nodes and of a large one some hundreds: tiles are of two sizes.
#include <algorithm>

#include "streamvec/cuda/both_sides.cuh"
#include "streamvec/cuda/lstm_kernels.h"
#include "streamvec/cuda/mma.cuh"

namespace streamvec::cuda {
namespace {

constexpr int kCellThreads = 256;
constexpr int kGates = 4;
constexpr int kDepth = 32;          // columns of the one factor, rows of the other, that a step takes
constexpr int kPitch = kDepth + 4;  // of rows with `kDepth` values: eight rows lie in different banks
constexpr int kStages = 3;
constexpr int32_t kLargeLevel = 192;  // nodes

__device__ float sigmoid(float x) {
  return 1.0f / (1.0f + __expf(-x));
}

__host__ __device__ int32_t nodes_of(const LevelNodes& level) {
  return level.inner_end - level.inner_begin + level.leaf_end - level.leaf_begin;
}

__host__ __device__ int32_t inner_of(const LevelNodes& level) {
  return level.inner_end - level.inner_begin;
}

// The i-th node of a level, its inner ones first.
__device__ int64_t node_at(const LevelNodes& level, int32_t i) {
  const int32_t inner = inner_of(level);
  return i < inner ? level.inner_begin + i : level.leaf_begin + i - inner;
}

struct Cell {
  float in, forget, g, out, c, h;
};

__device__ Cell cell_of(const float (&z)[kGates], float c_before) {
  Cell cell{sigmoid(z[0]), sigmoid(z[1]), tanhf(z[2]), sigmoid(z[3]), 0, 0};
  cell.c = cell.forget * c_before + cell.in * cell.g;
  cell.h = cell.out * tanhf(cell.c);
  return cell;
}

__global__ void first_level_kernel(LstmLevel work) {
  const LstmSide& side = of_side(work.sides);
  const int64_t i = blockIdx.x * int64_t{kCellThreads} + threadIdx.x, H = work.hidden, k = i % H;
  if (i < H) side.h[k] = 0;
  if (i / H >= nodes_of(side.level)) return;
  const int64_t node = node_at(side.level, static_cast<int32_t>(i / H));
  const float* table = side.table + side.characters[node] * kGates * H + k;
  const float z[kGates] = {table[0], table[H], table[2 * H], table[3 * H]};
  const Cell cell = cell_of(z, 0);
  float* gates = side.gates + node * kGates * H + k;
  gates[0] = cell.in;
  gates[H] = cell.forget;
  gates[2 * H] = cell.g;
  gates[3 * H] = cell.out;
  side.c[node * H + k] = cell.c;
  side.h[node * H + k] = cell.h;
}

// A tile of kRows rows; a warp has kWarpRows x 16 of them. B's columns are given out among warps by who uses it.
template <int kRows, int kWarpRows>
__device__ void load_rows(const float* tile, int32_t first, int32_t k, uint32_t (&a)[kWarpRows][4]) {
  const int32_t lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int m = 0; m < kWarpRows; ++m) {
    const float* at = tile + (first + 16 * m + g) * kPitch + k + t;
    a[m][0] = to_tf32(at[0]);
    a[m][1] = to_tf32(at[8 * kPitch]);
    a[m][2] = to_tf32(at[4]);
    a[m][3] = to_tf32(at[8 * kPitch + 4]);
  }
}

// Calls bring(step, stage) for the steps 0 .. steps - 1 in order, each kStages - 1 steps ahead of use(stage).
template <typename Bring, typename Use>
__device__ void in_steps(int32_t steps, const Bring& bring, const Use& use) {
  for (int32_t step = 0; step < kStages - 1; ++step) {
    if (step < steps) bring(step, step);
    end_copy_group();
  }
  for (int32_t step = 0; step < steps; ++step) {
    wait_for_copies<kStages - 2>();
    __syncthreads();  // copies of all threads are there, and the stage that is filled next is no longer in use
    const int32_t next = step + kStages - 1;
    if (next < steps) bring(next, next % kStages);
    end_copy_group();
    use(step % kStages);
  }
}

// kNodes nodes by kUnits units of the state, all four gates of each: a warp has 8 units and kWarpNodes x 16 nodes, and
// each lane all that its cells need.
template <int kNodes, int kUnits, int kWarpNodes>
struct ForwardTile {
  static constexpr int kUnitWarps = kUnits / 8, kThreads = 32 * kUnitWarps * (kNodes / 16 / kWarpNodes);
  static constexpr int kColumns = kGates * kUnits, kColumnPitch = kColumns + 8;
  static constexpr int kStage = kNodes * kPitch + kDepth * kColumnPitch;  // values
  static constexpr size_t kBytes = kStages * kStage * sizeof(float);
};

template <int kNodes, int kUnits, int kWarpNodes>
__global__ __launch_bounds__((ForwardTile<kNodes, kUnits, kWarpNodes>::kThreads)) void next_level_kernel(
    LstmLevel work) {
  using Tile = ForwardTile<kNodes, kUnits, kWarpNodes>;
  extern __shared__ __align__(16) float stages[];
  __shared__ int64_t parents[kNodes];
  const LstmSide& side = of_side(work.sides);
  const int32_t H = work.hidden, count = nodes_of(side.level);
  const int32_t first = static_cast<int32_t>(blockIdx.y) * kNodes,
                first_unit = static_cast<int32_t>(blockIdx.x) * kUnits;
  if (first >= count) return;
  const int32_t thread = static_cast<int32_t>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  for (int32_t i = thread; i < kNodes; i += Tile::kThreads)
    parents[i] = first + i < count ? side.parents[node_at(side.level, first + i)] : -1;
  __syncthreads();

  const auto bring = [&](int32_t step, int32_t stage) {
    float* rows = stages + stage * Tile::kStage;
    float* weights = rows + kNodes * kPitch;
    for (int32_t i = thread; i < kNodes * (kDepth / 4); i += Tile::kThreads) {
      const int32_t row = i / (kDepth / 4), k = i % (kDepth / 4) * 4;
      const bool there = parents[row] >= 0 && step * kDepth + k < H;
      copy_later(rows + row * kPitch + k, there ? side.h + parents[row] * H + step * kDepth + k : side.h, there);
    }
    for (int32_t i = thread; i < kDepth * (Tile::kColumns / 4); i += Tile::kThreads) {
      const int32_t k = i / (Tile::kColumns / 4), column = i % (Tile::kColumns / 4) * 4;
      const int32_t unit = first_unit + column % kUnits, depth = step * kDepth + k;
      const bool there = depth < H && unit < H;
      const int64_t at = (int64_t{depth} * kGates + column / kUnits) * H + unit;
      copy_later(weights + k * Tile::kColumnPitch + column, side.recurrent + (there ? at : 0), there);
    }
  };

  const int32_t warp_row = warp / Tile::kUnitWarps * 16 * kWarpNodes, warp_unit = warp % Tile::kUnitWarps * 8;
  const int32_t g = lane / 4, t = lane % 4;
  float sums[kWarpNodes][kGates][4] = {};
  const auto use = [&](int32_t stage) {
    const float* rows = stages + stage * Tile::kStage;
    const float* weights = rows + kNodes * kPitch + warp_unit + g;
#pragma unroll
    for (int k = 0; k < kDepth; k += 8) {
      uint32_t a[kWarpNodes][4];
      load_rows<kNodes>(rows, warp_row, k, a);
#pragma unroll
      for (int gate = 0; gate < kGates; ++gate) {
        const float* b = weights + (k + t) * Tile::kColumnPitch + gate * kUnits;
        const uint32_t b0 = to_tf32(b[0]), b1 = to_tf32(b[4 * Tile::kColumnPitch]);
#pragma unroll
        for (int m = 0; m < kWarpNodes; ++m) multiply_add_tf32(sums[m][gate], a[m], b0, b1);
      }
    }
  };
  in_steps((H + kDepth - 1) / kDepth, bring, use);

  const int32_t unit = first_unit + warp_unit + 2 * t;
  if (unit >= H) return;
#pragma unroll
  for (int m = 0; m < kWarpNodes; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int32_t row = warp_row + 16 * m + 8 * half + g;
      if (first + row >= count) continue;
      const int64_t node = node_at(side.level, first + row);
      const float* table = side.table + int64_t{side.characters[node]} * kGates * H + unit;
      const float2 c_before = *reinterpret_cast<const float2*>(side.c + parents[row] * H + unit);
      float2 from_table[kGates];
      for (int gate = 0; gate < kGates; ++gate)
        from_table[gate] = *reinterpret_cast<const float2*>(table + int64_t{gate} * H);
      float z[2][kGates];
      for (int gate = 0; gate < kGates; ++gate) {
        z[0][gate] = sums[m][gate][2 * half] + from_table[gate].x;
        z[1][gate] = sums[m][gate][2 * half + 1] + from_table[gate].y;
      }
      const Cell one = cell_of(z[0], c_before.x), two = cell_of(z[1], c_before.y);
      const auto put = [](float* to, float x, float y) { *reinterpret_cast<float2*>(to) = make_float2(x, y); };
      float* gates = side.gates + node * kGates * H + unit;
      put(gates, one.in, two.in);
      put(gates + H, one.forget, two.forget);
      put(gates + 2 * int64_t{H}, one.g, two.g);
      put(gates + 3 * int64_t{H}, one.out, two.out);
      put(side.c + node * H + unit, one.c, two.c);
      put(side.h + node * H + unit, one.h, two.h);
    }
}

__global__ void climb_cells_kernel(LstmLevel work, LstmSlopes slopes, bool first_level) {
  const LstmSide& side = of_side(work.sides);
  const int64_t i = blockIdx.x * int64_t{kCellThreads} + threadIdx.x, H = work.hidden, k = i % H;
  if (i / H >= nodes_of(side.level)) return;
  const int64_t node = node_at(side.level, static_cast<int32_t>(i / H)), parent = side.parents[node];
  const float* gates = side.gates + node * kGates * H + k;
  const float in = gates[0], forget = gates[H], g = gates[2 * H], out = gates[3 * H];
  const float tanh_c = tanhf(side.c[node * H + k]), dh = of_side(slopes.dh)[node * H + k];
  const float c_before = first_level ? 0 : side.c[parent * H + k];
  const float dc =
      (node < side.level.inner_end ? of_side(slopes.dc)[node * H + k] : 0) + dh * out * (1 - tanh_c * tanh_c);
  const float dz[kGates] = {dc * g * in * (1 - in), dc * c_before * forget * (1 - forget), dc * in * (1 - g * g),
                            dh * tanh_c * out * (1 - out)};
  for (int gate = 0; gate < kGates; ++gate) {
    of_side(slopes.dz)[(node * kGates + gate) * H + k] = dz[gate];
    if (!first_level) atomicAdd(&of_side(slopes.dz_sum)[(parent * kGates + gate) * H + k], dz[gate]);
  }
  if (!first_level) atomicAdd(&of_side(slopes.dc)[parent * H + k], dc * forget);
}

// kSide x kSide values of dh, from one gate's dz: the gates' parts are added up in memory, so that there is enough to
// do for all multiprocessors. A warp has kWarpRows x 16 rows and 16 columns.
template <int kSide, int kWarpRows>
struct BackwardTile {
  static constexpr int kColumnWarps = kSide / 16, kThreads = 32 * kColumnWarps * (kSide / 16 / kWarpRows);
  static constexpr int kStage = 2 * kSide * kPitch;  // values
  static constexpr size_t kBytes = kStages * kStage * sizeof(float);
};

template <int kSide, int kWarpRows>
__global__ __launch_bounds__((BackwardTile<kSide, kWarpRows>::kThreads)) void climb_products_kernel(LstmLevel work,
                                                                                                    LstmSlopes slopes) {
  using Tile = BackwardTile<kSide, kWarpRows>;
  extern __shared__ __align__(16) float stages[];
  const LstmSide& side = of_side(work.sides);
  const int32_t H = work.hidden, count = inner_of(side.before), gate = static_cast<int32_t>(blockIdx.x) % kGates;
  const int32_t first = static_cast<int32_t>(blockIdx.y) * kSide,
                first_column = static_cast<int32_t>(blockIdx.x) / kGates * kSide;
  if (first >= count) return;
  const int32_t thread = static_cast<int32_t>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const float* dz = of_side(slopes.dz_sum) + (int64_t{side.before.inner_begin} * kGates + gate) * H;
  const float* weights_from = side.recurrent + int64_t{gate} * H;

  const auto bring = [&](int32_t step, int32_t stage) {
    float* rows = stages + stage * Tile::kStage;
    for (int32_t i = thread; i < 2 * kSide * (kDepth / 4); i += Tile::kThreads) {
      const int32_t row = i / (kDepth / 4), k = i % (kDepth / 4) * 4, depth = step * kDepth + k;
      const bool of_dz = row < kSide;
      const int32_t from = of_dz ? first + row : first_column + row - kSide;
      const bool there = depth < H && from < (of_dz ? count : H);
      const int64_t at = there ? int64_t{from} * kGates * H + depth : 0;
      copy_later(rows + row * kPitch + k, (of_dz ? dz : weights_from) + at, there);
    }
  };

  const int32_t warp_row = warp / Tile::kColumnWarps * 16 * kWarpRows, warp_column = warp % Tile::kColumnWarps * 16;
  const int32_t g = lane / 4, t = lane % 4;
  float sums[kWarpRows][2][4] = {};
  const auto use = [&](int32_t stage) {
    const float* rows = stages + stage * Tile::kStage;
    const float* weights = rows + (kSide + warp_column + g) * kPitch + t;
#pragma unroll
    for (int k = 0; k < kDepth; k += 8) {
      uint32_t a[kWarpRows][4];
      load_rows<kSide>(rows, warp_row, k, a);
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const uint32_t b0 = to_tf32(weights[8 * n * kPitch + k]), b1 = to_tf32(weights[8 * n * kPitch + k + 4]);
#pragma unroll
        for (int m = 0; m < kWarpRows; ++m) multiply_add_tf32(sums[m][n], a[m], b0, b1);
      }
    }
  };
  in_steps((H + kDepth - 1) / kDepth, bring, use);

  float* dh = of_side(slopes.dh) + int64_t{side.before.inner_begin} * H;
#pragma unroll
  for (int m = 0; m < kWarpRows; ++m)
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int32_t row = first + warp_row + 16 * m + 8 * (i / 2) + g;
        const int32_t column = first_column + warp_column + 8 * n + 2 * t + i % 2;
        if (row < count && column < H) atomicAdd(dh + int64_t{row} * H + column, sums[m][n][i]);
      }
}

uint32_t pieces(int64_t items, int64_t size) {
  return static_cast<uint32_t>((items + size - 1) / size);
}

int32_t most_nodes(const LstmLevel& work) {
  return std::max(nodes_of(work.sides[0].level), nodes_of(work.sides[1].level));
}

dim3 grid_of_cells(const LstmLevel& work) {
  return {pieces(int64_t{most_nodes(work)} * work.hidden, kCellThreads), 1, 2};
}

// Lets the kernel have its shared memory, once.
template <typename Kernel>
cudaError_t let_have(Kernel kernel, size_t bytes) {
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
}

template <int kNodes, int kUnits, int kWarpNodes>
cudaError_t next_level(const LstmLevel& work, cudaStream_t stream) {
  using Tile = ForwardTile<kNodes, kUnits, kWarpNodes>;
  constexpr auto kernel = next_level_kernel<kNodes, kUnits, kWarpNodes>;
  static const cudaError_t prepared = let_have(kernel, Tile::kBytes);
  const dim3 grid(pieces(work.hidden, kUnits), pieces(most_nodes(work), kNodes), 2);
  kernel<<<grid, Tile::kThreads, Tile::kBytes, stream>>>(work);
  return prepared;
}

template <int kSide, int kWarpRows>
cudaError_t climb_products(const LstmLevel& work, const LstmSlopes& slopes, int32_t rows, cudaStream_t stream) {
  using Tile = BackwardTile<kSide, kWarpRows>;
  constexpr auto kernel = climb_products_kernel<kSide, kWarpRows>;
  static const cudaError_t prepared = let_have(kernel, Tile::kBytes);
  const dim3 grid(pieces(work.hidden, kSide) * kGates, pieces(rows, kSide), 2);
  kernel<<<grid, Tile::kThreads, Tile::kBytes, stream>>>(work, slopes);
  return prepared;
}

}  // namespace

void first_lstm_level(const LstmLevel& work, cudaStream_t stream) {
  if (most_nodes(work) > 0) first_level_kernel<<<grid_of_cells(work), kCellThreads, 0, stream>>>(work);
}

cudaError_t next_lstm_level(const LstmLevel& work, cudaStream_t stream) {
  const int32_t nodes = most_nodes(work);
  if (nodes == 0) return cudaSuccess;
  return nodes < kLargeLevel ? next_level<32, 16, 1>(work, stream) : next_level<64, 32, 2>(work, stream);
}

void climb_lstm_cells(const LstmLevel& work, const LstmSlopes& slopes, bool first_level, cudaStream_t stream) {
  if (most_nodes(work) > 0)
    climb_cells_kernel<<<grid_of_cells(work), kCellThreads, 0, stream>>>(work, slopes, first_level);
}

cudaError_t climb_lstm_products(const LstmLevel& work, const LstmSlopes& slopes, cudaStream_t stream) {
  const int32_t rows = std::max(inner_of(work.sides[0].before), inner_of(work.sides[1].before));
  if (rows == 0) return cudaSuccess;
  return rows < kLargeLevel ? climb_products<32, 1>(work, slopes, rows, stream)
                            : climb_products<64, 2>(work, slopes, rows, stream);
}

}  // namespace streamvec::cuda
