// Dot products of bf16 pairs: one instruction multiplies 32 values and adds into 16 sums.
#include <immintrin.h>

#include <algorithm>

#include "streamvec/kernel/bf16_gemm.h"

namespace streamvec {

bool cpu_has_avx512_bf16() {
  return __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

#pragma GCC push_options
#pragma GCC target("fma,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
namespace {

inline __m512 dot(__m512 sum, Bf16Pair a, __m512i b) {
  return _mm512_dpbf16_ps(sum, (__m512bh)_mm512_set1_epi32(static_cast<int>(a)), (__m512bh)b);
}

inline __m256 half_dot(__m256 sum, Bf16Pair a, __m256i b) {
  return _mm256_dpbf16_ps(sum, (__m256bh)_mm256_set1_epi32(static_cast<int>(a)), (__m256bh)b);
}

// Tiles of nearly equal size, at most rows_max rows each: f(first, rows).
template <typename F>
inline void for_tiles(Range range, int32_t rows_max, F f) {
  int32_t tiles = (range.end - range.begin + rows_max - 1) / rows_max;
  for (int32_t i = range.begin; tiles > 0; --tiles) {
    const int32_t rows = (range.end - i + tiles - 1) / tiles;
    f(i, rows);
    i += rows;
  }
}

// The operands of the products: rows of a lie a_step words apart, of b and c `columns`.
struct Products {
  const Bf16Pair* a;
  const Bf16Pair* b;
  int32_t a_step, columns, pairs;
  float* c;
};

// kTiles x kRows rows from row i on; the rows of a tile with kVectors vectors of columns from first[tile] on.
template <int kTiles, int kRows, int kVectors>
void product_tiles(const Products& p, int32_t i, const int32_t (&first)[kTiles]) {
  __m512 sum[kTiles][kRows][kVectors];
  for (auto& tile : sum)
    for (auto& row : tile)
      for (auto& v : row) v = _mm512_setzero_ps();
  const Bf16Pair* a = p.a + static_cast<size_t>(i) * p.a_step;
  const Bf16Pair* b = p.b;
  for (int32_t k = 0; k < p.pairs; ++k, b += p.columns)
    for (int t = 0; t < kTiles; ++t) {
      __m512i value[kVectors];
      for (int v = 0; v < kVectors; ++v) value[v] = _mm512_loadu_si512(b + first[t] + 16 * v);
      for (int r = 0; r < kRows; ++r)
        for (int v = 0; v < kVectors; ++v)
          sum[t][r][v] = dot(sum[t][r][v], a[(t * kRows + r) * p.a_step + k], value[v]);
    }
  for (int t = 0; t < kTiles; ++t)
    for (int r = 0; r < kRows; ++r)
      for (int v = 0; v < kVectors; ++v)
        _mm512_storeu_ps(p.c + static_cast<size_t>(i + t * kRows + r) * p.columns + first[t] + 16 * v, sum[t][r][v]);
}

template <int kRows>
void product_rows(const Products& p, int32_t i) {
  int32_t j = 0;
  for (; j + 32 <= p.columns; j += 32) product_tiles<1, kRows, 2>(p, i, {j});
  for (; j < p.columns; j += 16) product_tiles<1, kRows, 1>(p, i, {j});
}

void product_rows(const Products& p, int32_t i, int32_t rows) {
  switch (rows) {
    case 1:
      return product_rows<1>(p, i);
    case 2:
      return product_rows<2>(p, i);
    case 3:
      return product_rows<3>(p, i);
    case 4:
      return product_rows<4>(p, i);
    case 5:
      return product_rows<5>(p, i);
    case 6:
      return product_rows<6>(p, i);
    case 7:
      return product_rows<7>(p, i);
    default:
      return product_rows<8>(p, i);
  }
}

// Positives meet few inputs. Where a vector holds the bands of several they make a tile with a vector of columns of its
// own, which may begin anywhere; two tiles run side by side, to hide the latency of one.
constexpr int32_t kBandRows = 6;  // with window 5 the bands of six centres fill a vector

// The first column for positives [i, i + rows), or -1 when their bands need more than one vector.
int32_t band_column(const PairBlock& block, int32_t i, int32_t rows, int32_t columns) {
  Range range = visited_inputs(block, i);
  for (int32_t r = i + 1; r < i + rows; ++r) {
    const Range next = visited_inputs(block, r);
    range = {std::min(range.begin, next.begin), std::max(range.end, next.end)};
  }
  return range.end - range.begin > 16 ? -1 : std::min(range.begin, columns - 16);
}

void band_tiles(const Products& p, int32_t i, int32_t rows, const int32_t (&first)[2]) {
  switch (rows) {
    case 1:
      return product_tiles<2, 1, 1>(p, i, first);
    case 2:
      return product_tiles<2, 2, 1>(p, i, first);
    case 3:
      return product_tiles<2, 3, 1>(p, i, first);
    case 4:
      return product_tiles<2, 4, 1>(p, i, first);
    case 5:
      return product_tiles<2, 5, 1>(p, i, first);
    default:
      return product_tiles<2, kBandRows, 1>(p, i, first);
  }
}

// Positives [0, n) by band tiles of nearly equal size; returns n, the first that none of them took.
int32_t banded_products(const PairBlock& block, const Products& p) {
  std::fill_n(p.c, static_cast<size_t>(block.positives) * p.columns, 0.0f);
  int32_t i = 0;
  while (block.positives - i >= 2) {
    const int32_t left = block.positives - i;
    const int32_t pairs = (left + 2 * kBandRows - 1) / (2 * kBandRows);
    const int32_t rows = std::min(kBandRows, std::max(1, left / (2 * pairs)));
    const int32_t first[2] = {band_column(block, i, rows, p.columns), band_column(block, i + rows, rows, p.columns)};
    if (first[0] < 0 || first[1] < 0) break;
    band_tiles(p, i, rows, first);
    i += 2 * rows;
  }
  return i;
}

void products(const PairBlock& block, const Bf16Pair* a, const Bf16Pair* b, int32_t columns, int32_t depth, float* c) {
  const Products p{a, b, depth / 2, columns, (block.dim + 1) / 2, c};
  const int32_t banded = visits_bands_alone(block) ? banded_products(block, p) : 0;
  for_tiles({banded, block.outputs}, 8, [&](int32_t i, int32_t rows) { product_rows(p, i, rows); });
}

// One piece of some rows: kVectors vectors from `offset` on and, with kHalf, half a vector after them.
template <int kRows, int kVectors, bool kHalf>
inline void sum_tile(const Bf16Pair* a, const Bf16Pair* b, int32_t columns, int32_t pairs, const RangePair& near,
                     const float* cut, int32_t offset, float* const* out) {
  __m512 sum[kRows][kVectors];
  __m256 half[kRows];
  for (auto& row : sum)
    for (auto& v : row) v = _mm512_setzero_ps();
  for (auto& v : half) v = _mm256_setzero_ps();
  int32_t k = 0;
  for (const Range& range : near)
    // Two ranges may share a pair: the second goes on where the first ended.
    for (k = std::max(k, range.begin / 2); 2 * k < range.end; ++k) {
      const Bf16Pair* row = b + static_cast<size_t>(k) * columns + offset;
      __m512i value[kVectors];
      for (int v = 0; v < kVectors; ++v) value[v] = _mm512_load_si512(row + 16 * v);
      for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kVectors; ++v) sum[r][v] = dot(sum[r][v], a[r * pairs + k], value[v]);
        if constexpr (kHalf)
          half[r] = half_dot(half[r], a[r * pairs + k],
                             _mm256_load_si256(reinterpret_cast<const __m256i*>(row + 16 * kVectors)));
      }
    }
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) {
      float* to = out[r] + offset + 16 * v;
      _mm512_store_ps(to, _mm512_fmadd_ps(sum[r][v], _mm512_set1_ps(cut[r]), _mm512_load_ps(to)));
    }
  if constexpr (kHalf)
    for (int r = 0; r < kRows; ++r) {
      float* to = out[r] + offset + 16 * kVectors;
      _mm256_store_ps(to, _mm256_fmadd_ps(half[r], _mm256_set1_ps(cut[r]), _mm256_load_ps(to)));
    }
}

template <int kRows, bool kHalf>
inline void sum_piece(const Bf16Pair* a, const Bf16Pair* b, int32_t columns, int32_t pairs, const RangePair& near,
                      const float* cut, int32_t offset, int32_t vectors, float* const* out) {
  switch (vectors) {
    case 1:
      return sum_tile<kRows, 1, kHalf>(a, b, columns, pairs, near, cut, offset, out);
    case 2:
      return sum_tile<kRows, 2, kHalf>(a, b, columns, pairs, near, cut, offset, out);
    case 3:
      return sum_tile<kRows, 3, kHalf>(a, b, columns, pairs, near, cut, offset, out);
    case 4:
      return sum_tile<kRows, 4, kHalf>(a, b, columns, pairs, near, cut, offset, out);
    default:
      return sum_tile<kRows, 5, kHalf>(a, b, columns, pairs, near, cut, offset, out);
  }
}

// Rows are cut into pieces of nearly equal size, at most 5 vectors: with 4 rows 20 of the 32 registers hold sums. Where
// a row ends in the first half of its last vector only that half is summed: it takes half the time.
template <int kRows>
void sum_rows(const Bf16Pair* a, const Bf16Pair* b, int32_t dim, int32_t columns, int32_t pairs, const RangePair& near,
              const float* cut, float* const* out) {
  const int32_t rest = dim % 16;
  const bool half = dim > 16 && rest > 0 && rest <= 8;
  const int32_t vectors = half ? dim / 16 : (dim + 15) / 16;
  for_tiles({0, vectors}, 5, [&](int32_t first, int32_t count) {
    if (half && first + count == vectors)
      sum_piece<kRows, true>(a, b, columns, pairs, near, cut, 16 * first, count, out);
    else
      sum_piece<kRows, false>(a, b, columns, pairs, near, cut, 16 * first, count, out);
  });
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
  static const Bf16Gemm gemm{"bf16 AVX-512", products, multiply_add};
  return gemm;
}

}  // namespace streamvec
