// The kernel of skip-gram, for tables of each kind (sgns_kernel.h); compiled by sgns_*.cu.
//
// One block of threads takes one segment of text after another; the segment's blocks of pairs follow each other as on a
// CPU's thread. Shared memory holds the rows of the pair block in bf16 and its coefficients.
//
// n inputs (columns), m outputs (centres, then negatives), D values a row, all padded with zeros to sixteens. Of every
// 16 columns of D, those that a lane gets as pairs from two neighbouring products (mma.cuh) are put where they are four
// neighbours of a row: column 4 t + r lies at 2 t + r, or at 8 + 2 t + r - 2 for r > 1. Products do not mind.
#pragma once

#include <cuda_bf16.h>

#include "streamvec/cuda/mma.cuh"
#include "streamvec/cuda/sgns_kernel.h"
#include "streamvec/cuda/sgns_plan.cuh"

namespace streamvec::cuda {
namespace {

__device__ uint32_t rounded(float x, float y) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

__device__ void put_quad(uint32_t* to, float4 values) {
  to[0] = rounded(values.x, values.y);
  to[4] = rounded(values.z, values.w);
}
__device__ void put_quad(uint32_t* to, uint2 values) {
  to[0] = values.x;
  to[4] = values.y;
}

// Rows from the card's memory, rounded to bf16. They come past the first cache, which does not know of others' steps.
// `meanwhile` is done while they are on their way. `own_slot`: as plan_rows() returned it.
template <int kPasses, typename Size, typename Meanwhile>
__device__ void load_rows(const Size& size, const Shared& s, int32_t own_slot, const Meanwhile& meanwhile) {
  constexpr int kRows = 12 / kPasses > 0 ? 12 / kPasses : 1;
  const int32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, quads = size.stride() / 4;
  for (int32_t first = 0; first < size.rows() / kWarps; first += kRows) {
    typename Size::Rows::Quad values[kRows][kPasses];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int32_t r = warp + (first + i) * kWarps;
      const int32_t slot = __shfl_sync(~0u, own_slot, (first + i) % 32);
      const auto* row = reinterpret_cast<const typename Size::Rows::Quad*>(row_of(size, r, slot)) + lane;
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass)
        values[i][pass] = slot >= 0 && r < size.rows() && lane + 32 * pass < quads ? __ldcg(row + 32 * pass)
                                                                                   : typename Size::Rows::Quad{};
    }
    if (first == 0) meanwhile();
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int32_t r = warp + (first + i) * kWarps;
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass) {
        const int32_t q = lane + 32 * pass;
        if (r >= size.rows() || q >= quads) continue;
        auto* to = reinterpret_cast<uint32_t*>(s.rows + r * size.pitch() + q / 4 * 16 + q % 4 * 2);
        put_quad(to, values[i][pass]);
      }
    }
  }
}

struct ThreadTotals {
  float loss = 0, slope = 0;
  int32_t pairs = 0;
};

// Coefficients of 16 outputs against 8 inputs, of which this lane has four products.
template <typename Size>
__device__ bool weigh(const Size& size, float lr, int32_t i0, int32_t j0, const float (&products)[4], const Shared& s,
                      const Plan& plan, ThreadTotals& totals) {
  const int32_t lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  float c[4];
  bool finite = true;
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const int32_t i = i0 + g + 8 * (e / 2), j = j0 + 2 * t + e % 2;
    const bool positive = i < size.a.shape.centres;
    const auto meet = static_cast<float>(__popc(plan.cover[j] & ~plan.own[i]));
    const float weight = positive ? meet : size.a.shape.share * meet;
    const float x = products[e], decay = __expf(-fabsf(x)), inverse = __fdividef(1.0f, 1.0f + decay);
    const float sigma = x >= 0 ? inverse : decay * inverse;
    const float slope = (positive ? 1.0f : 0.0f) - sigma;
    finite = finite && isfinite(x);
    totals.loss += weight * (fmaxf(positive ? -x : x, 0.0f) + __logf(1 + decay));
    totals.slope += weight * fabsf(slope);
    totals.pairs += positive ? static_cast<int32_t>(meet) : 0;
    c[e] = lr * weight * slope;
  }
  auto* to = s.coefficients + (i0 + g) * size.coefficient_pitch() + j0 + 2 * t;
  *reinterpret_cast<uint32_t*>(to) = rounded(c[0], c[1]);
  *reinterpret_cast<uint32_t*>(to + 8 * size.coefficient_pitch()) = rounded(c[2], c[3]);
  float rows[2] = {fabsf(c[0]) + fabsf(c[1]), fabsf(c[2]) + fabsf(c[3])};
  float columns[2] = {fabsf(c[0]) + fabsf(c[2]), fabsf(c[1]) + fabsf(c[3])};
  const int32_t across = size.inputs() / 8;
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    for (int step = 1; step < 4; step *= 2) rows[k] += __shfl_xor_sync(~0u, rows[k], step);
    for (int step = 4; step < 32; step *= 2) columns[k] += __shfl_xor_sync(~0u, columns[k], step);
    if (t == 0) s.sums[(i0 + g + 8 * k) * across + j0 / 8] = rows[k];
    if (g == 0) s.sums[size.outputs() * across + i0 / 16 * size.inputs() + j0 + 2 * t + k] = columns[k];
  }
  return finite;
}

// All products y.x and their coefficients; false when one was not finite.
template <typename Size>
__device__ bool meet_all(const Size& size, float lr, const Shared& s, const Plan& plan, ThreadTotals& totals) {
  const int32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, pitch = size.pitch();
  const int32_t across = size.inputs() / 8, tiles = size.outputs() / 16 * across, depth = size.stride() / 16;
  bool finite = true;
  for (int32_t tile = warp; tile < tiles; tile += kWarps) {
    const int32_t i0 = tile / across * 16, j0 = tile % across * 8;
    const auto* y = s.rows + (size.inputs() + i0 + lane % 16) * pitch + lane / 16 * 8;
    const auto* x = s.rows + (j0 + lane % 8) * pitch + lane / 8 * 8;  // sixteens k and k + 1
    float sum[4] = {0, 0, 0, 0}, other[4] = {0, 0, 0, 0};
    uint32_t ya[4], xb[4];
    int32_t k = 0;
#pragma unroll 8
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
    finite = weigh(size, lr, i0, j0, sum, s, plan, totals) && finite;
  }
  return finite;
}

// kernel/step_share.h's, of a block that was planned.
__device__ float step_share(const Plan& plan) {
  const uint32_t named = plan.named[threadIdx.x % 32];
  constexpr uint32_t kOften = kNamedOften;
  const uint32_t most = named % kOutput > kOften ? named / kOutput : kOften;
  return static_cast<float>(kOften) / static_cast<float>(__reduce_max_sync(~0u, most));
}

// How long the steps of each row are to be: by the crowd or by its pace, and cut where they are too long.
template <typename Size>
__device__ void find_cuts(const Size& size, const Shared& s, const Plan& plan) {
  const float step_max = size.a.step_max * step_share(plan);
  for (int32_t r = threadIdx.x; r < size.rows(); r += kThreads) {
    const int32_t across = size.inputs() / 8, output = r - size.inputs();
    float sum = 0;
    if (output >= 0)
      for (int32_t i = 0; i < across; ++i) sum += s.sums[output * across + i];
    else
      for (int32_t i = 0; i < size.outputs() / 16; ++i) sum += s.sums[size.outputs() * across + i * size.inputs() + r];
    const float factor = plan.factor[r], most = step_max / fmaxf(sum, 1e-30f);
    s.factors[r] = factor < 1 ? factor * fminf(1, most) : fminf(factor, most);
  }
}

// AdaGrad (optim/optimizer.h): how long the steps of each row are, after its mean square has been added to its sum.
template <typename Size>
__device__ void find_rates(const Size& size, float lr, const Shared& s, const Plan& plan) {
  for (int32_t r = threadIdx.x; r < size.rows(); r += kThreads) {
    const int32_t slot = plan.slots[r];
    const float mean = s.squares[r] * size.a.per_value;
    const float before = slot >= 0 && mean > 0 ? atomicAdd(size.a.sums[r < size.inputs() ? 0 : 1] + slot, mean) : 0;
    s.factors[r] = mean > 0 ? plan.factor[r] * lr * rsqrtf(before + mean + 1e-10f) : 0;
  }
}

// Draws of one thread, for rounding.
struct Noise {
  uint32_t state;
  __device__ uint32_t next() {
    uint32_t x = state += 0x9e3779b9u;
    x = (x ^ (x >> 16)) * 0x85ebca6bu;
    x = (x ^ (x >> 13)) * 0xc2b2ae35u;
    return x ^ (x >> 16);
  }
};

// The steps of two values, such that both end up where bf16 has a number, above or below as chance has it: the mean is
// the step. Others' steps meanwhile are whole units of the last place, too, so that sums are exact but for carries.
__device__ uint32_t rounded_steps(uint32_t values, float x, float y, Noise& noise) {
  const float a = __uint_as_float(values << 16), b = __uint_as_float(values & 0xffff0000u);
  const uint32_t draw = noise.next();
  const float to_a = __uint_as_float((__float_as_uint(a + x) + (draw & 0xffffu)) & 0xffff0000u);
  const float to_b = __uint_as_float((__float_as_uint(b + y) + (draw >> 16)) & 0xffff0000u);
  return rounded(to_a - a, to_b - b);
}

// What is done with four neighbours of a row of slopes: added to the table, times the row's factor.
template <typename Size>
struct Adding {
  const Size& size;
  const Shared& s;
  const Plan& plan;
  Noise& noise;
  __device__ void operator()(int32_t r, int32_t column, float x, float y, float z, float w) const {
    const int32_t slot = plan.slots[r];
    const float factor = s.factors[r];
    if (slot < 0) return;
    auto* at = row_of(size, r, slot) + column;
    if constexpr (sizeof(*at) == sizeof(float)) {
      add_to(at, factor * x, factor * y, factor * z, factor * w);
    } else {
      const auto* old =
          reinterpret_cast<const uint32_t*>(s.rows + r * size.pitch() + column / 16 * 16 + column % 16 / 2);
      const uint32_t xy = rounded_steps(old[0], factor * x, factor * y, noise);
      add_to(at, xy, rounded_steps(old[4], factor * z, factor * w, noise));
    }
  }
};

// Or squared and summed up.
struct Measuring {
  const Shared& s;
  __device__ void operator()(int32_t r, int32_t, float x, float y, float z, float w) const {
    float sum = x * x + y * y + z * z + w * w;
    for (int step = 1; step < 4; step *= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x % 4 == 0) atomicAdd(s.squares + r, sum);
  }
};

// Sums over the other side's rows, 16 rows by 16 values. kOfInput: the rows are inputs.
template <bool kOfInput, typename Size, typename Use>
__device__ void descend_tile(const Size& size, const Shared& s, int32_t tile, const Use& use) {
  const int32_t lane = threadIdx.x % 32, across = size.stride() / 16, pitch = size.pitch();
  const int32_t r0 = tile / across * 16, d0 = tile % across * 16;
  const int32_t depth = kOfInput ? size.outputs() : size.inputs();
  const auto* others = s.rows + (kOfInput ? size.inputs() * pitch : 0) + lane % 16 * pitch + d0 + lane / 16 * 8;
  const auto* c =
      s.coefficients + (kOfInput ? (lane / 16 * 8 + lane % 8) * size.coefficient_pitch() + r0 + lane / 8 % 2 * 8
                                 : (r0 + lane % 16) * size.coefficient_pitch() + lane / 16 * 8);
  float left[4] = {0, 0, 0, 0}, right[4] = {0, 0, 0, 0};
#pragma unroll 4
  for (int32_t k = 0; k < depth; k += 16) {
    uint32_t ca[4], rb[4];
    if (kOfInput)
      load_transposed(ca, c + k * size.coefficient_pitch());
    else
      load_matrices(ca, c + k);
    load_transposed(rb, others + k * pitch);
    multiply_add(left, ca, rb[0], rb[1]);
    multiply_add(right, ca, rb[2], rb[3]);
  }
  const int32_t r = (kOfInput ? 0 : size.inputs()) + r0 + lane / 4, column = d0 + lane % 4 * 4;
  use(r, column, left[0], left[1], right[0], right[1]);
  use(r + 8, column, left[2], left[3], right[2], right[3]);
}

template <typename Size, typename Use>
__device__ void descend(const Size& size, const Shared& s, const Use& use) {
  const int32_t across = size.stride() / 16, input_tiles = size.inputs() / 16 * across;
  const int32_t tiles = input_tiles + size.outputs() / 16 * across;
  int32_t tile = threadIdx.x / 32;
  for (; tile < input_tiles; tile += kWarps) descend_tile<true>(size, s, tile, use);
  for (; tile < tiles; tile += kWarps) descend_tile<false>(size, s, tile - input_tiles, use);
}

template <int kPasses, typename Size>
__device__ void train_segment(const Size& size, const Segment& segment, const Shared& s, ThreadTotals& totals,
                              int32_t& refused) {
  const SgnsArguments& a = size.a;
  Noise noise{static_cast<uint32_t>(draw_at(segment.draw, segment.begin)) + threadIdx.x * 0x632be5abu};
  const Kept kept = keep_words(a, segment, s);
  draw_negatives(a, segment, kept, s);
  if (threadIdx.x < 64) s.plan_at(threadIdx.x / 32).named[threadIdx.x % 32] = 0;
  __syncthreads();
  int32_t turn = 0, own_slot = kNoRow;
  if (kept.centre_begin < kept.centre_end) own_slot = plan_rows(size, block_at(a, kept, kept.centre_begin), s, s.plan);
  for (int32_t first = kept.centre_begin; first < kept.centre_end; first += a.shape.centres) {
    const Plan plan = s.plan_at(turn), next_plan = s.plan_at(1 - turn);
    const int32_t next = first + a.shape.centres;
    int32_t next_slot = kNoRow;
    load_rows<kPasses>(size, s, own_slot, [&] {
      if (next >= kept.centre_end) return;
      next_slot = plan_rows(size, block_at(a, kept, next), s, next_plan);
      expect_row(size, next_slot);
    });
    if constexpr (Size::kAdagrad)
      for (int32_t r = threadIdx.x; r < size.rows(); r += kThreads) s.squares[r] = 0;
    __syncthreads();
    const ThreadTotals before = totals;
    const bool finite = meet_all(size, Size::kAdagrad ? 1.0f : segment.lr, s, plan, totals);
    const bool all_finite = __syncthreads_and(finite);
    if (all_finite) {
      if constexpr (Size::kAdagrad) {
        descend(size, s, Measuring{s});
        __syncthreads();
        find_rates(size, segment.lr, s, plan);
      } else {
        find_cuts(size, s, plan);
      }
      __syncthreads();
      descend(size, s, Adding<Size>{size, s, plan, noise});
    } else {
      totals = before;
      refused += threadIdx.x == 0 ? 1 : 0;
    }
    if (threadIdx.x < 32) plan.named[threadIdx.x] = 0;  // for the block after the next
    __syncthreads();
    own_slot = next_slot;
    turn = 1 - turn;
  }
}

__device__ double warp_sum(double x) {
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  return x;
}

// What a chunk was like, for who asked.
__device__ void tell(const ThreadTotals& totals, ToldTotals& told) {
  const double loss = warp_sum(totals.loss), slope = warp_sum(totals.slope);
  const int32_t pairs = __reduce_add_sync(~0u, totals.pairs);
  if (threadIdx.x % 32 != 0) return;
  atomicAdd(&told.loss, loss);
  atomicAdd(&told.slope, slope);
  atomicAdd(&told.pairs, static_cast<unsigned long long>(pairs));
}

template <typename Rows, bool kAdagrad, int kPasses, int kInputs = 0, int kOutputs = 0, int kStride = 0>
__global__ void __launch_bounds__(kThreads, 1) train_segments(const __grid_constant__ SgnsArguments a) {
  extern __shared__ __align__(128) char memory[];
  __shared__ int32_t next;
  Shared s;
  lay_out(a.shape, kInputs > 0 ? kInputs : a.inputs, kOutputs > 0 ? kOutputs : a.outputs, a.segment_negatives, memory,
          s);
  double loss = 0, slope = 0, fresh_loss = 0;
  long long pairs = 0, fresh_pairs = 0;
  int32_t refused = 0;
  const int32_t depth = (a.segments_count + a.lanes - 1) / a.lanes;
  while (true) {
    if (threadIdx.x == 0) next = atomicAdd(a.next_segment, 1);
    __syncthreads();
    const int32_t turn = next, taken = turn % a.lanes * depth + turn / a.lanes;
    __syncthreads();
    if (turn >= depth * a.lanes) break;
    if (taken >= a.segments_count) continue;
    ThreadTotals totals;
    train_segment<kPasses>(Sizes<Rows, kAdagrad, kInputs, kOutputs, kStride>{a}, a.segments[taken], s, totals, refused);
    loss += totals.loss;
    slope += totals.slope;
    pairs += totals.pairs;
    if (a.segments[taken].told >= 0) tell(totals, a.told[a.segments[taken].told]);
    if (a.segments[taken].fresh != 0) {
      fresh_loss += totals.loss;
      fresh_pairs += totals.pairs;
    }
  }
  loss = warp_sum(loss);
  slope = warp_sum(slope);
  fresh_loss = warp_sum(fresh_loss);
  for (int step = 16; step > 0; step /= 2) {
    pairs += __shfl_xor_sync(~0u, pairs, step);
    fresh_pairs += __shfl_xor_sync(~0u, fresh_pairs, step);
  }
  if (threadIdx.x % 32 != 0) return;
  atomicAdd(&a.totals->loss, loss);
  atomicAdd(&a.totals->slope, slope);
  atomicAdd(&a.totals->pairs, static_cast<unsigned long long>(pairs));
  atomicAdd(&a.totals->fresh_loss, fresh_loss);
  atomicAdd(&a.totals->fresh_pairs, static_cast<unsigned long long>(fresh_pairs));
  if (threadIdx.x == 0) atomicAdd(&a.totals->refused, static_cast<unsigned long long>(refused));
}

// The kernel whose lanes read a row in as many loads as it has, or a few more; the default block has one of its own.
template <typename Rows, bool kAdagrad>
SgnsKernel kernel_for(const SgnsShape& shape) {
  if (!kAdagrad && shape.inputs() == 32 && shape.outputs() == 64 && shape.stride == 208)
    return train_segments<Rows, kAdagrad, 2, 32, 64, 208>;
  return shape.stride <= 256 ? train_segments<Rows, kAdagrad, 2> : train_segments<Rows, kAdagrad, 8>;
}

}  // namespace
}  // namespace streamvec::cuda
