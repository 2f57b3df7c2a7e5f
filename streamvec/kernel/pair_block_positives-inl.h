// Positives pair by pair, for inclusion once per Highway target (see pair_block_simd.cc). A row of 13 vectors stays in
// registers while its partners pass: one multiply-add for each vector loaded, which is what a core can do, and none for
// pairs without weight.
#if defined(STREAMVEC_KERNEL_PAIR_BLOCK_POSITIVES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STREAMVEC_KERNEL_PAIR_BLOCK_POSITIVES_INL_H_
#undef STREAMVEC_KERNEL_PAIR_BLOCK_POSITIVES_INL_H_
#else
#define STREAMVEC_KERNEL_PAIR_BLOCK_POSITIVES_INL_H_
#endif

#include <hwy/highway.h>

#include <utility>

#include "streamvec/kernel/pair_list.h"
#include "streamvec/kernel/transpose16.h"

HWY_BEFORE_NAMESPACE();
namespace streamvec::HWY_NAMESPACE {

#if HWY_TARGET <= HWY_AVX3           // only there are registers enough
constexpr int32_t kRowVectors = 13;  // of a row that are in registers at a time: up to 208 values in one go

// The pairs with weight, by output. An output without any has one of weight 0, so that every row is looked at.
HWY_INLINE void list_pairs(const PairBlock& block, PairList& list) {
  list.reserve(block);
  int32_t* inputs = list.inputs.data();
  float* weights = list.weights.data();
  const __m512i in_turn = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  int32_t size = 0;
  for (int32_t i = 0; i < block.positives; ++i) {
    list.begins[i] = size;
    for (int32_t j = block.band_begin[i]; j < block.band_end[i]; j += 16) {
      const int32_t left = block.band_end[i] - j;
      const auto there = static_cast<__mmask16>(left >= 16 ? 0xffff : (1u << left) - 1);
      const __m512 weight = _mm512_maskz_loadu_ps(there, block.weight[i] + j);
      const __mmask16 some = _mm512_cmp_ps_mask(weight, _mm512_setzero_ps(), _CMP_NEQ_UQ);
      _mm512_storeu_ps(weights + size, _mm512_maskz_compress_ps(some, weight));
      _mm512_storeu_si512(inputs + size,
                          _mm512_maskz_compress_epi32(some, _mm512_add_epi32(in_turn, _mm512_set1_epi32(j))));
      // Not by the mask itself: g++ 12 may keep it in 16 bits of memory and count 32.
      size += __builtin_popcount(_cvtmask16_u32(some));
    }
    if (size > list.begins[i]) continue;
    inputs[size] = visited_inputs(block, i).begin;
    weights[size++] = 0;
  }
  list.begins[block.positives] = list.size = size;
  list.settle(block);
}

// Products of one piece of all rows, kVectors vectors from `offset` on; kept as 16 partial sums each.
template <int32_t kVectors>
HWY_NOINLINE void multiply_pairs(const PairBlock& block, int32_t offset, PairList& list) {
  const int32_t* inputs = list.inputs.data();
  for (int32_t i = 0; i < block.positives; ++i) {
    __m512 y[kVectors];
    float* old = list.old.data() + i * list.stride + offset;
    for (int32_t v = 0; v < kVectors; ++v) {
      y[v] = _mm512_load_ps(block.y[i] + offset + 16 * v);
      _mm512_store_ps(old + 16 * v, y[v]);
    }
    const int32_t end = list.begins[i + 1];
    for (int32_t p = list.begins[i]; p < end; ++p) {
      const float* x = block.x[inputs[p]] + offset;
      float* partial = list.partial.data() + 16 * static_cast<size_t>(p);
      __m512 even = offset > 0 ? _mm512_load_ps(partial) : _mm512_setzero_ps(), odd = _mm512_setzero_ps();
      for (int32_t v = 0; v < kVectors; ++v) {
        __m512& sum = v % 2 == 0 ? even : odd;
        sum = _mm512_fmadd_ps(y[v], _mm512_load_ps(x + 16 * v), sum);
      }
      _mm512_store_ps(partial, _mm512_add_ps(even, odd));
    }
  }
}

// How long a step is whose coefficients' |c| come to `sum` (pair_block.h: a_j, b_i).
HWY_INLINE __m512 cut_of(__m512 sum, __m512 pace, __m512 step_max) {
  return _mm512_min_ps(pace, _mm512_div_ps(step_max, _mm512_max_ps(sum, _mm512_set1_ps(1e-30f))));
}

HWY_INLINE __m512 pace_at(const float* paces, int32_t row) {
  return _mm512_set1_ps(paces != nullptr ? paces[row] : 1.0f);
}

HWY_INLINE __m512 longest_at(const float* longest, int32_t row, __m512 step_max) {
  return longest != nullptr ? _mm512_set1_ps(longest[row]) : step_max;
}

// The |c| of negatives added up by input, and by output turned into cuts. Returns the sum of all.
HWY_INLINE float cut_negatives(const PairBlock& block, int32_t columns, const float* c, PairList& list,
                               float* output_cuts, float* input_sums) {
  const __m512 step_max = _mm512_set1_ps(block.step_max > 0 ? block.step_max : 3e38f);
  const int32_t count = block.outputs - block.positives;
  const auto padded = static_cast<size_t>(round_up(count, 16));
  float* by_output = list.partial.reserve(16 * padded);  // products are done with it
  std::fill(by_output, by_output + 16 * padded, 0.0f);
  c += static_cast<size_t>(block.positives) * columns;
  __m512 total = _mm512_setzero_ps();
  for (int32_t j = 0; j < columns; j += 16) {
    __m512 by_input = _mm512_setzero_ps();
    for (int32_t i = 0; i < count; ++i) {
      const __m512 size = _mm512_abs_ps(_mm512_load_ps(c + static_cast<size_t>(i) * columns + j));
      by_input = _mm512_add_ps(by_input, size);
      _mm512_store_ps(by_output + 16 * i, _mm512_add_ps(_mm512_load_ps(by_output + 16 * i), size));
    }
    _mm512_storeu_ps(input_sums + j, by_input);
    total = _mm512_add_ps(total, by_input);
  }
  for (int32_t i = 0; i < count; i += 16) {
    const auto there = static_cast<__mmask16>(count - i >= 16 ? 0xffff : (1u << (count - i)) - 1);
    const __m512 pace = block.output_pace != nullptr
                            ? _mm512_maskz_loadu_ps(there, block.output_pace + block.positives + i)
                            : _mm512_set1_ps(1);
    const __m512 longest =
        block.output_max != nullptr ? _mm512_maskz_loadu_ps(there, block.output_max + block.positives + i) : step_max;
    _mm512_mask_storeu_ps(output_cuts + block.positives + i, there,
                          cut_of(sums_of_16(by_output + 16 * i), pace, longest));
  }
  return _mm512_reduce_add_ps(total);
}

// dy of one piece of all positives, cut and added to them. Returns the sum of all |c|.
template <int32_t kVectors>
HWY_NOINLINE float add_pair_outputs(const PairBlock& block, int32_t offset, const PairList& list) {
  const __m512 step_max = _mm512_set1_ps(block.step_max > 0 ? block.step_max : 3e38f);
  const int32_t* inputs = list.inputs.data();
  const float* steps = list.steps.data();
  __m512 total = _mm512_setzero_ps();
  for (int32_t i = 0; i < block.positives; ++i) {
    __m512 sum[kVectors], size = _mm512_setzero_ps();
    for (__m512& v : sum) v = _mm512_setzero_ps();
    const int32_t end = list.begins[i + 1];
    for (int32_t p = list.begins[i]; p < end; ++p) {
      const float* x = block.x[inputs[p]] + offset;
      const __m512 factor = _mm512_set1_ps(steps[p]);
      size = _mm512_add_ps(size, _mm512_abs_ps(factor));
      for (int32_t v = 0; v < kVectors; ++v) sum[v] = _mm512_fmadd_ps(factor, _mm512_load_ps(x + 16 * v), sum[v]);
    }
    total = _mm512_add_ps(total, size);
    const __m512 cut = cut_of(size, pace_at(block.output_pace, i), longest_at(block.output_max, i, step_max));
    float* to = block.dy[i] + offset;
    for (int32_t v = 0; v < kVectors; ++v)
      _mm512_store_ps(to + 16 * v, _mm512_fmadd_ps(sum[v], cut, _mm512_load_ps(to + 16 * v)));
  }
  return _mm512_cvtss_f32(total);
}

// dx of one piece of all rows: to what the negatives came to (`begun`, and their |c|) the positives' part is added, and
// all of it, cut, to the row.
template <int32_t kVectors>
HWY_NOINLINE void add_pair_inputs(const PairBlock& block, int32_t offset, const float* const* begun, const float* sizes,
                                  const PairList& list) {
  const __m512 step_max = _mm512_set1_ps(block.step_max > 0 ? block.step_max : 3e38f);
  const float* steps = list.steps.data();
  for (int32_t j = 0; j < block.inputs; ++j) {
    __m512 sum[kVectors], size = _mm512_set1_ps(sizes[j]);
    for (int32_t v = 0; v < kVectors; ++v) sum[v] = _mm512_load_ps(begun[j] + offset + 16 * v);
    const Range range = list.turned_range(j);
    for (int32_t t = range.begin; t < range.end; ++t) {
      const auto [output, pair] = list.turned[t];
      const float* y = list.old.data() + output * list.stride + offset;
      const __m512 factor = _mm512_set1_ps(steps[pair]);
      size = _mm512_add_ps(size, _mm512_abs_ps(factor));
      for (int32_t v = 0; v < kVectors; ++v) sum[v] = _mm512_fmadd_ps(factor, _mm512_load_ps(y + 16 * v), sum[v]);
    }
    const __m512 cut = cut_of(size, pace_at(block.input_pace, j), longest_at(block.input_max, j, step_max));
    float* to = block.dx[j] + offset;
    for (int32_t v = 0; v < kVectors; ++v)
      _mm512_store_ps(to + 16 * v, _mm512_fmadd_ps(sum[v], cut, _mm512_load_ps(to + 16 * v)));
  }
}

// Calls f(offset, std::integral_constant<vectors>) for pieces of nearly equal size, at most kRowVectors vectors each.
template <int32_t kVectors = kRowVectors, typename F>
HWY_INLINE void with_vectors(int32_t vectors, int32_t offset, F f) {
  if constexpr (kVectors > 0) {
    if (vectors == kVectors)
      f(offset, std::integral_constant<int32_t, kVectors>());
    else
      with_vectors<kVectors - 1>(vectors, offset, f);
  }
}
template <typename F>
HWY_INLINE void for_pieces(int32_t dim, F f) {
  int32_t left = (dim + 15) / 16;
  for (int32_t pieces = (left + kRowVectors - 1) / kRowVectors, offset = 0; pieces > 0; --pieces) {
    const int32_t vectors = (left + pieces - 1) / pieces;
    with_vectors(vectors, offset, f);
    offset += 16 * vectors;
    left -= vectors;
  }
}
#endif

}  // namespace streamvec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
