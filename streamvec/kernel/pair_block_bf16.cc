// The block with bf16 operands and fp32 sums and rows. Rows are rounded and packed once; the packed copies are the
// old values, so that both sides may be updated in place:
//   products  = y . x'    a = y row by row          b = x turned on its side, pairs along dim
//   dy       += c . x     a = c row by row          b = x, pairs of rows
//   dx       += c' . y    a = c turned on its side  b = y, pairs of rows
// The products themselves are a Bf16Gemm's: AVX-512 or AMX.
#include <immintrin.h>

#include <algorithm>

#include "streamvec/kernel/bf16_gemm.h"
#include "streamvec/kernel/pair_block.h"
#include "streamvec/kernel/scratch.h"
#include "streamvec/kernel/transpose16.h"

namespace streamvec {

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
namespace {

inline __m512i to_bf16(__m512 low, __m512 high) {
  return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

// Which 16-bit values of two registers stand in turn: (a0, b0, a1, b1, ...) of their lower halves. Upper: 16 further.
alignas(64) constexpr uint16_t kInTurn[32] = {0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
                                              8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47};

// Packs `count` rows of dim floats, rounded, in both forms that products need; rows past `count` become 0, and so do
// the values past a row's own padding.
//   straight  count_padded rows of `depth` values
//   paired    word [k][j] = (row 2k, row 2k + 1) at column j
// REQUIRES: count_padded is even, depth a multiple of 32.
void pack_rows(const float* const* rows, int32_t count, int32_t count_padded, int32_t dim, int32_t depth,
               Bf16Pair* straight, Bf16Pair* paired) {
  const __m512i low = _mm512_load_si512(kInTurn), high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
  const int32_t pairs = depth / 2;
  const int32_t floats = round_up(dim, 16);  // what a row holds, padding included
  const auto load = [&](int32_t i, int32_t d) {
    if (i >= count) return _mm512_setzero_si512();
    const __m512 second = d + 16 < floats ? _mm512_load_ps(rows[i] + d + 16) : _mm512_setzero_ps();
    return to_bf16(_mm512_load_ps(rows[i] + d), second);
  };
  for (int32_t i = 0; i < count_padded; i += 2, straight += 2 * static_cast<size_t>(pairs), paired += depth)
    for (int32_t d = 0; d < depth; d += 32) {
      const __m512i first = load(i, d), second = load(i + 1, d);
      _mm512_store_si512(straight + d / 2, first);
      _mm512_store_si512(straight + pairs + d / 2, second);
      _mm512_store_si512(paired + d, _mm512_permutex2var_epi16(first, low, second));
      _mm512_store_si512(paired + d + 16, _mm512_permutex2var_epi16(first, high, second));
    }
}

// rows x depth bf16, row-major, to depth / 2 rows of `rows` words.
void turn_rows(const Bf16Pair* in, int32_t rows, int32_t depth, Bf16Pair* out) {
  const int32_t pairs = depth / 2;
  for (int32_t i = 0; i < rows; i += 16)
    for (int32_t k = 0; k < pairs; k += 16) {
      __m512i v[16];
      for (int r = 0; r < 16; ++r) v[r] = _mm512_load_si512(in + static_cast<size_t>(i + r) * pairs + k);
      transpose_16x16(v);
      for (int r = 0; r < 16; ++r) _mm512_store_si512(out + static_cast<size_t>(k + r) * rows + i, v[r]);
    }
}

struct Logistic {
  __m512 sigma;
  __m512 log_part;  // log(1 + exp(-|g|))
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
  const __m512 whole_part = _mm512_add_ps(one, e);
  const __m512 estimate = _mm512_rcp14_ps(whole_part);
  const __m512 high = _mm512_mul_ps(estimate, _mm512_fnmadd_ps(whole_part, estimate, _mm512_set1_ps(2)));
  const __mmask16 negative = _mm512_cmp_ps_mask(g, _mm512_setzero_ps(), _CMP_LT_OQ);
  __m512 q = _mm512_set1_ps(0.01420283f);
  q = _mm512_fmadd_ps(q, e, _mm512_set1_ps(-0.06658805f));
  q = _mm512_fmadd_ps(q, e, _mm512_set1_ps(0.14943458f));
  q = _mm512_fmadd_ps(q, e, _mm512_set1_ps(-0.23514864f));
  q = _mm512_fmadd_ps(q, e, _mm512_set1_ps(0.33112052f));
  q = _mm512_fmadd_ps(q, e, _mm512_set1_ps(-0.49987192f));
  q = _mm512_fmadd_ps(q, e, _mm512_set1_ps(0.99999876f));
  return {_mm512_mask_mul_ps(high, negative, e, high), _mm512_mul_ps(q, e)};
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
  totals.loss = _mm512_fmadd_ps(weight, _mm512_add_ps(value.log_part, _mm512_max_ps(z, zero)), totals.loss);
  totals.poison = _mm512_fmadd_ps(g, zero, totals.poison);
  return _mm512_mul_ps(_mm512_mul_ps(weight, scale),
                       _mm512_sub_ps(_mm512_set1_ps(positive ? 1.0f : 0.0f), value.sigma));
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

// Products become coefficients in place; returns the loss, NaN when a product is not finite.
float coefficients_from_products(const PairBlock& block, int32_t columns, float* c) {
  const __m512 zero = _mm512_setzero_ps(), scale = _mm512_set1_ps(block.scale);
  Totals totals{zero, zero};
  const bool banded = visits_bands_alone(block);
  for (int32_t i = 0; i < block.outputs; ++i, c += columns) {
    const bool positive = i < block.positives;
    if (positive && banded && block.band_end[i] - block.band_begin[i] <= 16) {
      band_coefficients(block, i, columns, scale, c, totals);
      continue;
    }
    for (int32_t j = 0; j < columns; j += 16) {
      const __m512 weight = j < block.inputs ? _mm512_load_ps(block.weight[i] + j) : zero;
      _mm512_store_ps(c + j, coefficients(_mm512_load_ps(c + j), positive, weight, scale, totals));
    }
  }
  return _mm512_reduce_add_ps(totals.loss) + _mm512_reduce_add_ps(totals.poison);
}

// How far steps are cut (pair_block.h: b_i, a_j): step_max / sum where a row's sum of |c| is larger, else 1.
void cuts_from_sums(float step_max, int32_t count, float* sums) {
  const __m512 most = _mm512_set1_ps(step_max > 0 ? step_max : 3e38f);
  for (int32_t i = 0; i < count; i += 16) {
    const __m512 sum = _mm512_max_ps(_mm512_load_ps(sums + i), _mm512_set1_ps(1e-30f));
    _mm512_store_ps(sums + i, _mm512_min_ps(_mm512_set1_ps(1), _mm512_div_ps(most, sum)));
  }
}

// Turns a square of c and adds the |c| of its rows to row_sums, of its columns to column_sums.
inline void turn_square(const float* c, int32_t columns, __m512i (&v)[16], float* row_sums, float* column_sums) {
  __m512 sum = _mm512_load_ps(column_sums);
  for (int r = 0; r < 16; ++r) {
    v[r] = _mm512_load_si512(c + static_cast<size_t>(r) * columns);
    sum = _mm512_add_ps(sum, _mm512_abs_ps(_mm512_castsi512_ps(v[r])));
  }
  _mm512_store_ps(column_sums, sum);
  transpose_16x16(v);
  sum = _mm512_load_ps(row_sums);
  for (int r = 0; r < 16; ++r) sum = _mm512_add_ps(sum, _mm512_abs_ps(_mm512_castsi512_ps(v[r])));
  _mm512_store_ps(row_sums, sum);
}

// c (outputs_padded x columns floats) to bf16, row by row and turned; the turned form has depth outputs_padded. The
// sums of |c| by output and by input come with it.
void pack_coefficients(const float* c, int32_t outputs_padded, int32_t columns, Bf16Pair* straight, Bf16Pair* turned,
                       float* output_sums, float* input_sums) {
  std::fill_n(output_sums, outputs_padded, 0.0f);
  std::fill_n(input_sums, columns, 0.0f);
  for (int32_t i = 0; i < outputs_padded; i += 32)
    for (int32_t j = 0; j < columns; j += 16) {
      __m512i first[16], second[16];
      const float* square = c + static_cast<size_t>(i) * columns + j;
      turn_square(square, columns, first, output_sums + i, input_sums + j);
      turn_square(square + 16 * static_cast<size_t>(columns), columns, second, output_sums + i + 16, input_sums + j);
      for (int r = 0; r < 16; ++r)
        _mm512_store_si512(turned + (static_cast<size_t>(j + r) * outputs_padded + i) / 2,
                           to_bf16(_mm512_castsi512_ps(first[r]), _mm512_castsi512_ps(second[r])));
    }
  for (int32_t i = 0; i < outputs_padded; ++i, c += columns, straight += columns / 2)
    for (int32_t j = 0; j < columns; j += 32)
      _mm512_store_si512(straight + j / 2, to_bf16(_mm512_load_ps(c + j), _mm512_load_ps(c + j + 16)));
}

float sum_of(const float* values, int32_t count) {
  __m512 sum = _mm512_setzero_ps();
  for (int32_t i = 0; i < count; i += 16) sum = _mm512_add_ps(sum, _mm512_load_ps(values + i));
  return _mm512_reduce_add_ps(sum);
}

}  // namespace
#pragma GCC pop_options

namespace {

class Bf16PairKernel final : public PairKernel {
 public:
  explicit Bf16PairKernel(const Bf16Gemm& gemm) : gemm_(gemm) {}

  PairBlockResult step(const PairBlock& block) override {
    // Sizes rounded up to what the products want: tiles of 16 rows, depths of 32.
    const int32_t n = round_up(block.inputs, 32), m = round_up(block.outputs, 32), depth = round_up(block.dim, 32);
    reserve(n, m, depth);
    pack_rows(block.x, block.inputs, n, block.dim, depth, x_.data(), x_paired_.data());
    pack_rows(block.y, block.outputs, m, block.dim, depth, y_.data(), y_paired_.data());
    turn_rows(x_.data(), n, depth, x_turned_.data());
    gemm_.products(block, y_.data(), x_turned_.data(), n, depth, c_.data());
    PairBlockResult result;
    result.loss = coefficients_from_products(block, n, c_.data());
    result.finite = result.loss == result.loss;
    if (!result.finite) return result;
    std::memset(c_.data() + static_cast<size_t>(block.outputs) * n, 0,
                static_cast<size_t>(m - block.outputs) * n * sizeof(float));
    pack_coefficients(c_.data(), m, n, c_straight_.data(), c_turned_.data(), output_cuts_.data(), input_cuts_.data());
    result.slope = sum_of(input_cuts_.data(), n) / block.scale;
    cuts_from_sums(block.step_max, m, output_cuts_.data());
    cuts_from_sums(block.step_max, n, input_cuts_.data());
    find_partners(block);
    RowPrefetch prefetch(block);
    gemm_.multiply_add(c_straight_.data(), x_paired_.data(), block.outputs, block.dim, depth, n, near_outputs_.data(),
                       output_cuts_.data(), prefetch, block.dy);
    gemm_.multiply_add(c_turned_.data(), y_paired_.data(), block.inputs, block.dim, depth, m, near_inputs_.data(),
                       input_cuts_.data(), prefetch, block.dx);
    prefetch.ask_for_all();
    return result;
  }

  std::string name() const override { return gemm_.name; }

 private:
  void reserve(int32_t n, int32_t m, int32_t depth) {
    const size_t n_pairs = static_cast<size_t>(n) * depth / 2, m_pairs = static_cast<size_t>(m) * depth / 2;
    x_.reserve(n_pairs);
    x_turned_.reserve(n_pairs);
    x_paired_.reserve(n_pairs);
    y_.reserve(m_pairs);
    y_paired_.reserve(m_pairs);
    c_.reserve(static_cast<size_t>(m) * n);
    output_cuts_.reserve(static_cast<size_t>(m));
    input_cuts_.reserve(static_cast<size_t>(n));
    c_straight_.reserve(static_cast<size_t>(m) * n / 2);
    c_turned_.reserve(static_cast<size_t>(m) * n / 2);
  }

  void find_partners(const PairBlock& block) {
    near_outputs_.clear();
    for (int32_t i = 0; i < block.outputs; i += 4) {
      // A tile may hold the last positives and the first negatives: then it meets every input.
      const bool banded = i + 4 <= block.positives;
      near_outputs_.push_back(banded ? inputs_near(block, i, 4) : RangePair{Range{0, block.inputs}, Range{}});
    }
    near_inputs_.clear();
    for (int32_t j = 0; j < block.inputs; j += 4) near_inputs_.push_back(outputs_near(block, j, 4));
  }

  const Bf16Gemm& gemm_;
  AlignedBuffer<Bf16Pair> x_, x_turned_, x_paired_, y_, y_paired_, c_straight_, c_turned_;
  AlignedBuffer<float> c_, output_cuts_, input_cuts_;
  std::vector<RangePair> near_outputs_, near_inputs_;
};

}  // namespace

std::unique_ptr<PairKernel> make_bf16_pair_kernel() {
  return std::make_unique<Bf16PairKernel>(bf16_gemm_avx512());
}
std::unique_ptr<PairKernel> make_amx_pair_kernel() {
  return std::make_unique<Bf16PairKernel>(bf16_gemm_amx());
}

}  // namespace streamvec
