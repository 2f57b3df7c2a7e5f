// Rows summed in register tiles, for inclusion once per Highway target (see pair_block_simd.cc): a few rows' sums over
// all their partners stay in registers and are stored once.
#if defined(STREAMVEC_KERNEL_PAIR_BLOCK_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STREAMVEC_KERNEL_PAIR_BLOCK_SUMS_INL_H_
#undef STREAMVEC_KERNEL_PAIR_BLOCK_SUMS_INL_H_
#else
#define STREAMVEC_KERNEL_PAIR_BLOCK_SUMS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "streamvec/kernel/pair_block_bands.h"

HWY_BEFORE_NAMESPACE();
namespace streamvec::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Register tiles for 32 vector registers (AVX-512) or 16.
constexpr bool kManyRegisters = HWY_TARGET <= HWY_AVX3;
constexpr int32_t kSumRows = kManyRegisters ? 4 : 2;
constexpr int32_t kSumVectors = 5;

// Calls f(first, rows) for tiles of nearly equal size, at most rows_max rows each.
template <typename F>
HWY_INLINE void for_tiles(Range range, int32_t rows_max, F f) {
  int32_t tiles = (range.end - range.begin + rows_max - 1) / rows_max;
  for (int32_t i = range.begin; tiles > 0; --tiles) {
    const int32_t rows = (range.end - i + tiles - 1) / tiles;
    f(i, rows);
    i += rows;
  }
}

// How the coefficient of (row to sum, partner) lies in memory.
struct Coefficients {
  const float* data;
  size_t row_step, partner_step;
};

// out[r][offset ..] = sum over partners p in `ranges` of c(r, p) * in[p], or with kAdd += cut[r] times that, for
// kVectors vectors and with kHalf half a vector after them, which takes half the time.
template <int32_t kRows, int32_t kVectors, bool kHalf, bool kAdd>
HWY_INLINE void sum_tile(const float* const* in, Coefficients c, const RangePair& ranges, const float* cut,
                         int32_t offset, float* const* out) {
  const D d;
  const hn::Half<D> dh;
  const int32_t lanes = static_cast<int32_t>(hn::Lanes(d));
  V sum[kRows][kVectors];
  hn::Vec<hn::Half<D>> half[kRows];
  for (auto& row : sum)
    for (V& v : row) v = hn::Zero(d);
  for (auto& v : half) v = hn::Zero(dh);
  for (const Range& range : ranges) {
    const float* coefficient = c.data + range.begin * c.partner_step;
    for (int32_t p = range.begin; p < range.end; ++p, coefficient += c.partner_step) {
      const float* row = in[p] + offset;
      V value[kVectors];
      for (int32_t v = 0; v < kVectors; ++v) value[v] = hn::Load(d, row + v * lanes);
      for (int32_t r = 0; r < kRows; ++r) {
        const V factor = hn::Set(d, coefficient[r * c.row_step]);
        for (int32_t v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(factor, value[v], sum[r][v]);
        if constexpr (kHalf)
          half[r] = hn::MulAdd(hn::LowerHalf(dh, factor), hn::Load(dh, row + kVectors * lanes), half[r]);
      }
    }
  }
  for (int32_t r = 0; r < kRows; ++r)
    for (int32_t v = 0; v < kVectors; ++v) {
      float* to = out[r] + offset + v * lanes;
      hn::Store(kAdd ? hn::MulAdd(sum[r][v], hn::Set(d, cut[r]), hn::Load(d, to)) : sum[r][v], d, to);
    }
  if constexpr (kHalf)
    for (int32_t r = 0; r < kRows; ++r) {
      float* to = out[r] + offset + kVectors * lanes;
      hn::Store(kAdd ? hn::MulAdd(half[r], hn::Set(dh, cut[r]), hn::Load(dh, to)) : half[r], dh, to);
      if (!kAdd) hn::Store(hn::Zero(dh), dh, to + lanes / 2);
    }
}

template <int32_t kRows, bool kHalf, bool kAdd>
HWY_INLINE void sum_piece(const float* const* in, Coefficients c, const RangePair& ranges, const float* cut,
                          int32_t offset, int32_t vectors, float* const* out) {
  switch (vectors) {
    case 1:
      return sum_tile<kRows, 1, kHalf, kAdd>(in, c, ranges, cut, offset, out);
    case 2:
      return sum_tile<kRows, 2, kHalf, kAdd>(in, c, ranges, cut, offset, out);
    case 3:
      return sum_tile<kRows, 3, kHalf, kAdd>(in, c, ranges, cut, offset, out);
    case 4:
      return sum_tile<kRows, 4, kHalf, kAdd>(in, c, ranges, cut, offset, out);
    default:  // the half one would be a register too many
      return sum_tile < kRows, kHalf ? kSumVectors - 1 : kSumVectors, kHalf, kAdd > (in, c, ranges, cut, offset, out);
  }
}

// A row is cut into pieces of nearly equal size, at most kSumVectors vectors each. Where it ends in the first half of a
// vector the last piece has half a vector more.
template <int32_t kRows, bool kAdd>
HWY_NOINLINE void sum_rows(const float* const* in, Coefficients c, const RangePair& ranges, const float* cut,
                           int32_t dim, float* const* out) {
  const int32_t lanes = static_cast<int32_t>(hn::Lanes(D()));
  const int32_t rest = dim % lanes;
  const bool half = kManyRegisters && dim > lanes && rest > 0 && rest <= lanes / 2;
  int32_t vectors = half ? dim / lanes : (dim + lanes - 1) / lanes;
  int32_t pieces = (vectors + half + kSumVectors - 1) / kSumVectors;
  // No lambda here: g++ 12 would keep the tile's sums in memory.
  for (int32_t offset = 0; pieces > 0; --pieces) {
    const int32_t piece = (vectors + pieces - 1) / pieces;
    if (half && pieces == 1)
      sum_piece<kRows, kManyRegisters, kAdd>(in, c, ranges, cut, offset, piece, out);
    else
      sum_piece<kRows, false, kAdd>(in, c, ranges, cut, offset, piece, out);
    offset += piece * lanes;
    vectors -= piece;
  }
}

// Sums of `rows` rows, at most kSumRows. With kAdd cut[r] times them is added to `out`, otherwise they replace what is
// there.
template <bool kAdd>
void sums(const float* const* in, Coefficients c, const RangePair& ranges, const float* cut, int32_t dim, int32_t rows,
          float* const* out) {
  switch (rows) {
    case 1:
      return sum_rows<1, kAdd>(in, c, ranges, cut, dim, out);
    case 2:
      return sum_rows<2, kAdd>(in, c, ranges, cut, dim, out);
    case 3:
      return sum_rows<std::min(3, kSumRows), kAdd>(in, c, ranges, cut, dim, out);
    case 4:
      return sum_rows<std::min(4, kSumRows), kAdd>(in, c, ranges, cut, dim, out);
    default:
      return sum_rows<kSumRows, kAdd>(in, c, ranges, cut, dim, out);
  }
}

}  // namespace streamvec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
