// Dot products of bf16 pairs: one instruction multiplies 32 values and adds into 16 sums.
#include <immintrin.h>

#include <algorithm>

#include "streamvec/kernel/bf16_gemm.h"

namespace streamvec {

bool cpu_has_avx512_bf16() {
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
namespace {

inline __m512 dot(__m512 sum, Bf16Pair a, __m512i b) {
  return _mm512_dpbf16_ps(sum, (__m512bh)_mm512_set1_epi32(static_cast<int>(a)), (__m512bh)b);
}

template <int kRows, int kVectors>
inline void product_tile(const Bf16Pair* a, const Bf16Pair* b, int32_t columns, int32_t pairs, float* c) {
  __m512 sum[kRows][kVectors];
  for (auto& row : sum)
    for (auto& v : row) v = _mm512_setzero_ps();
  for (int32_t k = 0; k < pairs; ++k, b += columns) {
    __m512i value[kVectors];
    for (int v = 0; v < kVectors; ++v) value[v] = _mm512_load_si512(b + 16 * v);
    for (int r = 0; r < kRows; ++r)
      for (int v = 0; v < kVectors; ++v) sum[r][v] = dot(sum[r][v], a[r * pairs + k], value[v]);
  }
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) _mm512_store_ps(c + r * columns + 16 * v, sum[r][v]);
}

void multiply(const Bf16Pair* a, const Bf16Pair* b, int32_t rows, int32_t columns, int32_t depth, float* c) {
  const int32_t pairs = depth / 2;
  for (int32_t i = 0; i < rows; i += 8) {
    const Bf16Pair* a_row = a + static_cast<size_t>(i) * pairs;
    float* c_row = c + static_cast<size_t>(i) * columns;
    int32_t j = 0;
    for (; j + 32 <= columns; j += 32) product_tile<8, 2>(a_row, b + j, columns, pairs, c_row + j);
    for (; j < columns; j += 16) product_tile<8, 1>(a_row, b + j, columns, pairs, c_row + j);
  }
}

template <int kRows, int kVectors>
inline void sum_tile(const Bf16Pair* a, const Bf16Pair* b, int32_t columns, int32_t pairs, const RangePair& near,
                     const float* cut, int32_t offset, float* const* out) {
  __m512 sum[kRows][kVectors];
  for (auto& row : sum)
    for (auto& v : row) v = _mm512_setzero_ps();
  int32_t k = 0;
  for (const Range& range : near)
    // Two ranges may share a pair: the second goes on where the first ended.
    for (k = std::max(k, range.begin / 2); 2 * k < range.end; ++k) {
      const Bf16Pair* row = b + static_cast<size_t>(k) * columns + offset;
      __m512i value[kVectors];
      for (int v = 0; v < kVectors; ++v) value[v] = _mm512_load_si512(row + 16 * v);
      for (int r = 0; r < kRows; ++r)
        for (int v = 0; v < kVectors; ++v) sum[r][v] = dot(sum[r][v], a[r * pairs + k], value[v]);
    }
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) {
      float* to = out[r] + offset + 16 * v;
      _mm512_store_ps(to, _mm512_fmadd_ps(sum[r][v], _mm512_set1_ps(cut[r]), _mm512_load_ps(to)));
    }
}

// Rows are cut into pieces of nearly equal size, at most 6 vectors: with 4 rows 24 of the 32 registers hold sums.
template <int kRows>
void sum_rows(const Bf16Pair* a, const Bf16Pair* b, int32_t dim, int32_t columns, int32_t pairs, const RangePair& near,
              const float* cut, float* const* out) {
  int32_t vectors = (dim + 15) / 16;
  int32_t pieces = (vectors + 5) / 6;
  for (int32_t offset = 0; pieces > 0; --pieces) {
    const int32_t piece = (vectors + pieces - 1) / pieces;
    switch (piece) {
      case 1:
        sum_tile<kRows, 1>(a, b, columns, pairs, near, cut, offset, out);
        break;
      case 2:
        sum_tile<kRows, 2>(a, b, columns, pairs, near, cut, offset, out);
        break;
      case 3:
        sum_tile<kRows, 3>(a, b, columns, pairs, near, cut, offset, out);
        break;
      case 4:
        sum_tile<kRows, 4>(a, b, columns, pairs, near, cut, offset, out);
        break;
      case 5:
        sum_tile<kRows, 5>(a, b, columns, pairs, near, cut, offset, out);
        break;
      default:
        sum_tile<kRows, 6>(a, b, columns, pairs, near, cut, offset, out);
        break;
    }
    offset += 16 * piece;
    vectors -= piece;
  }
}

void multiply_add(const Bf16Pair* a, const Bf16Pair* b, int32_t rows, int32_t dim, int32_t columns, int32_t depth,
                  const RangePair* near, const float* cut, RowPrefetch& prefetch, float* const* out) {
  const int32_t pairs = depth / 2;
  for (int32_t i = 0; i < rows; i += 4) {
    const Bf16Pair* a_row = a + static_cast<size_t>(i) * pairs;
    prefetch.ask(8);
    if (i + 4 <= rows) {
      sum_rows<4>(a_row, b, dim, columns, pairs, near[i / 4], cut + i, out + i);
      continue;
    }
    for (int32_t r = i; r < rows; ++r, a_row += pairs)
      sum_rows<1>(a_row, b, dim, columns, pairs, near[i / 4], cut + r, out + r);
  }
}

}  // namespace
#pragma GCC pop_options

const Bf16Gemm& bf16_gemm_avx512() {
  static const Bf16Gemm gemm{"bf16 AVX-512", multiply, multiply_add};
  return gemm;
}

}  // namespace streamvec
