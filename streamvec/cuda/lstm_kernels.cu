// Products run on tensor cores in tiles: pieces of both factors come to shared memory a few steps ahead of the product.
// A level of a small batch has some ten nodes and of a large one some hundreds: tiles are of two sizes.
#include <cooperative_groups.h>

#include <algorithm>

#include "streamvec/cuda/both_sides.cuh"
#include "streamvec/cuda/lstm_cells.cuh"
#include "streamvec/cuda/lstm_kernels.h"
#include "streamvec/cuda/mma.cuh"

namespace streamvec::cuda {
namespace {

constexpr int kCellThreads = 256;
constexpr int kStages = 4;
constexpr int32_t kLargeLevel = 192;  // nodes

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

template <typename Cell>
__global__ void first_level_kernel(LstmLevel work) {
  constexpr int kGates = Cell::kGates;
  const LstmSide& side = of_side(work.sides);
  const int64_t i = blockIdx.x * int64_t{kCellThreads} + threadIdx.x, H = work.hidden, k = i % H;
  if (i < H) side.h[k] = 0;
  if (i / H >= nodes_of(side.level)) return;
  const int64_t node = node_at(side.level, static_cast<int32_t>(i / H));
  const float* table = side.table + side.characters[node] * kGates * H + k;
  Gates<kGates> z{};
#pragma unroll
  for (int gate = 0; gate < kGates; ++gate) z.input[gate] = table[gate * H];
  Cell::step(side, H, node, 0, k, z);
}

// A kernel may begin before the one that is queued ahead of it ends: what comes before this call must not depend on it,
// but may on those before it. After it that one is done, and the next may begin.
__device__ void await_last_kernel() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// Rows with room for four more values lie so that eight of them are in different banks.
template <int kDepth, int kWarpRows>
__device__ void load_rows(const float* tile, int32_t first, int32_t k, uint32_t (&a)[kWarpRows][4]) {
  constexpr int kPitch = kDepth + 4;
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

// Brings the factors' pieces of the steps 0 .. steps - 1 in order, kStages - 1 steps ahead of use(stage). The first
// weights come before the last kernel is awaited.
template <typename Weights, typename Rows, typename Use>
__device__ void in_steps(int32_t steps, const Weights& bring_weights, const Rows& bring_rows, const Use& use) {
  for (int32_t step = 0; step < min(steps, kStages - 1); ++step) bring_weights(step, step);
  await_last_kernel();
  for (int32_t step = 0; step < kStages - 1; ++step) {
    if (step < steps) bring_rows(step, step);
    end_copy_group();
  }
  for (int32_t step = 0; step < steps; ++step) {
    wait_for_copies<kStages - 2>();
    __syncthreads();  // copies of all threads are there, and the stage that is filled next is no longer in use
    const int32_t next = step + kStages - 1;
    if (next < steps) {
      bring_weights(next, next % kStages);
      bring_rows(next, next % kStages);
    }
    end_copy_group();
    use(step % kStages);
  }
}

// kNodes nodes by kUnits units of the state, all gates of each: a warp has 8 units and kWarpNodes x 16 nodes.
// Steps take kDepth columns of h, and each of kShares sets of warps a share of them: a level has so few tiles that a
// multiprocessor would otherwise have too few warps to hide what they wait for.
template <typename Cell, int kNodes, int kUnits, int kWarpNodes, int kDepth, int kShares>
struct ForwardTile {
  static constexpr int kUnitWarps = kUnits / 8, kWarps = kUnitWarps * (kNodes / 16 / kWarpNodes);  // of a set
  static constexpr int kThreads = 32 * kWarps * kShares;
  static constexpr int kPitch = kDepth + 4, kColumns = Cell::kGates * kUnits, kColumnPitch = kColumns + 8;
  static constexpr int kStage = kNodes * kPitch + kDepth * kColumnPitch;  // values
  static constexpr size_t kBytes = kStages * kStage * sizeof(float);
};

template <typename Cell, int kNodes, int kUnits, int kWarpNodes, int kDepth, int kShares>
__device__ void next_level_tile(const LstmLevel& work) {
  using Tile = ForwardTile<Cell, kNodes, kUnits, kWarpNodes, kDepth, kShares>;
  constexpr int kPitch = Tile::kPitch, kGates = Cell::kGates;
  extern __shared__ __align__(16) float stages[];
  __shared__ int64_t parents[kNodes];
  const LstmSide& side = of_side(work.sides);
  const int32_t H = work.hidden, count = nodes_of(side.level);
  const int32_t first = static_cast<int32_t>(blockIdx.y) * kNodes,
                first_unit = static_cast<int32_t>(blockIdx.x) * kUnits;
  if (first >= count) return;
  const int32_t thread = static_cast<int32_t>(threadIdx.x), lane = thread % 32;
  const int32_t warp = thread / 32 % Tile::kWarps, share = thread / 32 / Tile::kWarps;
  for (int32_t i = thread; i < kNodes; i += Tile::kThreads)
    parents[i] = first + i < count ? side.parents[node_at(side.level, first + i)] : -1;
  __syncthreads();

  const auto bring_rows = [&](int32_t step, int32_t stage) {
    float* rows = stages + stage * Tile::kStage;
    for (int32_t i = thread; i < kNodes * (kDepth / 4); i += Tile::kThreads) {
      const int32_t row = i / (kDepth / 4), k = i % (kDepth / 4) * 4;
      const bool there = parents[row] >= 0 && step * kDepth + k < H;
      copy_later(rows + row * kPitch + k, there ? side.h + parents[row] * H + step * kDepth + k : side.h, there);
    }
  };
  const auto bring_weights = [&](int32_t step, int32_t stage) {
    float* weights = stages + stage * Tile::kStage + kNodes * kPitch;
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
    for (int i = 0; i < kDepth / kShares; i += 8) {
      const int32_t k = share * (kDepth / kShares) + i;
      uint32_t a[kWarpNodes][4];
      load_rows<kDepth>(rows, warp_row, k, a);
#pragma unroll
      for (int gate = 0; gate < kGates; ++gate) {
        const float* b = weights + (k + t) * Tile::kColumnPitch + gate * kUnits;
        const uint32_t b0 = to_tf32(b[0]), b1 = to_tf32(b[4 * Tile::kColumnPitch]);
#pragma unroll
        for (int m = 0; m < kWarpNodes; ++m) multiply_add_tf32(sums[m][gate], a[m], b0, b1);
      }
    }
  };
  in_steps((H + kDepth - 1) / kDepth, bring_weights, bring_rows, use);

  __syncthreads();  // stages are no longer in use: each set's sums go there, [node][gate][unit]
  static_assert(kShares * kNodes * Tile::kColumns <= kStages * Tile::kStage);
  float* own = stages + share * kNodes * Tile::kColumns;
#pragma unroll
  for (int m = 0; m < kWarpNodes; ++m)
#pragma unroll
    for (int gate = 0; gate < kGates; ++gate)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        own[(warp_row + 16 * m + 8 * (i / 2) + g) * Tile::kColumns + gate * kUnits + warp_unit + 2 * t + i % 2] =
            sums[m][gate][i];
  __syncthreads();
  for (int32_t i = thread; i < kNodes * kUnits; i += Tile::kThreads) {
    const int32_t row = i / kUnits, unit = first_unit + i % kUnits;
    if (first + row >= count || unit >= H) continue;
    const int64_t node = node_at(side.level, first + row);
    const float* table = side.table + int64_t{side.characters[node]} * kGates * H + unit;
    Gates<kGates> z{};
#pragma unroll
    for (int gate = 0; gate < kGates; ++gate) {
      z.input[gate] = table[int64_t{gate} * H];
#pragma unroll
      for (int set = 0; set < kShares; ++set)
        z.recurrent[gate] += stages[(set * kNodes + row) * Tile::kColumns + gate * kUnits + i % kUnits];
    }
    Cell::step(side, H, node, parents[row], unit, z);
  }
}

template <typename Cell, int kNodes, int kUnits, int kWarpNodes, int kDepth, int kShares>
__global__ __launch_bounds__(
    (ForwardTile<Cell, kNodes, kUnits, kWarpNodes, kDepth, kShares>::kThreads)) void next_level_kernel(LstmLevel work) {
  next_level_tile<Cell, kNodes, kUnits, kWarpNodes, kDepth, kShares>(work);
}

// One value of one cell on the way back; `dh` is whole.
template <typename Cell>
__device__ void climb_cell(const LstmSide& side, const LstmSlopes& slopes, int64_t H, int64_t node, int64_t k, float dh,
                           float dc_from_children) {
  constexpr int kGates = Cell::kGates;
  const int64_t parent = side.parents[node];
  Gates<kGates> dz;
  const float dc_before = Cell::climb(side, H, node, parent, k, dh, dc_from_children, dz);
  float* to = of_side(slopes.dz) + node * kGates * H + k;
  float* sum = of_side(slopes.dz_sum) + parent * kGates * H + k;
#pragma unroll
  for (int gate = 0; gate < kGates; ++gate) {
    to[gate * H] = dz.input[gate];
    if (parent != 0) atomicAdd(sum + gate * H, dz.recurrent[gate]);
  }
  if (parent != 0) atomicAdd(of_side(slopes.dc) + parent * H + k, dc_before);
}

template <typename Cell>
__global__ void climb_leaves_kernel(LstmLevel work, LstmSlopes slopes) {
  const LstmSide& side = of_side(work.sides);
  const int64_t i = blockIdx.x * int64_t{kCellThreads} + threadIdx.x, H = work.hidden, k = i % H;
  const int64_t node = side.level.leaf_begin + i / H;
  if (node < side.level.leaf_end) climb_cell<Cell>(side, slopes, H, node, k, of_side(slopes.dh)[node * H + k], 0);
}

// kSide x kSide values of dh, and their cells. The blocks of a cluster have a gate's share of the product each, and
// then their share of the values. A warp has kWarpRows x 16 rows and 16 columns of a product.
template <int kSide, int kWarpRows, int kDepth, int kShares>
struct BackwardTile {
  static constexpr int kPitch = kDepth + 4;
  static constexpr int kColumnWarps = kSide / 16, kWarps = kColumnWarps * (kSide / 16 / kWarpRows);
  static constexpr int kThreads = 32 * kWarps * kShares;
  static constexpr int kStage = 2 * kSide * kPitch;  // values
  static constexpr size_t kBytes = kStages * kStage * sizeof(float);
};

template <typename Cell, int kSide, int kWarpRows, int kDepth, int kShares>
__global__ __cluster_dims__(Cell::kGates, 1, 1)
    __launch_bounds__((BackwardTile<kSide, kWarpRows, kDepth, kShares>::kThreads)) void climb_level_kernel(
        LstmLevel work, LstmSlopes slopes) {
  using Tile = BackwardTile<kSide, kWarpRows, kDepth, kShares>;
  constexpr int kPitch = Tile::kPitch, kGates = Cell::kGates;
  extern __shared__ __align__(16) float stages[];
  const LstmSide& side = of_side(work.sides);
  const int32_t H = work.hidden, count = inner_of(side.level), gate = static_cast<int32_t>(blockIdx.x) % kGates;
  const int32_t first = static_cast<int32_t>(blockIdx.y) * kSide;
  const int32_t first_column = static_cast<int32_t>(blockIdx.x) / kGates * kSide;
  if (first >= count) return;  // the whole cluster
  const int32_t thread = static_cast<int32_t>(threadIdx.x), lane = thread % 32;
  const int32_t warp = thread / 32 % Tile::kWarps, share = thread / 32 / Tile::kWarps;

  // `rows` rows of G H values each, from the gate's columns on.
  const auto bring = [&](const float* from, int32_t first_row, int32_t rows, int32_t step, float* to) {
    for (int32_t i = thread; i < kSide * (kDepth / 4); i += Tile::kThreads) {
      const int32_t row = i / (kDepth / 4), k = i % (kDepth / 4) * 4, depth = step * kDepth + k;
      const bool there = depth < H && first_row + row < rows;
      const int64_t at = (int64_t{first_row + row} * kGates + gate) * H + depth;
      copy_later(to + row * kPitch + k, from + (there ? at : 0), there);
    }
  };
  const float* dz_sum = of_side(slopes.dz_sum) + int64_t{side.level.inner_begin} * kGates * H;
  const auto bring_rows = [&](int32_t step, int32_t stage) {
    bring(dz_sum, first, count, step, stages + stage * Tile::kStage);
  };
  const auto bring_weights = [&](int32_t step, int32_t stage) {
    bring(side.recurrent, first_column, H, step, stages + stage * Tile::kStage + kSide * kPitch);
  };

  const int32_t warp_row = warp / Tile::kColumnWarps * 16 * kWarpRows, warp_column = warp % Tile::kColumnWarps * 16;
  const int32_t g = lane / 4, t = lane % 4;
  float sums[kWarpRows][2][4] = {};
  const auto use = [&](int32_t stage) {
    const float* rows = stages + stage * Tile::kStage;
    const float* weights = rows + (kSide + warp_column + g) * kPitch + t;
#pragma unroll
    for (int i = 0; i < kDepth / kShares; i += 8) {
      const int32_t k = share * (kDepth / kShares) + i;
      uint32_t a[kWarpRows][4];
      load_rows<kDepth>(rows, warp_row, k, a);
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const uint32_t b0 = to_tf32(weights[8 * n * kPitch + k]), b1 = to_tf32(weights[8 * n * kPitch + k + 4]);
#pragma unroll
        for (int m = 0; m < kWarpRows; ++m) multiply_add_tf32(sums[m][n], a[m], b0, b1);
      }
    }
  };
  in_steps((H + kDepth - 1) / kDepth, bring_weights, bring_rows, use);

  __syncthreads();  // stages are no longer in use: each set's sums go there
  constexpr int kValues = kSide * kSide;
  static_assert(kShares * kValues <= kStages * Tile::kStage);
#pragma unroll
  for (int m = 0; m < kWarpRows; ++m)
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int32_t row = warp_row + 16 * m + 8 * (i / 2) + g, column = warp_column + 8 * n + 2 * t + i % 2;
        stages[share * kValues + row * kSide + column] = sums[m][n][i];
      }
  __syncthreads();
  for (int32_t i = thread; i < kValues; i += Tile::kThreads)
#pragma unroll
    for (int set = 1; set < kShares; ++set) stages[i] += stages[set * kValues + i];
  const auto cluster = cooperative_groups::this_cluster();
  cluster.sync();
  constexpr int kOwnValues = (kValues + kGates - 1) / kGates;
  for (int32_t at = gate * kOwnValues + thread; at < min((gate + 1) * kOwnValues, kValues); at += Tile::kThreads) {
    const int32_t row = first + at / kSide, k = first_column + at % kSide;
    if (row >= count || k >= H) continue;
    const int64_t node = side.level.inner_begin + row;
    float dh = of_side(slopes.dh)[node * H + k];
    for (unsigned rank = 0; rank < kGates; ++rank) dh += cluster.map_shared_rank(stages, rank)[at];
    climb_cell<Cell>(side, slopes, H, node, k, dh, of_side(slopes.dc)[node * H + k]);
  }
  cluster.sync();  // what others read stays until they have
}

uint32_t pieces(int64_t items, int64_t size) {
  return static_cast<uint32_t>((items + size - 1) / size);
}

int32_t most_nodes(const LstmLevel& work) {
  return std::max(nodes_of(work.sides[0].level), nodes_of(work.sides[1].level));
}

// Queues a kernel that awaits the last one itself, with the shared memory it needs.
template <typename Tile, typename... Arguments>
cudaError_t queue_early(void (*kernel)(Arguments...), dim3 grid, cudaStream_t stream, Arguments... arguments) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(Tile::kThreads);
  config.dynamicSmemBytes = Tile::kBytes;
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

template <typename Kernel>
cudaError_t let_have(Kernel kernel, size_t bytes) {
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
}

template <typename Cell, int kNodes, int kUnits, int kWarpNodes, int kDepth, int kShares>
cudaError_t next_level(const LstmLevel& work, cudaStream_t stream) {
  using Tile = ForwardTile<Cell, kNodes, kUnits, kWarpNodes, kDepth, kShares>;
  constexpr auto kernel = next_level_kernel<Cell, kNodes, kUnits, kWarpNodes, kDepth, kShares>;
  static const cudaError_t prepared = let_have(kernel, Tile::kBytes);
  if (prepared != cudaSuccess) return prepared;
  return queue_early<Tile>(+kernel, dim3(pieces(work.hidden, kUnits), pieces(most_nodes(work), kNodes), 2), stream,
                           work);
}

template <typename Cell, int kSide, int kWarpRows, int kDepth, int kShares>
cudaError_t climb_level(const LstmLevel& work, const LstmSlopes& slopes, int32_t rows, cudaStream_t stream) {
  using Tile = BackwardTile<kSide, kWarpRows, kDepth, kShares>;
  constexpr auto kernel = climb_level_kernel<Cell, kSide, kWarpRows, kDepth, kShares>;
  static const cudaError_t prepared = let_have(kernel, Tile::kBytes);
  if (prepared != cudaSuccess) return prepared;
  return queue_early<Tile>(+kernel, dim3(pieces(work.hidden, kSide) * Cell::kGates, pieces(rows, kSide), 2), stream,
                           work, slopes);
}

template <typename Cell>
cudaError_t next_level_of(const LstmLevel& work, int32_t nodes, cudaStream_t stream) {
  return nodes < kLargeLevel ? next_level<Cell, 32, 16, 1, 64, 4>(work, stream)
                             : next_level<Cell, 64, 32, 2, 32, 2>(work, stream);
}

template <typename Cell>
cudaError_t climb_level_of(const LstmLevel& work, const LstmSlopes& slopes, int32_t rows, cudaStream_t stream) {
  return rows < kLargeLevel ? climb_level<Cell, 32, 1, 64, 4>(work, slopes, rows, stream)
                            : climb_level<Cell, 64, 2, 32, 2>(work, slopes, rows, stream);
}

}  // namespace

void first_lstm_level(const LstmLevel& work, cudaStream_t stream) {
  const dim3 grid(pieces(int64_t{most_nodes(work)} * work.hidden, kCellThreads), 1, 2);
  const auto kernel = work.gru ? first_level_kernel<Gru> : first_level_kernel<Lstm>;
  if (grid.x > 0) kernel<<<grid, kCellThreads, 0, stream>>>(work);
}

cudaError_t next_lstm_level(const LstmLevel& work, cudaStream_t stream) {
  const int32_t nodes = most_nodes(work);
  if (nodes == 0) return cudaSuccess;
  return work.gru ? next_level_of<Gru>(work, nodes, stream) : next_level_of<Lstm>(work, nodes, stream);
}

void climb_lstm_leaves(const LstmLevel& leaves, const LstmSlopes& slopes, cudaStream_t stream) {
  const dim3 grid(pieces(int64_t{most_nodes(leaves)} * leaves.hidden, kCellThreads), 1, 2);
  const auto kernel = leaves.gru ? climb_leaves_kernel<Gru> : climb_leaves_kernel<Lstm>;
  if (grid.x > 0) kernel<<<grid, kCellThreads, 0, stream>>>(leaves, slopes);
}

cudaError_t climb_lstm_level(const LstmLevel& work, const LstmSlopes& slopes, cudaStream_t stream) {
  const int32_t rows = std::max(inner_of(work.sides[0].level), inner_of(work.sides[1].level));
  if (rows == 0) return cudaSuccess;
  return work.gru ? climb_level_of<Gru>(work, slopes, rows, stream) : climb_level_of<Lstm>(work, slopes, rows, stream);
}

}  // namespace streamvec::cuda
