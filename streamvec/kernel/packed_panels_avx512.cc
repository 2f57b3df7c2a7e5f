// Products and packing with AVX-512. A tile of 12 rows by 32 columns keeps 24 sums in registers; each word of `a` is
// spread over a register and meets two registers of `b`.
#include <immintrin.h>

#include <algorithm>
#include <type_traits>

#include "streamvec/kernel/packed_panels.h"
#include "streamvec/kernel/transpose16.h"

namespace streamvec {

bool cpu_has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

// Code without bf16 runs on CPUs that have none: no compiler makes these instructions up.
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
namespace {

template <bool kPairs>
inline __m512 dot(__m512 sum, __m512i a, __m512i b) {
  if constexpr (kPairs) return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
  return _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), sum);
}

template <bool kPairs, int kRows>
void multiply_tile(const uint32_t* a, int64_t a_stride, const uint32_t* b, int64_t words, bool add, float* c,
                   int64_t c_stride) {
  __m512 sum[kRows][2];
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < 2; ++v) sum[r][v] = add ? _mm512_loadu_ps(c + r * c_stride + 16 * v) : _mm512_setzero_ps();
  for (int64_t k = 0; k < words; ++k, b += kPanelColumns) {
    const __m512i first = _mm512_load_si512(b), second = _mm512_load_si512(b + 16);
    for (int r = 0; r < kRows; ++r) {
      const __m512i spread = _mm512_set1_epi32(static_cast<int>(a[r * a_stride + k]));
      sum[r][0] = dot<kPairs>(sum[r][0], spread, first);
      sum[r][1] = dot<kPairs>(sum[r][1], spread, second);
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < 2; ++v) _mm512_storeu_ps(c + r * c_stride + 16 * v, sum[r][v]);
}

// Sixteen words of one row that has `left` values more; of the columns of one or two rows that have `left` more.
inline __m512i row_words(const float* row, int64_t left, bool pairs) {
  const auto mask_of = [](int64_t count) {
    return static_cast<__mmask16>((1u << std::clamp<int64_t>(count, 0, 16)) - 1);
  };
  const __m512 low = _mm512_maskz_loadu_ps(mask_of(left), row);
  if (!pairs) return _mm512_castps_si512(low);
  const __m512 high = _mm512_maskz_loadu_ps(mask_of(left - 16), row + 16);
  return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

inline __m512i column_words(const float* row, const float* next, int64_t left) {
  const auto mask = static_cast<__mmask16>(left >= 16 ? 0xffff : (1u << left) - 1);
  const __m512 low = _mm512_maskz_loadu_ps(mask, row);
  if (next == nullptr) return _mm512_castps_si512(low);
  const __m512 high = _mm512_maskz_loadu_ps(mask, next);
  const __m512i low_words = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(low));
  const __m512i high_words = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(high));
  return _mm512_or_si512(low_words, _mm512_slli_epi32(high_words, 16));
}

// Word `k` of the depth for 16 columns from `j` on, where rows are the depth.
inline __m512i words_at(const float* values, int64_t stride, int64_t rows, int64_t cols, bool pairs, int64_t k,
                        int64_t j) {
  static const float zeros[16] = {};
  const int64_t first = pairs ? 2 * k : k;
  if (first >= rows || j >= cols) return _mm512_setzero_si512();
  const float* row = values + first * stride + j;
  if (!pairs) return column_words(row, nullptr, cols - j);
  return column_words(row, first + 1 < rows ? row + stride : zeros, cols - j);
}

}  // namespace

void pack_rows(const float* values, int64_t stride, int64_t rows, int64_t cols, bool pairs, int64_t words,
               uint32_t* to) {
  const int64_t values_a_word = pairs ? 2 : 1;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < words; k += 16)
      _mm512_storeu_si512(to + i * words + k,
                          row_words(values + i * stride + k * values_a_word, cols - k * values_a_word, pairs));
}

void pack_columns(const float* values, int64_t stride, int64_t rows, int64_t cols, bool pairs, int64_t words,
                  uint32_t* to) {
  for (int64_t k = 0; k < words; k += 16)
    for (int64_t j = 0; j < cols; j += 16) {
      __m512i block[16];
      for (int64_t i = 0; i < 16; ++i) block[i] = words_at(values, stride, rows, cols, pairs, k + i, j);
      transpose_16x16(block);
      for (int64_t i = 0; i < std::min<int64_t>(16, cols - j); ++i)
        _mm512_storeu_si512(to + (j + i) * words + k, block[i]);
    }
}

void pack_panels(const float* values, int64_t stride, int64_t rows, int64_t cols, bool pairs, int64_t words,
                 uint32_t* to) {
  for (int64_t j = 0; j < cols; j += kPanelColumns)
    for (int64_t k = 0; k < words; ++k)
      for (int64_t half = 0; half < kPanelColumns; half += 16)
        _mm512_storeu_si512(to + j * words + k * kPanelColumns + half,
                            words_at(values, stride, rows, cols, pairs, k, j + half));
}

void pack_panels_transposed(const float* values, int64_t stride, int64_t rows, int64_t cols, bool pairs, int64_t words,
                            uint32_t* to) {
  const int64_t values_a_word = pairs ? 2 : 1;
  const int64_t columns = (rows + kPanelColumns - 1) / kPanelColumns * kPanelColumns;
  for (int64_t j = 0; j < columns; j += 16)
    for (int64_t k = 0; k < words; k += 16) {
      __m512i block[16];
      for (int64_t i = 0; i < 16; ++i)
        block[i] = j + i < rows
                       ? row_words(values + (j + i) * stride + k * values_a_word, cols - k * values_a_word, pairs)
                       : _mm512_setzero_si512();
      transpose_16x16(block);
      uint32_t* panel = to + j / kPanelColumns * kPanelColumns * words + j % kPanelColumns;
      for (int64_t i = 0; i < 16; ++i) _mm512_storeu_si512(panel + (k + i) * kPanelColumns, block[i]);
    }
}
#pragma GCC pop_options

namespace {

// Tiles of 12 rows, then of fewer.
template <bool kPairs>
void multiply_rows(const uint32_t* a, int64_t a_stride, int64_t rows, const uint32_t* b, int64_t words, bool add,
                   float* c, int64_t c_stride) {
  int64_t i = 0;
  const auto run = [&](auto count) {
    for (; i + count.value <= rows; i += count.value)
      multiply_tile<kPairs, count.value>(a + i * a_stride, a_stride, b, words, add, c + i * c_stride, c_stride);
  };
  run(std::integral_constant<int, 12>());
  run(std::integral_constant<int, 8>());
  run(std::integral_constant<int, 4>());
  run(std::integral_constant<int, 2>());
  run(std::integral_constant<int, 1>());
}

}  // namespace

const PanelGemm& panel_gemm_f32() {
  static const PanelGemm gemm{"simd", false, 1, multiply_rows<false>};
  return gemm;
}

const PanelGemm& panel_gemm_bf16() {
  static const PanelGemm gemm{"bf16", true, 1, multiply_rows<true>};
  return gemm;
}

}  // namespace streamvec
