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
#include "streamvec/kernel/pair_coefficients_bf16.h"
#include "streamvec/kernel/scratch.h"
#include "streamvec/kernel/transpose16.h"

namespace streamvec {

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
namespace {

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
    RowPrefetch prefetch(block);
    const PairBlockResult result =
        coefficients_and_cuts(block, n, m, c_.data(), prefetch,
                              {c_straight_.data(), c_turned_.data(), output_cuts_.data(), input_cuts_.data()});
    if (!result.finite) return result;
    find_partners(block);
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

}  // namespace streamvec
