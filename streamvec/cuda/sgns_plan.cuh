// Which rows a block of pairs has, before anything is computed: a segment's words that subsampling leaves, negatives,
// weights between rows, and where all of it lies in shared memory. Part of sgns_block.cuh.
#pragma once

#include <cuda_bf16.h>

#include <type_traits>

#include "streamvec/cuda/draws.h"
#include "streamvec/cuda/sgns_kernel.h"
#include "streamvec/kernel/step_share.h"

namespace streamvec::cuda {
namespace {

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;
constexpr int32_t kNoRow = -1;

// How a table's rows are kept: values, and what a lane reads of them at once, four.
struct Fp32Rows {
  using Value = float;
  using Quad = float4;
};
struct Bf16Rows {
  using Value = __nv_bfloat16;
  using Quad = uint2;
};

// Sizes of a block, known when compiled where they are not 0: then loops over tiles unroll, and places are constants.
template <typename RowsOf, bool kOfAdagrad, int kInputs, int kOutputs, int kStride>
struct Sizes {
  using Rows = RowsOf;
  static constexpr bool kAdagrad = kOfAdagrad;
  const SgnsArguments& a;
  __device__ int32_t inputs() const { return kInputs > 0 ? kInputs : a.inputs; }
  __device__ int32_t outputs() const { return kOutputs > 0 ? kOutputs : a.outputs; }
  __device__ int32_t stride() const { return kStride > 0 ? kStride : a.shape.stride; }
  __device__ int32_t rows() const { return inputs() + outputs(); }
  __device__ int32_t pitch() const { return stride() + 8; }  // in 16-byte units odd: eight rows lie in different banks
  __device__ int32_t coefficient_pitch() const { return inputs() + 8; }
};

// Of one block of pairs, made while the one before is in work.
struct Plan {
  int32_t* slots;   // [n + m]
  uint32_t* cover;  // [n] by column: the centres whose window has it, as bits
  uint32_t* own;    // [m] by output: centres that have no weight with it, as bits
  float* factor;    // [n + m]: row_factor()
  // [32] by centre: how many centres have its word, and, times kOutput, how many outputs. Zeroed before it is planned.
  uint32_t* named;
};
constexpr uint32_t kOutput = 1 << 16;

struct Shared {
  __nv_bfloat16* rows;          // [n + m][pitch]: inputs, outputs
  __nv_bfloat16* coefficients;  // [m][n + 8]
  float* sums;                  // of the coefficients' sizes: [m][n / 8], then [m / 16][n]
  float* factors;               // [n + m]: for the steps of a row
  float* squares;               // [n + m], of AdaGrad: of a row's slopes
  uint32_t* words;              // of the segment, subsampled
  float2* word_factors;         // likewise: the factors for their rows of input and output
  uint8_t* reach;               // likewise: of their windows
  int32_t* negatives;           // of all blocks of the segment
  float* negative_factors;
  int32_t* warp_counts;
  Plan plan;         // the first of two
  size_t plan_size;  // bytes from the one to the other

  __device__ Plan plan_at(int32_t turn) const {
    const auto moved = [&](auto* from) { return from + turn * plan_size / sizeof(*from); };
    return {moved(plan.slots), moved(plan.cover), moved(plan.own), moved(plan.factor), moved(plan.named)};
  }
};

__host__ __device__ size_t round16(size_t bytes) {
  return (bytes + 15) / 16 * 16;
}

// Where things lie from `base` on; returns how many bytes they take.
__host__ __device__ size_t lay_out(const SgnsShape& shape, int32_t n, int32_t m, int32_t negatives, char* base,
                                   Shared& s) {
  const int32_t words = shape.segment_words + 2 * kHaloWords;
  size_t at = 0;
  const auto take = [&](auto*& to, size_t count) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(base + at);
    at += round16(count * sizeof(*to));
  };
  take(s.rows, (n + m) * (shape.stride + 8));
  take(s.coefficients, m * (n + 8));
  take(s.sums, m * (n / 8) + m / 16 * n);
  take(s.factors, n + m);
  take(s.squares, shape.kind.adagrad ? n + m : 0);
  take(s.words, words);
  take(s.word_factors, words);
  take(s.reach, words);
  take(s.negatives, negatives);
  take(s.negative_factors, negatives);
  take(s.warp_counts, kWarps);
  const size_t before = at;
  take(s.plan.slots, n + m);
  take(s.plan.cover, n);
  take(s.plan.own, m);
  take(s.plan.factor, n + m);
  take(s.plan.named, 32);
  s.plan_size = at - before;
  return at + s.plan_size;
}

// Rows that many blocks have at once get steps as short as all of them together need. `crowd`: of one, on average.
// AdaGrad's steps, of which `crowd` are taken at once, are together as long as those of their summed slope.
__device__ float crowd_factor(const SgnsArguments& a, float lr, float crowd) {
  if (a.shape.kind.adagrad) return rsqrtf(fmaxf(a.crowd_scale * crowd, 1.0f));
  const float sum = a.crowd_scale * lr * crowd;
  return sum > a.crowd_max ? a.crowd_max / sum : 1.0f;
}

// What the steps of a row are to be multiplied by: less than 1 in a crowd, more where its pace is longer. Rare words,
// whose paces are, are in no crowd, so that one number has room for both.
__device__ float row_factor(const SgnsArguments& a, float lr, float crowd, float pace) {
  return pace * crowd_factor(a, lr, pace * crowd);
}

__device__ float2 paces_of(const SgnsArguments& a, uint32_t slot) {
  return slot < static_cast<uint32_t>(a.crowds_count) ? a.paces[slot] : a.pace_longest;
}

__device__ float2 crowds_of(const SgnsArguments& a, uint32_t slot) {
  return slot < static_cast<uint32_t>(a.crowds_count) ? a.crowds[slot] : make_float2(0, 0);
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
      const float2 crowds = crowds_of(a, slot), paces = paces_of(a, slot);
      s.word_factors[place] = {row_factor(a, segment.lr, crowds.x, paces.x),
                               row_factor(a, segment.lr, crowds.y, paces.y)};
      s.reach[place] = static_cast<uint8_t>(reach_draw(segment.draw, at, a.shape.window));
    }
    __syncthreads();
  }
  return kept;
}

// For each block one from each of K equal strata (vocab/sampling.h).
__device__ void draw_negatives(const SgnsArguments& a, const Segment& segment, const Kept& kept, const Shared& s) {
  const int32_t blocks = (kept.centre_end - kept.centre_begin + a.shape.centres - 1) / a.shape.centres;
  for (int32_t i = threadIdx.x; i < blocks * a.shape.negatives; i += kThreads) {
    const int32_t block = i / a.shape.negatives, k = i % a.shape.negatives;
    const uint64_t draw = negative_draw(segment.draw, segment.begin + block * a.shape.centres, k);
    const uint64_t at = k * a.stratum + __umul64hi(draw, a.stratum);
    int32_t slot = a.guide[at >> a.shift];
    while (a.ends[slot] <= at) ++slot;
    s.negatives[i] = slot;
    s.negative_factors[i] = row_factor(a, segment.lr, crowds_of(a, slot).y, paces_of(a, slot).y);
  }
}

// A block of pairs: columns [column, column + columns) of the kept words, centres [first, first + centres) of them.
struct Block {
  int32_t column, columns, first, centres;
  int32_t negative;  // the first of its negatives
};

__device__ Block block_at(const SgnsArguments& a, const Kept& kept, int32_t first) {
  Block block;
  block.first = first;
  block.centres = min(a.shape.centres, kept.centre_end - first);
  block.column = max(first - a.shape.window, 0);
  block.columns = min(first + block.centres + a.shape.window, kept.count) - block.column;
  block.negative = (first - kept.centre_begin) / a.shape.centres * a.shape.negatives;
  return block;
}

template <typename Size>
__device__ auto* row_of(const Size& size, int32_t r, int32_t slot) {
  auto* table = static_cast<typename Size::Rows::Value*>(r < size.inputs() ? size.a.input : size.a.output);
  return table + static_cast<int64_t>(slot) * size.stride();
}

struct Row {
  int32_t slot;
  float factor;
};

template <typename Size>
__device__ Row block_row(const Size& size, const Block& block, const Shared& s, int32_t r) {
  const auto word_row = [&](int32_t word, bool of_input) {
    const float2 factors = s.word_factors[word];
    return Row{static_cast<int32_t>(s.words[word] & kSlotMask), of_input ? factors.x : factors.y};
  };
  const int32_t i = r - size.inputs(), k = i - size.a.shape.centres;
  if (i < 0) return r < block.columns ? word_row(block.column + r, true) : Row{kNoRow, 0};
  if (i < block.centres) return word_row(block.first + i, false);
  if (k < 0 || k >= size.a.shape.negatives) return Row{kNoRow, 0};
  return Row{s.negatives[block.negative + k], s.negative_factors[block.negative + k]};
}

// Which rows the block has, and who has weight with whom. Warp w plans rows w, w + 16, ..., those which it will load;
// returns the slot of the row that is this lane's, w + 16 lane.
template <typename Size>
__device__ int32_t plan_rows(const Size& size, const Block& block, const Shared& s, const Plan& plan) {
  const int32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, own_row = warp + kWarps * lane;
  int32_t slot = kNoRow;
  if (own_row < size.rows()) {
    const Row row = block_row(size, block, s, own_row);
    slot = row.slot;
    plan.slots[own_row] = slot;
    plan.factor[own_row] = row.factor;
  }
  const bool has_centre = lane < block.centres;
  const uint32_t centre = has_centre ? s.words[block.first + lane] : 0;
  const int32_t reach = has_centre ? s.reach[block.first + lane] : -1;
  uint32_t named = 0;
  for (int32_t i = 0; i < size.rows() / kWarps; ++i) {
    const int32_t r = warp + kWarps * i, output = r - size.inputs();
    if (output < 0) {
      const int32_t distance = abs(block.column + r - (block.first + lane));
      const bool covered = r < block.columns && distance > 0 && distance <= reach &&
                           (centre ^ s.words[block.column + r]) >> kSlotBits == 0;
      const uint32_t cover = __ballot_sync(~0u, covered);
      if (lane == 0) plan.cover[r] = cover;
    } else {
      const int32_t other = __shfl_sync(~0u, slot, i);
      const bool same = has_centre && static_cast<int32_t>(centre & kSlotMask) == other;
      if (same) named += output < block.centres ? kOutput + 1 : kOutput;
      uint32_t own = __ballot_sync(~0u, same);
      if (output < size.a.shape.centres) own = output < block.centres ? ~(1u << output) : ~0u;
      if (output >= size.a.shape.centres + size.a.shape.negatives) own = ~0u;
      if (lane == 0) plan.own[output] = own;
    }
  }
  if (named > 0) atomicAdd(plan.named + lane, named);
  return slot;
}

// A hint that the lane's row is needed soon.
template <typename Size>
__device__ void expect_row(const Size& size, int32_t slot) {
  if (slot < 0) return;
  const auto* row = row_of(size, static_cast<int32_t>(threadIdx.x / 32 + kWarps * (threadIdx.x % 32)), slot);
  constexpr auto kLine = static_cast<int32_t>(128 / sizeof(*row));
  for (int32_t d = 0; d < size.stride(); d += kLine) asm volatile("prefetch.global.L2 [%0];" ::"l"(row + d));
}

}  // namespace
}  // namespace streamvec::cuda
