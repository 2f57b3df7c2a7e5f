// From a block's products to its coefficients in bf16, for the kernels whose operands are that (AVX-512, AMX).
#pragma once

#include <immintrin.h>

#include <algorithm>

#include "streamvec/kernel/bf16_gemm.h"
#include "streamvec/kernel/row_prefetch.h"
#include "streamvec/kernel/scratch.h"
#include "streamvec/kernel/transpose16.h"

namespace streamvec {

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")

inline __m512i to_bf16(__m512 low, __m512 high) {
  return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

// Which 16-bit values of a register stand in turn: (0, 16, 1, 17, ...).
alignas(64) inline constexpr uint16_t kHalvesInTurn[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                           21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                           11, 27, 12, 28, 13, 29, 14, 30, 15, 31};

// Words (first[k], second[k]) for 16 columns k.
inline __m512i paired_bf16(__m512 first, __m512 second) {
  return _mm512_permutexvar_epi16(_mm512_load_si512(kHalvesInTurn), to_bf16(first, second));
}

// log(1 + e) for e in [0, 1], as in logistic-inl.h.
inline __m512 log_of_one_plus(__m512 e) {
  __m512 q = _mm512_set1_ps(0.01420283f);
  q = _mm512_fmadd_ps(q, e, _mm512_set1_ps(-0.06658805f));
  q = _mm512_fmadd_ps(q, e, _mm512_set1_ps(0.14943458f));
  q = _mm512_fmadd_ps(q, e, _mm512_set1_ps(-0.23514864f));
  q = _mm512_fmadd_ps(q, e, _mm512_set1_ps(0.33112052f));
  q = _mm512_fmadd_ps(q, e, _mm512_set1_ps(-0.49987192f));
  q = _mm512_fmadd_ps(q, e, _mm512_set1_ps(0.99999876f));
  return _mm512_mul_ps(q, e);
}

// The logarithm of values that are at least 1.
inline __m512 log_of(__m512 value) {
  const __m512 part = _mm512_sub_ps(_mm512_getmant_ps(value, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src), _mm512_set1_ps(1));
  return _mm512_fmadd_ps(_mm512_getexp_ps(value), _mm512_set1_ps(0.69314718f), log_of_one_plus(part));
}

struct Logistic {
  __m512 sigma;
  __m512 e;         // exp(-|g|)
  __m512 one_plus;  // 1 + e: softplus(z) is its logarithm and max(z, 0), whichever sign z = +-g has
};

// As in logistic-inl.h, with the same polynomials.
inline Logistic logistic(__m512 g) {
  const __m512 one = _mm512_set1_ps(1);
  const __m512 a = _mm512_min_ps(_mm512_abs_ps(g), _mm512_set1_ps(87));
  const __m512 t = _mm512_mul_ps(a, _mm512_set1_ps(-1.44269504f));
  const __m512 whole = _mm512_roundscale_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 f = _mm512_sub_ps(t, whole);
  __m512 p = _mm512_set1_ps(0.00134004f);
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.00967604f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.05550327f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.24022107f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.69314721f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.00000008f));
  const __m512 e = _mm512_scalef_ps(p, whole);
  // 1 / (1 + e) from an estimate of 14 bits and one step of Newton: division takes four times as long.
  const __m512 one_plus = _mm512_add_ps(one, e);
  const __m512 estimate = _mm512_rcp14_ps(one_plus);
  const __m512 high = _mm512_mul_ps(estimate, _mm512_fnmadd_ps(one_plus, estimate, _mm512_set1_ps(2)));
  const __mmask16 negative = _mm512_cmp_ps_mask(g, _mm512_setzero_ps(), _CMP_LT_OQ);
  return {_mm512_mask_mul_ps(high, negative, e, high), e, one_plus};
}

// What a block's products come to beside its coefficients.
struct Totals {
  __m512 loss;
  __m512 poison;  // 0 while every product is finite, NaN for ever after one is not
};

// A vector of products with label 1 or 0 becomes coefficients.
inline __m512 coefficients(__m512 g, bool positive, __m512 weight, __m512 scale, Totals& totals) {
  const __m512 zero = _mm512_setzero_ps();
  const Logistic value = logistic(g);
  const __m512 z = positive ? _mm512_sub_ps(zero, g) : g;
  totals.loss = _mm512_fmadd_ps(weight, _mm512_add_ps(log_of_one_plus(value.e), _mm512_max_ps(z, zero)), totals.loss);
  totals.poison = _mm512_fmadd_ps(g, zero, totals.poison);
  return _mm512_mul_ps(_mm512_mul_ps(weight, scale),
                       _mm512_sub_ps(_mm512_set1_ps(positive ? 1.0f : 0.0f), value.sigma));
}

// Negatives that have one row of weights among them: their losses need one logarithm for all, that of the product of
// their 1 + e. It is at most 2 each, so that 100 of them are far from overflow.
struct SharedLoss {
  __m512 product;
  __m512 above;  // sum of max(z, 0)

  // Products of a negative become coefficients; `step` is weight times -scale.
  __m512 add(__m512 g, __m512 step, Totals& totals) {
    const Logistic value = logistic(g);
    product = _mm512_mul_ps(product, value.one_plus);
    above = _mm512_add_ps(above, _mm512_max_ps(g, _mm512_setzero_ps()));
    totals.poison = _mm512_fmadd_ps(g, _mm512_setzero_ps(), totals.poison);
    return _mm512_mul_ps(step, value.sigma);
  }
  void finish(__m512 weight, Totals& totals) const {
    totals.loss = _mm512_fmadd_ps(weight, _mm512_add_ps(log_of(product), above), totals.loss);
  }
};

inline __m512 weights_at(const PairBlock& block, int32_t i, int32_t j) {  // they end with the inputs
  return j < block.inputs ? _mm512_load_ps(block.weight[i] + j) : _mm512_setzero_ps();
}

// The coefficients of a positive whose band fits into a vector; its row is 0 elsewhere.
inline void band_coefficients(const PairBlock& block, int32_t i, int32_t columns, __m512 scale, float* c,
                              Totals& totals) {
  const int32_t first = std::min(visited_inputs(block, i).begin, columns - 16);
  const float* weights = block.weight[i] + first;
  // Weights end with the inputs, rounded up to sixteen; columns may go on.
  const int32_t left = round_up(block.inputs, 16) - first;
  const __m512 weight = left >= 16 ? _mm512_loadu_ps(weights)
                        : left > 0 ? _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << left) - 1), weights)
                                   : _mm512_setzero_ps();
  const __m512 value = coefficients(_mm512_loadu_ps(c + first), true, weight, scale, totals);
  for (int32_t j = 0; j < columns; j += 16) _mm512_store_ps(c + j, _mm512_setzero_ps());
  _mm512_storeu_ps(c + first, value);
}

// Positives' products become coefficients in place.
inline void positive_coefficients(const PairBlock& block, int32_t columns, float* c, Totals& totals) {
  const __m512 scale = _mm512_set1_ps(block.scale);
  const bool banded = visits_bands_alone(block);
  for (int32_t i = 0; i < block.positives; ++i, c += columns) {
    if (banded && block.band_end[i] - block.band_begin[i] <= 16) {
      band_coefficients(block, i, columns, scale, c, totals);
      continue;
    }
    for (int32_t j = 0; j < columns; j += 16)
      _mm512_store_ps(c + j, coefficients(_mm512_load_ps(c + j), true, weights_at(block, i, j), scale, totals));
  }
}

// A block's coefficients in both forms that products need, and what belongs to them. n and m are the inputs and outputs
// rounded up to 32.
struct PackedCoefficients {
  Bf16Pair* straight;  // m rows of n values
  Bf16Pair* turned;    // n rows of m values
  float* output_sums;  // m sums of |c|
  float* input_sums;   // n likewise
};

// 32 outputs from i on and 16 inputs from j on: products (coefficients of positives) in c become coefficients there, by
// which columns' |c| are added up.
inline __m512 negative_coefficients(const PairBlock& block, int32_t i, int32_t j, int32_t columns, const float* shared,
                                    float* c, RowPrefetch& prefetch, Totals& totals) {
  const __m512 zero = _mm512_setzero_ps(), scale = _mm512_set1_ps(block.scale);
  const __m512 weight = shared != nullptr && j < block.inputs ? _mm512_load_ps(shared + j) : zero;
  const __m512 step = _mm512_mul_ps(weight, _mm512_sub_ps(zero, scale));
  __m512 sum = zero;
  SharedLoss loss{_mm512_set1_ps(1), zero};
  for (int32_t r = i; r < i + 32; ++r, c += columns) {
    __m512 value = zero;
    if (r < block.positives) {
      value = _mm512_load_ps(c);
    } else if (r < block.outputs) {
      const __m512 g = _mm512_load_ps(c);
      value = block.weight[r] == shared ? loss.add(g, step, totals)
                                        : coefficients(g, false, weights_at(block, r, j), scale, totals);
      prefetch.ask(1);
    }
    _mm512_store_ps(c, value);
    sum = _mm512_add_ps(sum, _mm512_abs_ps(value));
  }
  loss.finish(weight, totals);
  return sum;
}

// 32 x 32 coefficients: packed, and rows' |c| added up.
inline void pack_square(const float* c, int32_t columns, int32_t straight_step, int32_t turned_step, Bf16Pair* straight,
                        Bf16Pair* turned, float* row_sums) {
  __m512i left[16], right[16];
  alignas(64) float sizes[32 * 16];
  for (int32_t r = 0; r < 32; r += 2, c += 2 * static_cast<size_t>(columns), straight += 2 * straight_step) {
    const __m512 a = _mm512_load_ps(c), b = _mm512_load_ps(c + 16);
    const __m512 d = _mm512_load_ps(c + columns), e = _mm512_load_ps(c + columns + 16);
    _mm512_store_si512(straight, to_bf16(a, b));
    _mm512_store_si512(straight + straight_step, to_bf16(d, e));
    left[r / 2] = paired_bf16(a, d);
    right[r / 2] = paired_bf16(b, e);
    _mm512_store_ps(sizes + 16 * r, _mm512_add_ps(_mm512_abs_ps(a), _mm512_abs_ps(b)));
    _mm512_store_ps(sizes + 16 * r + 16, _mm512_add_ps(_mm512_abs_ps(d), _mm512_abs_ps(e)));
  }
  transpose_16x16(left);
  for (int32_t r = 0; r < 16; ++r) _mm512_store_si512(turned + static_cast<size_t>(r) * turned_step, left[r]);
  transpose_16x16(right);
  for (int32_t r = 0; r < 16; ++r) _mm512_store_si512(turned + static_cast<size_t>(r + 16) * turned_step, right[r]);
  for (int32_t r = 0; r < 32; r += 16)
    _mm512_store_ps(row_sums + r, _mm512_add_ps(_mm512_load_ps(row_sums + r), sums_of_16(sizes + 16 * r)));
}

// Products c (m x n floats) become coefficients there and in `out`. Returns the loss, NaN when a product is not finite.
// One row is asked of `prefetch` for each negative and 16 inputs.
inline float coefficients_from_products(const PairBlock& block, int32_t n, int32_t m, float* c, RowPrefetch& prefetch,
                                        const PackedCoefficients& out) {
  Totals totals{_mm512_setzero_ps(), _mm512_setzero_ps()};
  positive_coefficients(block, n, c, totals);
  std::fill_n(out.output_sums, m, 0.0f);
  std::fill_n(out.input_sums, n, 0.0f);
  const float* shared = shared_weights(block);
  for (int32_t i = 0; i < m; i += 32)
    for (int32_t j = 0; j < n; j += 32) {
      float* square = c + static_cast<size_t>(i) * n + j;
      for (int32_t k = 0; k < 32; k += 16) {
        const __m512 sum = negative_coefficients(block, i, j + k, n, shared, square + k, prefetch, totals);
        _mm512_store_ps(out.input_sums + j + k, _mm512_add_ps(_mm512_load_ps(out.input_sums + j + k), sum));
      }
      pack_square(square, n, n / 2, m / 2, out.straight + (static_cast<size_t>(i) * n + j) / 2,
                  out.turned + (static_cast<size_t>(j) * m + i) / 2, out.output_sums + i);
    }
  return _mm512_reduce_add_ps(totals.loss) + _mm512_reduce_add_ps(totals.poison);
}

// Sums of |c| become lengths of steps (pair_block.h: b_i, a_j), of `count` rows; what is written past the last of them
// is of no use.
inline void cuts_from_sums(float step_max, const float* longest, const float* paces, int32_t count, float* sums) {
  const __m512 most = _mm512_set1_ps(step_max > 0 ? step_max : 3e38f);
  for (int32_t i = 0; i < count; i += 16) {
    const auto there = static_cast<__mmask16>(count - i >= 16 ? 0xffff : (1u << (count - i)) - 1);
    const __m512 pace = paces != nullptr ? _mm512_maskz_loadu_ps(there, paces + i) : _mm512_set1_ps(1);
    const __m512 own = longest != nullptr ? _mm512_maskz_loadu_ps(there, longest + i) : most;
    const __m512 sum = _mm512_max_ps(_mm512_load_ps(sums + i), _mm512_set1_ps(1e-30f));
    _mm512_store_ps(sums + i, _mm512_min_ps(pace, _mm512_div_ps(own, sum)));
  }
}

inline float sum_of(const float* values, int32_t count) {
  __m512 sum = _mm512_setzero_ps();
  for (int32_t i = 0; i < count; i += 16) sum = _mm512_add_ps(sum, _mm512_load_ps(values + i));
  return _mm512_reduce_add_ps(sum);
}

// The middle of a step: products c become coefficients, and out's sums of them the cuts. Loss and slope of the step;
// when it is not finite the rest is not to be used.
inline PairBlockResult coefficients_and_cuts(const PairBlock& block, int32_t n, int32_t m, float* c,
                                             RowPrefetch& prefetch, const PackedCoefficients& out) {
  PairBlockResult result;
  result.loss = coefficients_from_products(block, n, m, c, prefetch, out);
  result.finite = result.loss == result.loss;
  if (!result.finite) return result;
  result.slope = sum_of(out.input_sums, n) / block.scale;
  cuts_from_sums(block.step_max, block.output_max, block.output_pace, block.outputs, out.output_sums);
  cuts_from_sums(block.step_max, block.input_max, block.input_pace, block.inputs, out.input_sums);
  return result;
}

#pragma GCC pop_options

}  // namespace streamvec
