// Products run on tensor cores in tiles: pieces of both factors come to shared memory a few steps ahead of the product.
// A level of a small batch has some ten nodes and of a large one some hundreds: tiles are of two sizes.
#include <cooperative_groups.h>

#include <algorithm>
#include <cstddef>

#include "streamvec/cuda/both_sides.cuh"
#include "streamvec/cuda/lstm_cells.cuh"
#include "streamvec/cuda/lstm_kernels.h"
#include "streamvec/cuda/lstm_products.cuh"

namespace streamvec::cuda {
namespace {

constexpr int kCellThreads = 256;
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

// Brings the factors' pieces of the steps 0 .. steps - 1 in order, kStages - 1 steps ahead of use(stage). The first
// weights come before the last kernel is awaited.
template <int kStages, typename Weights, typename Rows, typename Use>
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

// The weights of a level's product, as the product takes them.
template <typename Product>
__device__ const typename Product::Weight* weights_of(const LstmSide& side) {
  if constexpr (sizeof(typename Product::Weight) == sizeof(float))
    return side.recurrent;
  else
    return side.recurrent_bf16;
}

// kNodes nodes by kUnits units of the state, all gates of each: a warp has 8 units and kWarpNodes x 16 nodes.
// Steps take kDepth columns of h, and each of kShares sets of warps a share of them: a level has so few tiles that a
// multiprocessor would otherwise have too few warps to hide what they wait for.
template <typename Cell_, typename Product_, int kNodes_, int kUnits_, int kWarpNodes_, int kDepth_, int kShares_,
          int kStages_>
struct ForwardTile {
  using Cell = Cell_;
  using Product = Product_;
  using Weight = typename Product::Weight;
  static constexpr int kNodes = kNodes_, kUnits = kUnits_, kWarpNodes = kWarpNodes_, kDepth = kDepth_;
  static constexpr int kShares = kShares_, kStages = kStages_;
  static constexpr int kUnitWarps = kUnits / 8, kWarps = kUnitWarps * (kNodes / 16 / kWarpNodes);  // of a set
  static constexpr int kThreads = 32 * kWarps * kShares;
  static constexpr int kPitch = kDepth + Product::kRowRoom;
  static constexpr int kColumns = Cell::kGates * kUnits, kColumnPitch = kColumns + Product::kAcrossRoom;
  static constexpr size_t kRowBytes = kNodes * kPitch * sizeof(float);
  static constexpr size_t kStage = kRowBytes + kDepth * kColumnPitch * sizeof(Weight);
  static constexpr size_t kBytes = kStages * kStage;
  static_assert(kShares * kNodes * kColumns * sizeof(float) <= kBytes && kStage % 16 == 0);
};

template <typename Tile>
__global__ __launch_bounds__(Tile::kThreads) void next_level_kernel(LstmLevel work) {
  using Weight = typename Tile::Weight;
  constexpr int kPitch = Tile::kPitch, kGates = Tile::Cell::kGates, kNodes = Tile::kNodes, kUnits = Tile::kUnits;
  constexpr int kDepth = Tile::kDepth, kShares = Tile::kShares, kWarpNodes = Tile::kWarpNodes;
  constexpr int kAtOnce = 16 / sizeof(Weight);  // weights of a copy
  extern __shared__ __align__(16) std::byte stages[];
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

  const auto rows_at = [&](int32_t stage) { return reinterpret_cast<float*>(stages + stage * Tile::kStage); };
  const auto weights_at = [&](int32_t stage) {
    return reinterpret_cast<Weight*>(stages + stage * Tile::kStage + Tile::kRowBytes);
  };
  const auto bring_rows = [&](int32_t step, int32_t stage) {
    for (int32_t i = thread; i < kNodes * (kDepth / 4); i += Tile::kThreads) {
      const int32_t row = i / (kDepth / 4), k = i % (kDepth / 4) * 4;
      const bool there = parents[row] >= 0 && step * kDepth + k < H;
      copy_later(rows_at(stage) + row * kPitch + k, there ? side.h + parents[row] * H + step * kDepth + k : side.h,
                 there);
    }
  };
  const Weight* recurrent = weights_of<typename Tile::Product>(side);
  const auto bring_weights = [&](int32_t step, int32_t stage) {
    for (int32_t i = thread; i < kDepth * (Tile::kColumns / kAtOnce); i += Tile::kThreads) {
      const int32_t k = i / (Tile::kColumns / kAtOnce), column = i % (Tile::kColumns / kAtOnce) * kAtOnce;
      const int32_t unit = first_unit + column % kUnits, depth = step * kDepth + k;
      const bool there = depth < H && unit < H;
      const int64_t at = (int64_t{depth} * kGates + column / kUnits) * H + unit;
      copy_later(weights_at(stage) + k * Tile::kColumnPitch + column, recurrent + (there ? at : 0), there);
    }
  };

  const int32_t warp_row = warp / Tile::kUnitWarps * 16 * kWarpNodes, warp_unit = warp % Tile::kUnitWarps * 8;
  const int32_t g = lane / 4, t = lane % 4;
  float sums[kWarpNodes][kGates][4] = {};
  const auto use = [&](int32_t stage) {
#pragma unroll
    for (int i = 0; i < kDepth / kShares; i += Tile::Product::kDepth) {
      const int32_t k = share * (kDepth / kShares) + i;
      uint32_t a[kWarpNodes][4], b[kGates][2];
      Tile::Product::load_rows(rows_at(stage), kPitch, warp_row, k, a);
      Tile::Product::load_across(weights_at(stage), Tile::kColumnPitch, k, warp_unit, kUnits, b);
#pragma unroll
      for (int gate = 0; gate < kGates; ++gate)
#pragma unroll
        for (int m = 0; m < kWarpNodes; ++m) Tile::Product::add_product(sums[m][gate], a[m], b[gate]);
    }
  };
  in_steps<Tile::kStages>((H + kDepth - 1) / kDepth, bring_weights, bring_rows, use);

  __syncthreads();  // stages are no longer in use: each set's sums go there, [node][gate][unit]
  float* all = rows_at(0);
  float* own = all + share * kNodes * Tile::kColumns;
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
        z.recurrent[gate] += all[(set * kNodes + row) * Tile::kColumns + gate * kUnits + i % kUnits];
    }
    Tile::Cell::step(side, H, node, parents[row], unit, z);
  }
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
template <typename Cell_, typename Product_, int kSide_, int kWarpRows_, int kDepth_, int kShares_, int kStages_>
struct BackwardTile {
  using Cell = Cell_;
  using Product = Product_;
  using Weight = typename Product::Weight;
  static constexpr int kSide = kSide_, kWarpRows = kWarpRows_, kDepth = kDepth_, kShares = kShares_, kStages = kStages_;
  static constexpr int kPitch = kDepth + Product::kRowRoom, kWeightPitch = kDepth + Product::kAlongRoom;
  static constexpr int kColumnWarps = kSide / 16, kWarps = kColumnWarps * (kSide / 16 / kWarpRows);
  static constexpr int kThreads = 32 * kWarps * kShares;
  static constexpr size_t kRowBytes = kSide * kPitch * sizeof(float);
  static constexpr size_t kStage = kRowBytes + kSide * kWeightPitch * sizeof(Weight);
  static constexpr size_t kBytes = kStages * kStage;
  static_assert(kShares * kSide * kSide * sizeof(float) <= kBytes && kStage % 16 == 0);
};

template <typename Tile>
__global__ __cluster_dims__(Tile::Cell::kGates, 1, 1)
    __launch_bounds__(Tile::kThreads) void climb_level_kernel(LstmLevel work, LstmSlopes slopes) {
  using Weight = typename Tile::Weight;
  constexpr int kGates = Tile::Cell::kGates, kSide = Tile::kSide, kWarpRows = Tile::kWarpRows;
  constexpr int kDepth = Tile::kDepth, kShares = Tile::kShares;
  extern __shared__ __align__(16) std::byte stages[];
  const LstmSide& side = of_side(work.sides);
  const int32_t H = work.hidden, count = inner_of(side.level), gate = static_cast<int32_t>(blockIdx.x) % kGates;
  const int32_t first = static_cast<int32_t>(blockIdx.y) * kSide;
  const int32_t first_column = static_cast<int32_t>(blockIdx.x) / kGates * kSide;
  if (first >= count) return;  // the whole cluster
  const int32_t thread = static_cast<int32_t>(threadIdx.x), lane = thread % 32;
  const int32_t warp = thread / 32 % Tile::kWarps, share = thread / 32 / Tile::kWarps;

  const auto rows_at = [&](int32_t stage) { return reinterpret_cast<float*>(stages + stage * Tile::kStage); };
  const auto weights_at = [&](int32_t stage) {
    return reinterpret_cast<Weight*>(stages + stage * Tile::kStage + Tile::kRowBytes);
  };
  // `rows` rows of G H values each, from the gate's columns on.
  const auto bring = [&](const auto* from, int32_t first_row, int32_t rows, int32_t step, auto* to, int32_t pitch) {
    constexpr int kAtOnce = 16 / sizeof(*from);
    for (int32_t i = thread; i < kSide * (kDepth / kAtOnce); i += Tile::kThreads) {
      const int32_t row = i / (kDepth / kAtOnce), k = i % (kDepth / kAtOnce) * kAtOnce, depth = step * kDepth + k;
      const bool there = depth < H && first_row + row < rows;
      const int64_t at = (int64_t{first_row + row} * kGates + gate) * H + depth;
      copy_later(to + row * pitch + k, from + (there ? at : 0), there);
    }
  };
  const float* dz_sum = of_side(slopes.dz_sum) + int64_t{side.level.inner_begin} * kGates * H;
  const auto bring_rows = [&](int32_t step, int32_t stage) {
    bring(dz_sum, first, count, step, rows_at(stage), Tile::kPitch);
  };
  const Weight* recurrent = weights_of<typename Tile::Product>(side);
  const auto bring_weights = [&](int32_t step, int32_t stage) {
    bring(recurrent, first_column, H, step, weights_at(stage), Tile::kWeightPitch);
  };

  const int32_t warp_row = warp / Tile::kColumnWarps * 16 * kWarpRows, warp_column = warp % Tile::kColumnWarps * 16;
  const int32_t g = lane / 4, t = lane % 4;
  float sums[kWarpRows][2][4] = {};
  const auto use = [&](int32_t stage) {
#pragma unroll
    for (int i = 0; i < kDepth / kShares; i += Tile::Product::kDepth) {
      const int32_t k = share * (kDepth / kShares) + i;
      uint32_t a[kWarpRows][4], b[2][2];
      Tile::Product::load_rows(rows_at(stage), Tile::kPitch, warp_row, k, a);
      Tile::Product::load_along(weights_at(stage), Tile::kWeightPitch, k, warp_column, 8, b);
#pragma unroll
      for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int m = 0; m < kWarpRows; ++m) Tile::Product::add_product(sums[m][n], a[m], b[n]);
    }
  };
  in_steps<Tile::kStages>((H + kDepth - 1) / kDepth, bring_weights, bring_rows, use);

  __syncthreads();  // stages are no longer in use: each set's sums go there
  constexpr int kValues = kSide * kSide;
  float* all = rows_at(0);
#pragma unroll
  for (int m = 0; m < kWarpRows; ++m)
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int32_t row = warp_row + 16 * m + 8 * (i / 2) + g, column = warp_column + 8 * n + 2 * t + i % 2;
        all[share * kValues + row * kSide + column] = sums[m][n][i];
      }
  __syncthreads();
  for (int32_t i = thread; i < kValues; i += Tile::kThreads)
#pragma unroll
    for (int set = 1; set < kShares; ++set) all[i] += all[set * kValues + i];
  const auto cluster = cooperative_groups::this_cluster();
  cluster.sync();
  constexpr int kOwnValues = (kValues + kGates - 1) / kGates;
  for (int32_t at = gate * kOwnValues + thread; at < min((gate + 1) * kOwnValues, kValues); at += Tile::kThreads) {
    const int32_t row = first + at / kSide, k = first_column + at % kSide;
    if (row >= count || k >= H) continue;
    const int64_t node = side.level.inner_begin + row;
    float dh = of_side(slopes.dh)[node * H + k];
    for (unsigned rank = 0; rank < kGates; ++rank) dh += cluster.map_shared_rank(all, rank)[at];
    climb_cell<typename Tile::Cell>(side, slopes, H, node, k, dh, of_side(slopes.dc)[node * H + k]);
  }
  cluster.sync();  // what others read stays until they have
}

uint32_t pieces(int64_t items, int64_t size) {
  return static_cast<uint32_t>((items + size - 1) / size);
}

int32_t most_nodes(const LstmLevel& work) {
  return std::max(nodes_of(work.sides[0].level), nodes_of(work.sides[1].level));
}

int32_t most_inner(const LstmLevel& work) {
  return std::max(inner_of(work.sides[0].level), inner_of(work.sides[1].level));
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

template <typename Tile>
cudaError_t next_level(const LstmLevel& work, cudaStream_t stream) {
  constexpr auto kernel = next_level_kernel<Tile>;
  static const cudaError_t prepared = let_have(kernel, Tile::kBytes);
  if (prepared != cudaSuccess) return prepared;
  return queue_early<Tile>(+kernel, dim3(pieces(work.hidden, Tile::kUnits), pieces(most_nodes(work), Tile::kNodes), 2),
                           stream, work);
}

template <typename Tile>
cudaError_t climb_level(const LstmLevel& work, const LstmSlopes& slopes, cudaStream_t stream) {
  constexpr auto kernel = climb_level_kernel<Tile>;
  static const cudaError_t prepared = let_have(kernel, Tile::kBytes);
  if (prepared != cudaSuccess) return prepared;
  const dim3 grid(pieces(work.hidden, Tile::kSide) * Tile::Cell::kGates, pieces(most_inner(work), Tile::kSide), 2);
  return queue_early<Tile>(+kernel, grid, stream, work, slopes);
}

template <typename Cell>
cudaError_t next_level_of(const LstmLevel& work, cudaStream_t stream) {
  const bool small = most_nodes(work) < kLargeLevel;
  if (work.bf16)
    return small ? next_level<ForwardTile<Cell, Bf16, 32, 16, 1, 128, 4, 3>>(work, stream)
                 : next_level<ForwardTile<Cell, Bf16, 64, 32, 2, 64, 2, 3>>(work, stream);
  return small ? next_level<ForwardTile<Cell, Tf32, 32, 16, 1, 64, 4, 4>>(work, stream)
               : next_level<ForwardTile<Cell, Tf32, 64, 32, 2, 32, 2, 4>>(work, stream);
}

template <typename Cell>
cudaError_t climb_level_of(const LstmLevel& work, const LstmSlopes& slopes, cudaStream_t stream) {
  const bool small = most_inner(work) < kLargeLevel;
  if (work.bf16)
    return small ? climb_level<BackwardTile<Cell, Bf16, 32, 1, 256, 4, 2>>(work, slopes, stream)
                 : climb_level<BackwardTile<Cell, Bf16, 64, 1, 64, 2, 3>>(work, slopes, stream);
  return small ? climb_level<BackwardTile<Cell, Tf32, 32, 1, 64, 4, 4>>(work, slopes, stream)
               : climb_level<BackwardTile<Cell, Tf32, 64, 2, 32, 2, 4>>(work, slopes, stream);
}

}  // namespace

void first_lstm_level(const LstmLevel& work, cudaStream_t stream) {
  const dim3 grid(pieces(int64_t{most_nodes(work)} * work.hidden, kCellThreads), 1, 2);
  const auto kernel = work.gru ? first_level_kernel<Gru> : first_level_kernel<Lstm>;
  if (grid.x > 0) kernel<<<grid, kCellThreads, 0, stream>>>(work);
}

cudaError_t next_lstm_level(const LstmLevel& work, cudaStream_t stream) {
  if (most_nodes(work) == 0) return cudaSuccess;
  return work.gru ? next_level_of<Gru>(work, stream) : next_level_of<Lstm>(work, stream);
}

void climb_lstm_leaves(const LstmLevel& leaves, const LstmSlopes& slopes, cudaStream_t stream) {
  const dim3 grid(pieces(int64_t{most_nodes(leaves)} * leaves.hidden, kCellThreads), 1, 2);
  const auto kernel = leaves.gru ? climb_leaves_kernel<Gru> : climb_leaves_kernel<Lstm>;
  if (grid.x > 0) kernel<<<grid, kCellThreads, 0, stream>>>(leaves, slopes);
}

cudaError_t climb_lstm_level(const LstmLevel& work, const LstmSlopes& slopes, cudaStream_t stream) {
  if (most_inner(work) == 0) return cudaSuccess;
  return work.gru ? climb_level_of<Gru>(work, slopes, stream) : climb_level_of<Lstm>(work, slopes, stream);
}

}  // namespace streamvec::cuda
