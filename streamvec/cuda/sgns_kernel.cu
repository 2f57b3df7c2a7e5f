// One block of threads takes one segment of text after another; the segment's blocks of pairs follow each other as on a
// CPU's thread. Shared memory holds the rows of the pair block in bf16 and its coefficients.
//
// n inputs (columns), m outputs (centres, then negatives), D values a row, all padded with zeros to sixteens. Of every 16
// columns of D, those that a lane gets as pairs from two neighbouring products (mma.cuh) are put where they are four
// neighbours of a row: column 4 t + r lies at 2 t + r, or at 8 + 2 t + r - 2 for r > 1. Products do not mind.
#include <cuda_bf16.h>

#include "streamvec/cuda/draws.h"
#include "streamvec/cuda/mma.cuh"
#include "streamvec/cuda/sgns_kernel.h"

namespace streamvec::cuda {
namespace {

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;
constexpr int kWordsMax = kSegmentWords + 2 * kHaloWords;
constexpr int32_t kNoRow = -1;

// In 16-byte units odd, so that eight rows at one column lie in different banks.
__host__ __device__ int32_t row_pitch(int32_t stride) {
  return stride + 8;
}

struct Shared {
  __nv_bfloat16* rows;          // [n + m][row_pitch]: inputs, outputs
  __nv_bfloat16* coefficients;  // [m][n + 8]
  uint32_t* words;              // of the segment, subsampled
  uint8_t* reach;               // of their windows
  uint32_t* cover;              // [n] by column: the centres whose window has it, as bits
  uint32_t* own;                // [m] by output: centres that have no weight with it, as bits
  int32_t* slots;               // [n + m]
  float* sums;                  // [n + m]: of the coefficients' sizes
  float* crowd;                 // [n + m]: the factor for a crowded row
  int32_t* negatives;           // of the next block
  int32_t* warp_counts;
};

__host__ __device__ size_t round16(size_t bytes) {
  return (bytes + 15) / 16 * 16;
}

// Where things lie from `base` on; returns how many bytes they take.
__host__ __device__ size_t lay_out(const SgnsShape& shape, int32_t n, int32_t m, char* base, Shared& s) {
  size_t at = 0;
  const auto take = [&](size_t bytes) {
    char* begin = base + at;
    at += round16(bytes);
    return begin;
  };
  s.rows = reinterpret_cast<__nv_bfloat16*>(take(sizeof(__nv_bfloat16) * (n + m) * row_pitch(shape.stride)));
  s.coefficients = reinterpret_cast<__nv_bfloat16*>(take(sizeof(__nv_bfloat16) * m * (n + 8)));
  s.words = reinterpret_cast<uint32_t*>(take(sizeof(uint32_t) * kWordsMax));
  s.reach = reinterpret_cast<uint8_t*>(take(kWordsMax));
  s.cover = reinterpret_cast<uint32_t*>(take(sizeof(uint32_t) * n));
  s.own = reinterpret_cast<uint32_t*>(take(sizeof(uint32_t) * m));
  s.slots = reinterpret_cast<int32_t*>(take(sizeof(int32_t) * (n + m)));
  s.sums = reinterpret_cast<float*>(take(sizeof(float) * (n + m)));
  s.crowd = reinterpret_cast<float*>(take(sizeof(float) * (n + m)));
  s.negatives = reinterpret_cast<int32_t*>(take(sizeof(int32_t) * shape.negatives));
  s.warp_counts = reinterpret_cast<int32_t*>(take(sizeof(int32_t) * kWarps));
  return at;
}

// The words of a segment that subsampling leaves, with their neighbours; centres are [centre_begin, centre_end).
struct Kept {
  int32_t count, centre_begin, centre_end;
};

__device__ Kept keep_words(const SgnsArguments& a, const Segment& segment, const Shared& s) {
  const int32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int32_t begin = max(segment.begin - kHaloWords, 0), end = min(segment.end + kHaloWords, segment.words_count);
  Kept kept{0, 0, 0};
  for (int32_t base = begin; base < end; base += kThreads) {
    const int32_t at = base + static_cast<int32_t>(threadIdx.x);
    const uint32_t word = at < end ? segment.words[at] : 0;
    const uint32_t slot = word & kSlotMask;
    const bool keep = at < end && (slot >= static_cast<uint32_t>(a.thresholds_count) ||
                                   keep_draw(segment.draw, at) <= a.thresholds[slot]);
    const uint32_t mask = __ballot_sync(~0u, keep);
    if (lane == 0) s.warp_counts[warp] = __popc(mask);
    kept.centre_begin += __syncthreads_count(keep && at < segment.begin);
    kept.centre_end += __syncthreads_count(keep && at < segment.end);
    int32_t place = kept.count;
    for (int32_t i = 0; i < kWarps; ++i) {
      place += i < warp ? s.warp_counts[i] : 0;
      kept.count += s.warp_counts[i];
    }
    if (keep) {
      place += __popc(mask & ((1u << lane) - 1));
      s.words[place] = word;
      s.reach[place] = static_cast<uint8_t>(reach_draw(segment.draw, at, a.shape.window));
    }
    __syncthreads();
  }
  return kept;
}

// One from each of K equal strata (vocab/sampling.h), for the block whose first centre is the chunk's `first`-th kept
// word or so; and a hint that their rows are needed soon.
__device__ void draw_negatives(const SgnsArguments& a, uint64_t draw, int64_t first, const Shared& s) {
  const uint64_t stratum = ~uint64_t{0} / a.shape.negatives;
  for (int32_t k = threadIdx.x; k < a.shape.negatives; k += kThreads) {
    const uint64_t at = k * stratum + __umul64hi(negative_draw(draw, first, k), stratum);
    int32_t slot = a.guide[at >> a.shift];
    while (a.ends[slot] <= at) ++slot;
    s.negatives[k] = slot;
    const float* row = a.output + static_cast<int64_t>(slot) * a.shape.stride;
    for (int32_t d = 0; d < a.shape.stride; d += 32) asm volatile("prefetch.global.L2 [%0];" ::"l"(row + d));
  }
}

// A block of pairs: columns [column, column + columns) of the kept words, centres [first, first + centres) of them.
struct Block {
  int32_t column, columns, first, centres;
};

__device__ bool covers(const Shared& s, int32_t centre, int32_t word) {
  const int32_t distance = abs(centre - word);
  return distance > 0 && distance <= s.reach[centre] && (s.words[centre] ^ s.words[word]) >> kSlotBits == 0;
}

// Which rows the block has, and who has weight with whom. negatives[] are used up after it.
__device__ void plan_block(const SgnsArguments& a, const Block& block, const Shared& s) {
  const int32_t n = a.inputs, m = a.outputs;
  for (int32_t r = threadIdx.x; r < n + m; r += kThreads) {
    s.sums[r] = 0;
    if (r < n) {
      s.slots[r] = r < block.columns ? static_cast<int32_t>(s.words[block.column + r] & kSlotMask) : kNoRow;
      uint32_t cover = 0;
      if (r < block.columns)
        for (int32_t c = 0; c < block.centres; ++c)
          cover |= covers(s, block.first + c, block.column + r) ? 1u << c : 0;
      s.cover[r] = cover;
    } else {
      const int32_t i = r - n, k = i - a.shape.centres;
      int32_t slot = kNoRow;
      uint32_t own = ~0u;
      if (i < block.centres) {
        slot = static_cast<int32_t>(s.words[block.first + i] & kSlotMask);
        own = ~(1u << i);
      } else if (k >= 0 && k < a.shape.negatives) {
        slot = s.negatives[k];
        own = 0;
        for (int32_t c = 0; c < block.centres; ++c)
          own |= static_cast<int32_t>(s.words[block.first + c] & kSlotMask) == slot ? 1u << c : 0;
      }
      s.slots[r] = slot;
      s.own[i] = own;
    }
  }
}

__device__ float* row_of(const SgnsArguments& a, int32_t r, int32_t slot) {
  return (r < a.inputs ? a.input : a.output) + static_cast<int64_t>(slot) * a.shape.stride;
}

// Rows that many blocks have at once get steps as short as all of them together need.
__device__ void find_crowds(const SgnsArguments& a, float lr, const Shared& s) {
  for (int32_t r = threadIdx.x; r < a.inputs + a.outputs; r += kThreads) {
    const int32_t slot = s.slots[r];
    if (slot < 0 || slot >= a.crowds_count) {
      s.crowd[r] = 1;
      continue;
    }
    const float2 crowds = a.crowds[slot];
    const float sum = lr * (r < a.inputs ? crowds.x : crowds.y);
    s.crowd[r] = sum > a.crowd_max ? a.crowd_max / sum : 1.0f;
  }
}

__device__ uint32_t rounded(float x, float y) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// Rows from the card's memory, rounded to bf16. They come past the first cache, which does not know of others' steps.
// `meanwhile` is done while they are on their way.
template <int kPasses, typename Meanwhile>
__device__ void load_rows(const SgnsArguments& a, const Shared& s, const Meanwhile& meanwhile) {
  constexpr int kRows = 12 / kPasses > 0 ? 12 / kPasses : 1;
  const int32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, rows = a.inputs + a.outputs;
  const int32_t quads = a.shape.stride / 4, pitch = row_pitch(a.shape.stride);
  for (int32_t first = warp; first < rows; first += kWarps * kRows) {
    float4 values[kRows][kPasses];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int32_t r = first + i * kWarps;
      const int32_t slot = r < rows ? s.slots[r] : kNoRow;
      const auto* row = reinterpret_cast<const float4*>(row_of(a, r, slot));
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass) {
        const int32_t q = lane + 32 * pass;
        values[i][pass] = slot >= 0 && q < quads ? __ldcg(row + q) : make_float4(0, 0, 0, 0);
      }
    }
    if (first == warp) meanwhile();
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int32_t r = first + i * kWarps;
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass) {
        const int32_t q = lane + 32 * pass;
        if (r >= rows || q >= quads) continue;
        auto* to = reinterpret_cast<uint32_t*>(s.rows + r * pitch + q / 4 * 16 + q % 4 * 2);
        to[0] = rounded(values[i][pass].x, values[i][pass].y);
        to[4] = rounded(values[i][pass].z, values[i][pass].w);
      }
    }
  }
}

struct ThreadTotals {
  float loss = 0, slope = 0;
  int32_t pairs = 0;
};

// Coefficients of 16 outputs against 8 inputs, of which this lane has four products.
__device__ bool weigh(const SgnsArguments& a, float lr, int32_t i0, int32_t j0, const float (&products)[4],
                      const Shared& s, ThreadTotals& totals) {
  const int32_t lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  float c[4];
  bool finite = true;
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const int32_t i = i0 + g + 8 * (e / 2), j = j0 + 2 * t + e % 2;
    const bool positive = i < a.shape.centres;
    const auto meet = static_cast<float>(__popc(s.cover[j] & ~s.own[i]));
    const float weight = positive ? meet : a.shape.share * meet;
    const float x = products[e], decay = __expf(-fabsf(x)), inverse = __fdividef(1.0f, 1.0f + decay);
    const float sigma = x >= 0 ? inverse : decay * inverse;
    const float slope = (positive ? 1.0f : 0.0f) - sigma;
    finite = finite && isfinite(x);
    totals.loss += weight * (fmaxf(positive ? -x : x, 0.0f) + __logf(1 + decay));
    totals.slope += weight * fabsf(slope);
    totals.pairs += positive ? static_cast<int32_t>(meet) : 0;
    c[e] = lr * weight * slope;
  }
  auto* to = s.coefficients + (i0 + g) * (a.inputs + 8) + j0 + 2 * t;
  *reinterpret_cast<uint32_t*>(to) = rounded(c[0], c[1]);
  *reinterpret_cast<uint32_t*>(to + 8 * (a.inputs + 8)) = rounded(c[2], c[3]);
  float rows[2] = {fabsf(c[0]) + fabsf(c[1]), fabsf(c[2]) + fabsf(c[3])};
  float columns[2] = {fabsf(c[0]) + fabsf(c[2]), fabsf(c[1]) + fabsf(c[3])};
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    for (int step = 1; step < 4; step *= 2) rows[k] += __shfl_xor_sync(~0u, rows[k], step);
    for (int step = 4; step < 32; step *= 2) columns[k] += __shfl_xor_sync(~0u, columns[k], step);
    if (t == 0) atomicAdd(&s.sums[a.inputs + i0 + g + 8 * k], rows[k]);
    if (g == 0) atomicAdd(&s.sums[j0 + 2 * t + k], columns[k]);
  }
  return finite;
}

// All products y.x and their coefficients; false when one was not finite.
__device__ bool meet_all(const SgnsArguments& a, float lr, const Shared& s, ThreadTotals& totals) {
  const int32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, pitch = row_pitch(a.shape.stride);
  const int32_t across = a.inputs / 8, tiles = a.outputs / 16 * across, depth = a.shape.stride / 16;
  bool finite = true;
  for (int32_t tile = warp; tile < tiles; tile += kWarps) {
    const int32_t i0 = tile / across * 16, j0 = tile % across * 8;
    const auto* y = s.rows + (a.inputs + i0 + lane % 16) * pitch + lane / 16 * 8;
    const auto* x = s.rows + (j0 + lane % 8) * pitch + lane / 8 * 8;  // sixteens k and k + 1
    float sum[4] = {0, 0, 0, 0}, other[4] = {0, 0, 0, 0};
    uint32_t ya[4], xb[4];
    int32_t k = 0;
    for (; k + 1 < depth; k += 2) {
      load_matrices(xb, x + 16 * k);
      load_matrices(ya, y + 16 * k);
      multiply_add(sum, ya, xb[0], xb[1]);
      load_matrices(ya, y + 16 * k + 16);
      multiply_add(other, ya, xb[2], xb[3]);
    }
    if (k < depth) {
      load_matrices(xb, x + 16 * k - (lane >= 16 ? 16 : 0));
      load_matrices(ya, y + 16 * k);
      multiply_add(sum, ya, xb[0], xb[1]);
    }
    for (int e = 0; e < 4; ++e) sum[e] += other[e];
    finite = weigh(a, lr, i0, j0, sum, s, totals) && finite;
  }
  return finite;
}

__device__ void add_to_row(const SgnsArguments& a, const Shared& s, int32_t r, int32_t column, float x, float y, float z,
                           float w) {
  const int32_t slot = s.slots[r];
  if (slot < 0) return;
  const float sum = s.sums[r];
  const float factor = s.crowd[r] * (sum > a.step_max ? a.step_max / sum : 1.0f);
  add_to(row_of(a, r, slot) + column, factor * x, factor * y, factor * z, factor * w);
}

// Sums over the other side's rows, 16 rows by 16 values at a time, added to the tables.
__device__ void descend(const SgnsArguments& a, const Shared& s) {
  const int32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const int32_t across = a.shape.stride / 16, input_tiles = a.inputs / 16 * across;
  const int32_t tiles = input_tiles + a.outputs / 16 * across, pitch = row_pitch(a.shape.stride);
  const int32_t coefficient_pitch = a.inputs + 8;
  for (int32_t tile = warp; tile < tiles; tile += kWarps) {
    const bool of_input = tile < input_tiles;
    const int32_t place = of_input ? tile : tile - input_tiles;
    const int32_t r0 = place / across * 16, d0 = place % across * 16;
    const int32_t depth = of_input ? a.outputs : a.inputs;
    const auto* others = s.rows + (of_input ? a.inputs * pitch : 0) + lane % 16 * pitch + d0 + lane / 16 * 8;
    const auto* c = of_input ? s.coefficients + (lane / 16 * 8 + lane % 8) * coefficient_pitch + r0 + lane / 8 % 2 * 8
                             : s.coefficients + (r0 + lane % 16) * coefficient_pitch + lane / 16 * 8;
    float left[4] = {0, 0, 0, 0}, right[4] = {0, 0, 0, 0};
    for (int32_t k = 0; k < depth; k += 16) {
      uint32_t ca[4], rb[4];
      if (of_input)
        load_transposed(ca, c + k * coefficient_pitch);
      else
        load_matrices(ca, c + k);
      load_transposed(rb, others + k * pitch);
      multiply_add(left, ca, rb[0], rb[1]);
      multiply_add(right, ca, rb[2], rb[3]);
    }
    const int32_t r = (of_input ? 0 : a.inputs) + r0 + g, column = d0 + 4 * t;
    add_to_row(a, s, r, column, left[0], left[1], right[0], right[1]);
    add_to_row(a, s, r + 8, column, left[2], left[3], right[2], right[3]);
  }
}

template <int kPasses>
__device__ void train_segment(const SgnsArguments& a, const Segment& segment, const Shared& s, ThreadTotals& totals,
                              int32_t& refused) {
  const Kept kept = keep_words(a, segment, s);
  draw_negatives(a, segment.draw, segment.begin, s);
  __syncthreads();
  for (int32_t first = kept.centre_begin; first < kept.centre_end; first += a.shape.centres) {
    Block block;
    block.first = first;
    block.centres = min(a.shape.centres, kept.centre_end - first);
    block.column = max(first - a.shape.window, 0);
    block.columns = min(first + block.centres + a.shape.window, kept.count) - block.column;
    plan_block(a, block, s);
    __syncthreads();
    load_rows<kPasses>(a, s, [&] {
      find_crowds(a, segment.lr, s);
      draw_negatives(a, segment.draw, segment.begin + (first + a.shape.centres - kept.centre_begin), s);
    });
    __syncthreads();
    const ThreadTotals before = totals;
    const bool finite = meet_all(a, segment.lr, s, totals);
    if (__syncthreads_and(finite)) {
      descend(a, s);
    } else {
      totals = before;
      refused += threadIdx.x == 0 ? 1 : 0;
    }
    __syncthreads();
  }
}

__device__ double warp_sum(double x) {
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  return x;
}

template <int kPasses>
__global__ void __launch_bounds__(kThreads, 1) train_segments(const SgnsArguments a) {
  extern __shared__ __align__(128) char memory[];
  __shared__ int32_t next;
  Shared s;
  lay_out(a.shape, a.inputs, a.outputs, memory, s);
  double loss = 0, slope = 0;
  long long pairs = 0;
  int32_t refused = 0;
  while (true) {
    if (threadIdx.x == 0) next = atomicAdd(a.next_segment, 1);
    __syncthreads();
    const int32_t taken = next;
    __syncthreads();
    if (taken >= a.segments_count) break;
    ThreadTotals totals;
    train_segment<kPasses>(a, a.segments[taken], s, totals, refused);
    loss += totals.loss;
    slope += totals.slope;
    pairs += totals.pairs;
  }
  loss = warp_sum(loss);
  slope = warp_sum(slope);
  for (int step = 16; step > 0; step /= 2) pairs += __shfl_xor_sync(~0u, pairs, step);
  if (threadIdx.x % 32 != 0) return;
  atomicAdd(&a.totals->loss, loss);
  atomicAdd(&a.totals->slope, slope);
  atomicAdd(&a.totals->pairs, static_cast<unsigned long long>(pairs));
  if (threadIdx.x == 0) atomicAdd(&a.totals->refused, static_cast<unsigned long long>(refused));
}

// The kernel whose lanes read a row in as many loads as it has.
template <typename OnKernel>
cudaError_t with_kernel(const SgnsShape& shape, const OnKernel& on_kernel) {
  const int32_t passes = (shape.stride + 127) / 128;
  if (passes <= 1) return on_kernel(train_segments<1>);
  if (passes <= 2) return on_kernel(train_segments<2>);
  if (passes <= 4) return on_kernel(train_segments<4>);
  return on_kernel(train_segments<8>);
}

__global__ void put_rows(const RowUpdate* updates, const float* values, int32_t stride, float* input, float* output) {
  const RowUpdate update = updates[blockIdx.x];
  for (int32_t d = threadIdx.x; d < stride; d += blockDim.x) {
    input[update.row * stride + d] = values[update.at + d];
    output[update.row * stride + d] = values[update.at + stride + d];
  }
}

}  // namespace

int64_t sgns_block_memory(const SgnsShape& shape) {
  Shared s;
  return static_cast<int64_t>(lay_out(shape, shape.inputs(), shape.outputs(), nullptr, s));
}

cudaError_t prepare_sgns_kernel(const SgnsShape& shape) {
  return with_kernel(shape, [&](auto kernel) {
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                static_cast<int>(sgns_block_memory(shape)));
  });
}

cudaError_t launch_sgns_kernel(const SgnsArguments& arguments, int32_t blocks, cudaStream_t stream) {
  return with_kernel(arguments.shape, [&](auto kernel) {
    kernel<<<blocks, kThreads, sgns_block_memory(arguments.shape), stream>>>(arguments);
    return cudaGetLastError();
  });
}

cudaError_t launch_put_rows(const RowUpdate* updates, int32_t count, const float* values, int32_t stride, float* input,
                            float* output, cudaStream_t stream) {
  put_rows<<<count, 128, 0, stream>>>(updates, values, stride, input, output);
  return cudaGetLastError();
}

}  // namespace streamvec::cuda
