// The block with bf16 operands and fp32 sums and rows. Rows are rounded and packed once; the packed copies are the
// old values, so that both sides may be updated in place:
//   products  = y . x'    a = y row by row          b = x turned on its side, pairs along dim
//   dy       += c . x     a = c row by row          b = x, pairs of rows
//   dx       += c' . y    a = c turned on its side  b = y, pairs of rows
// The products themselves are a Bf16Gemm's: AVX-512 or AMX.
#include <immintrin.h>

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

// Products become coefficients in place; returns the loss, NaN when a product is not finite.
float coefficients_from_products(const PairBlock& block, int32_t columns, float* c) {
  const __m512 zero = _mm512_setzero_ps(), scale = _mm512_set1_ps(block.scale);
  __m512 loss = zero, poison = zero;
  for (int32_t i = 0; i < block.outputs; ++i, c += columns) {
    const bool positive = i < block.positives;
    const __m512 label = _mm512_set1_ps(positive ? 1.0f : 0.0f);
    for (int32_t j = 0; j < columns; j += 16) {
      const __m512 g = _mm512_load_ps(c + j);
      const __m512 weight = j < block.inputs ? _mm512_load_ps(block.weight[i] + j) : zero;
      const Logistic value = logistic(g);
      const __m512 z = positive ? _mm512_sub_ps(zero, g) : g;
      loss = _mm512_fmadd_ps(weight, _mm512_add_ps(value.log_part, _mm512_max_ps(z, zero)), loss);
      poison = _mm512_fmadd_ps(g, zero, poison);
      _mm512_store_ps(c + j, _mm512_mul_ps(_mm512_mul_ps(weight, scale), _mm512_sub_ps(label, value.sigma)));
    }
  }
  return _mm512_reduce_add_ps(loss) + _mm512_reduce_add_ps(poison);
}

// step_max / sum where the sum is larger, else 1. Returns the sum of all |c|.
float cut_steps(const PairBlock& block, int32_t columns, const float* c, float* output_cuts, float* input_cuts) {
  const __m512 one = _mm512_set1_ps(1), step_max = _mm512_set1_ps(block.step_max > 0 ? block.step_max : 3e38f);
  for (int32_t j = 0; j < columns; j += 16) _mm512_store_ps(input_cuts + j, _mm512_set1_ps(1e-30f));
  __m512 total = _mm512_setzero_ps();
  for (int32_t i = 0; i < block.outputs; ++i, c += columns) {
    __m512 sum = _mm512_setzero_ps();
    for (int32_t j = 0; j < columns; j += 16) {
      const __m512 size = _mm512_abs_ps(_mm512_load_ps(c + j));
      sum = _mm512_add_ps(sum, size);
      _mm512_store_ps(input_cuts + j, _mm512_add_ps(_mm512_load_ps(input_cuts + j), size));
    }
    output_cuts[i] = _mm512_reduce_add_ps(sum) + 1e-30f;
    total = _mm512_add_ps(total, sum);
  }
  for (int32_t j = 0; j < columns; j += 16)
    _mm512_store_ps(input_cuts + j, _mm512_min_ps(one, _mm512_div_ps(step_max, _mm512_load_ps(input_cuts + j))));
  for (int32_t i = 0; i < block.outputs; i += 16)
    _mm512_store_ps(output_cuts + i, _mm512_min_ps(one, _mm512_div_ps(step_max, _mm512_load_ps(output_cuts + i))));
  return _mm512_reduce_add_ps(total);
}

// c (outputs_padded x columns floats) to bf16, row by row and turned. The turned form has depth outputs_padded.
void pack_coefficients(const float* c, int32_t outputs_padded, int32_t columns, Bf16Pair* straight, Bf16Pair* turned) {
  for (int32_t i = 0; i < outputs_padded; i += 32)
    for (int32_t j = 0; j < columns; j += 16) {
      __m512i first[16], second[16];
      for (int r = 0; r < 16; ++r) {
        first[r] = _mm512_load_si512(c + static_cast<size_t>(i + r) * columns + j);
        second[r] = _mm512_load_si512(c + static_cast<size_t>(i + 16 + r) * columns + j);
      }
      transpose_16x16(first);
      transpose_16x16(second);
      for (int r = 0; r < 16; ++r)
        _mm512_store_si512(turned + (static_cast<size_t>(j + r) * outputs_padded + i) / 2,
                           to_bf16(_mm512_castsi512_ps(first[r]), _mm512_castsi512_ps(second[r])));
    }
  for (int32_t i = 0; i < outputs_padded; ++i, c += columns, straight += columns / 2)
    for (int32_t j = 0; j < columns; j += 32)
      _mm512_store_si512(straight + j / 2, to_bf16(_mm512_load_ps(c + j), _mm512_load_ps(c + j + 16)));
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
    gemm_.multiply(y_.data(), x_turned_.data(), m, n, depth, c_.data());
    PairBlockResult result;
    result.loss = coefficients_from_products(block, n, c_.data());
    result.finite = result.loss == result.loss;
    if (!result.finite) return result;
    std::memset(c_.data() + static_cast<size_t>(block.outputs) * n, 0,
                static_cast<size_t>(m - block.outputs) * n * sizeof(float));
    pack_coefficients(c_.data(), m, n, c_straight_.data(), c_turned_.data());
    find_partners(block);
    result.slope = cut_steps(block, n, c_.data(), output_cuts_.data(), input_cuts_.data()) / block.scale;
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
