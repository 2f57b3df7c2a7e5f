// The block in fp32 with Highway: three small matrix products, each in register tiles.
//   1. products: x is transposed once, so that a vector holds one output's products with several inputs and no
//      horizontal sum is needed; sigma, loss and coefficients follow while the products are in registers.
//   2. dx = c' y and 3. dy += c x: a tile of rows is summed in registers over all its partners and stored once.
// Positives have few partners (their window): tiles of them visit only the union of their bands.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "streamvec/kernel/pair_block_simd.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <algorithm>

#include "streamvec/kernel/logistic-inl.h"
#include "streamvec/kernel/pair_block.h"
#include "streamvec/kernel/pair_block_bands.h"
#include "streamvec/kernel/row_prefetch.h"
#include "streamvec/kernel/scratch.h"
#include "streamvec/kernel/transpose16.h"

HWY_BEFORE_NAMESPACE();
namespace streamvec::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Register tiles for 32 vector registers (AVX-512) or 16.
constexpr bool kManyRegisters = HWY_TARGET <= HWY_AVX3;
constexpr int32_t kProductRows = kManyRegisters ? 8 : 6;
constexpr int32_t kProductVectors = 2;
constexpr int32_t kBandRows = 6;  // with window 5 the bands of six centres fill a vector of 16
constexpr int32_t kSumRows = kManyRegisters ? 4 : 2;
constexpr int32_t kSumVectors = kManyRegisters ? 6 : 5;

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

struct Sums {
  V loss;
  V poison;  // 0 while every product is finite, NaN for ever after one is not
};

// xt[d * columns + j] = x[j][d]; the columns past `inputs` hold some row again (their weights are 0).
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void transpose(const PairBlock& block, int32_t columns, float* HWY_RESTRICT xt) {
  for (int32_t j = 0; j < columns; ++j)
    for (int32_t d = 0; d < block.dim; ++d)
      xt[static_cast<size_t>(d) * columns + j] = block.x[std::min(j, block.inputs - 1)][d];
}
#elif HWY_TARGET <= HWY_AVX3
HWY_INLINE void transpose(const PairBlock& block, int32_t columns, float* HWY_RESTRICT xt) {
  for (int32_t j = 0; j < columns; j += 16) {
    const float* row[16];
    for (int32_t r = 0; r < 16; ++r) row[r] = block.x[std::min(j + r, block.inputs - 1)];
    for (int32_t d = 0; d < block.dim; d += 16) {
      __m512i square[16];
      for (int r = 0; r < 16; ++r) square[r] = _mm512_load_si512(row[r] + d);
      transpose_16x16(square);
      for (int r = 0; r < 16; ++r) _mm512_store_si512(xt + static_cast<size_t>(d + r) * columns + j, square[r]);
    }
  }
}
#else
HWY_INLINE void transpose(const PairBlock& block, int32_t columns, float* HWY_RESTRICT xt) {
  const hn::FixedTag<float, 4> d4;
  const hn::Repartition<double, decltype(d4)> dd;
  for (int32_t j = 0; j < columns; j += 4) {
    const float* row[4];
    for (int32_t r = 0; r < 4; ++r) row[r] = block.x[std::min(j + r, block.inputs - 1)];
    float* to = xt + j;
    for (int32_t d = 0; d < block.dim; d += 4, to += 4 * static_cast<size_t>(columns)) {
      const auto a = hn::Load(d4, row[0] + d), b = hn::Load(d4, row[1] + d);
      const auto e = hn::Load(d4, row[2] + d), f = hn::Load(d4, row[3] + d);
      const auto ab_low = hn::BitCast(dd, hn::InterleaveLower(d4, a, b));
      const auto ab_high = hn::BitCast(dd, hn::InterleaveUpper(d4, a, b));
      const auto ef_low = hn::BitCast(dd, hn::InterleaveLower(d4, e, f));
      const auto ef_high = hn::BitCast(dd, hn::InterleaveUpper(d4, e, f));
      hn::Store(hn::BitCast(d4, hn::InterleaveLower(dd, ab_low, ef_low)), d4, to);
      hn::Store(hn::BitCast(d4, hn::InterleaveUpper(dd, ab_low, ef_low)), d4, to + columns);
      hn::Store(hn::BitCast(d4, hn::InterleaveLower(dd, ab_high, ef_high)), d4, to + 2 * columns);
      hn::Store(hn::BitCast(d4, hn::InterleaveUpper(dd, ab_high, ef_high)), d4, to + 3 * columns);
    }
  }
}
#endif

// The products `g` of output i with a vector of inputs from column j become coefficients in c[j ..].
HWY_INLINE void coefficients(const PairBlock& block, int32_t i, int32_t j, V g, float* HWY_RESTRICT c, Sums& sums) {
  const D d;
  const bool positive = i < block.positives;
  const V label = hn::Set(d, positive ? 1.0f : 0.0f);
  const V weight = hn::LoadU(d, block.weight[i] + j);
  V sigma;
  const V log_part = logistic(d, g, sigma);
  const V z = positive ? hn::Neg(g) : g;
  sums.loss = hn::MulAdd(weight, hn::Add(log_part, hn::Max(z, hn::Zero(d))), sums.loss);
  sums.poison = hn::MulAdd(g, hn::Zero(d), sums.poison);
  hn::StoreU(hn::Mul(hn::Mul(weight, hn::Set(d, block.scale)), hn::Sub(label, sigma)), d, c + j);
}

// Products of outputs [i, i + kRows) with the inputs of kVectors vectors from column j, then their coefficients.
template <int32_t kRows, int32_t kVectors>
HWY_INLINE void product_tile(const PairBlock& block, const float* HWY_RESTRICT xt, int32_t columns, int32_t i,
                             int32_t j, float* HWY_RESTRICT c, Sums& sums) {
  const D d;
  const int32_t lanes = static_cast<int32_t>(hn::Lanes(d));
  const float* y[kRows];
  for (int32_t r = 0; r < kRows; ++r) y[r] = block.y[i + r];
  V g[kRows][kVectors];
  for (auto& row : g)
    for (V& v : row) v = hn::Zero(d);
  const float* column = xt + j;
  for (int32_t k = 0; k < block.dim; ++k, column += columns) {
    V x[kVectors];
    for (int32_t v = 0; v < kVectors; ++v) x[v] = hn::Load(d, column + v * lanes);
    for (int32_t r = 0; r < kRows; ++r) {
      const V value = hn::Set(d, y[r][k]);
      for (int32_t v = 0; v < kVectors; ++v) g[r][v] = hn::MulAdd(value, x[v], g[r][v]);
    }
  }
  for (int32_t r = 0; r < kRows; ++r)
    for (int32_t v = 0; v < kVectors; ++v)
      coefficients(block, i + r, j + v * lanes, g[r][v], c + static_cast<size_t>(i + r) * columns, sums);
}

template <int32_t kRows>
HWY_NOINLINE void product_rows(const PairBlock& block, const float* xt, int32_t columns, int32_t i, Range range,
                               float* c, Sums& sums) {
  const int32_t lanes = static_cast<int32_t>(hn::Lanes(D()));
  int32_t j = range.begin / lanes * lanes;
  for (; j + lanes < range.end; j += kProductVectors * lanes)
    product_tile<kRows, kProductVectors>(block, xt, columns, i, j, c, sums);
  for (; j < range.end; j += lanes) product_tile<kRows, 1>(block, xt, columns, i, j, c, sums);
}

void products(const PairBlock& block, const float* xt, int32_t columns, int32_t i, int32_t rows, Range range, float* c,
              Sums& sums) {
  switch (rows) {
    case 1:
      return product_rows<1>(block, xt, columns, i, range, c, sums);
    case 2:
      return product_rows<2>(block, xt, columns, i, range, c, sums);
    case 3:
      return product_rows<3>(block, xt, columns, i, range, c, sums);
    case 4:
      return product_rows<4>(block, xt, columns, i, range, c, sums);
    case 5:
      return product_rows<5>(block, xt, columns, i, range, c, sums);
    case 6:
      return product_rows<std::min(6, kProductRows)>(block, xt, columns, i, range, c, sums);
    case 7:
      return product_rows<std::min(7, kProductRows)>(block, xt, columns, i, range, c, sums);
    default:
      return product_rows<kProductRows>(block, xt, columns, i, range, c, sums);
  }
}

// How the coefficient of (row to sum, partner) lies in memory.
struct Coefficients {
  const float* data;
  size_t row_step, partner_step;
};

// out[r][first vector ..] = sum over partners p in `ranges` of c(r, p) * in[p], or with kAdd += cut[r] times that
template <int32_t kRows, int32_t kVectors, bool kAdd>
HWY_INLINE void sum_tile(const float* const* in, Coefficients c, const RangePair& ranges, const float* cut,
                         int32_t offset, float* const* out) {
  const D d;
  const int32_t lanes = static_cast<int32_t>(hn::Lanes(d));
  V sum[kRows][kVectors];
  for (auto& row : sum)
    for (V& v : row) v = hn::Zero(d);
  for (const Range& range : ranges) {
    const float* coefficient = c.data + range.begin * c.partner_step;
    for (int32_t p = range.begin; p < range.end; ++p, coefficient += c.partner_step) {
      const float* row = in[p] + offset;
      V value[kVectors];
      for (int32_t v = 0; v < kVectors; ++v) value[v] = hn::Load(d, row + v * lanes);
      for (int32_t r = 0; r < kRows; ++r) {
        const V factor = hn::Set(d, coefficient[r * c.row_step]);
        for (int32_t v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(factor, value[v], sum[r][v]);
      }
    }
  }
  for (int32_t r = 0; r < kRows; ++r)
    for (int32_t v = 0; v < kVectors; ++v) {
      float* to = out[r] + offset + v * lanes;
      hn::Store(kAdd ? hn::MulAdd(sum[r][v], hn::Set(d, cut[r]), hn::Load(d, to)) : sum[r][v], d, to);
    }
}

// A row is cut into pieces of nearly equal size, at most kSumVectors vectors each.
template <int32_t kRows, bool kAdd>
HWY_NOINLINE void sum_rows(const float* const* in, Coefficients c, const RangePair& ranges, const float* cut,
                           int32_t dim, float* const* out) {
  const int32_t lanes = static_cast<int32_t>(hn::Lanes(D()));
  int32_t vectors = (dim + lanes - 1) / lanes;
  int32_t pieces = (vectors + kSumVectors - 1) / kSumVectors;
  for (int32_t offset = 0; pieces > 0; --pieces) {
    const int32_t piece = (vectors + pieces - 1) / pieces;
    switch (piece) {
      case 1:
        sum_tile<kRows, 1, kAdd>(in, c, ranges, cut, offset, out);
        break;
      case 2:
        sum_tile<kRows, 2, kAdd>(in, c, ranges, cut, offset, out);
        break;
      case 3:
        sum_tile<kRows, 3, kAdd>(in, c, ranges, cut, offset, out);
        break;
      case 4:
        sum_tile<kRows, 4, kAdd>(in, c, ranges, cut, offset, out);
        break;
      case 5:
        sum_tile<kRows, 5, kAdd>(in, c, ranges, cut, offset, out);
        break;
      default:
        sum_tile<kRows, kSumVectors, kAdd>(in, c, ranges, cut, offset, out);
        break;
    }
    offset += piece * lanes;
    vectors -= piece;
  }
}

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
    default:
      return sum_rows<kSumRows, kAdd>(in, c, ranges, cut, dim, out);
  }
}

// Positives meet few inputs: where a vector holds the bands of several, each tile has one vector of columns of its own,
// which may begin anywhere. Two tiles run side by side, so that there are sums enough to hide the latency of one.
template <int32_t kRows>
HWY_NOINLINE void band_tiles(const PairBlock& block, const float* HWY_RESTRICT xt, int32_t columns, int32_t i,
                             const int32_t (&first)[2], float* HWY_RESTRICT c, Sums& totals) {
  const D d;
  V g[2][kRows];
  for (auto& tile : g)
    for (V& v : tile) v = hn::Zero(d);
  const float* column = xt;
  for (int32_t k = 0; k < block.dim; ++k, column += columns)
    for (int32_t t = 0; t < 2; ++t) {
      const V x = hn::LoadU(d, column + first[t]);
      for (int32_t r = 0; r < kRows; ++r) g[t][r] = hn::MulAdd(hn::Set(d, block.y[i + t * kRows + r][k]), x, g[t][r]);
    }
  for (int32_t t = 0; t < 2; ++t)
    for (int32_t r = 0; r < kRows; ++r)
      coefficients(block, i + t * kRows + r, first[t], g[t][r], c + static_cast<size_t>(i + t * kRows + r) * columns,
                   totals);
}

// Band tiles of `rows` rows for positives [i, i + 2 * rows); false when a band is too wide for that.
bool try_band_tiles(const PairBlock& block, const float* xt, int32_t columns, int32_t i, int32_t rows, float* c,
                    Sums& totals) {
  const int32_t lanes = static_cast<int32_t>(hn::Lanes(D()));
  int32_t first[2];
  for (int32_t t = 0; t < 2; ++t) {
    const Range range = inputs_near(block, i + t * rows, rows)[0];
    if (range.end - range.begin > lanes) return false;
    first[t] = std::min(range.begin, columns - lanes);
  }
  switch (rows) {
    case 1:
      band_tiles<1>(block, xt, columns, i, first, c, totals);
      break;
    case 2:
      band_tiles<2>(block, xt, columns, i, first, c, totals);
      break;
    case 3:
      band_tiles<3>(block, xt, columns, i, first, c, totals);
      break;
    case 4:
      band_tiles<4>(block, xt, columns, i, first, c, totals);
      break;
    case 5:
      band_tiles<5>(block, xt, columns, i, first, c, totals);
      break;
    default:
      band_tiles<kBandRows>(block, xt, columns, i, first, c, totals);
  }
  return true;
}

// Positives [0, n) by band tiles of nearly equal size; returns n, the first that none of them took.
int32_t banded_products(const PairBlock& block, const float* xt, int32_t columns, float* c, Sums& totals) {
  int32_t i = 0;
  while (block.positives - i >= 2) {
    const int32_t left = block.positives - i;
    const int32_t pairs = (left + 2 * kBandRows - 1) / (2 * kBandRows);
    const int32_t rows = std::min(kBandRows, std::max(1, left / (2 * pairs)));
    if (!try_band_tiles(block, xt, columns, i, rows, c, totals)) break;
    i += 2 * rows;
  }
  return i;
}

bool compute_coefficients(const PairBlock& block, const float* xt, int32_t columns, float* c, double& loss) {
  const D d;
  Sums totals{hn::Zero(d), hn::Zero(d)};
  std::fill(c, c + static_cast<size_t>(block.positives) * columns, 0.0f);
  const int32_t banded = kManyRegisters ? banded_products(block, xt, columns, c, totals) : 0;
  for (int32_t i = banded; i < block.positives; i += kProductRows) {
    const int32_t rows = std::min(kProductRows, block.positives - i);
    Range range = inputs_near(block, i, rows)[0];
    if (range.begin == range.end) range = {0, 1};  // no partners, but sums may pass these rows: they must be finite
    products(block, xt, columns, i, rows, range, c, totals);
  }
  for (int32_t i = block.positives; i < block.outputs; i += kProductRows)
    products(block, xt, columns, i, std::min(kProductRows, block.outputs - i), {0, block.inputs}, c, totals);
  loss = hn::GetLane(hn::SumOfLanes(d, totals.loss));
  return hn::AllTrue(d, hn::Eq(totals.poison, hn::Zero(d)));
}

void add_row(const float* HWY_RESTRICT from, float cut, int32_t dim, float* HWY_RESTRICT to) {
  const D d;
  for (int32_t k = 0; k < dim; k += static_cast<int32_t>(hn::Lanes(d)))
    hn::Store(hn::MulAdd(hn::Load(d, from + k), hn::Set(d, cut), hn::Load(d, to + k)), d, to + k);
}

// step_max / sum where the sum is larger, else 1. Returns the sum of all |c|.
float cut_steps(const PairBlock& block, int32_t columns, const float* c, float* output_cuts, float* input_cuts) {
  const D d;
  const int32_t lanes = static_cast<int32_t>(hn::Lanes(d));
  const float step_max = block.step_max > 0 ? block.step_max : 3e38f;
  V total = hn::Zero(d);
  std::fill(input_cuts, input_cuts + columns, 0.0f);
  for (int32_t i = 0; i < block.outputs; ++i, c += columns) {
    V sum = hn::Zero(d);
    for (int32_t j = 0; j < block.inputs; j += lanes) {  // past the last vector lies an older block
      const V size = hn::Abs(hn::Load(d, c + j));
      sum = hn::Add(sum, size);
      hn::StoreU(hn::Add(hn::LoadU(d, input_cuts + j), size), d, input_cuts + j);
    }
    total = hn::Add(total, sum);
    output_cuts[i] = std::min(1.0f, step_max / std::max(hn::GetLane(hn::SumOfLanes(d, sum)), 1e-30f));
  }
  for (int32_t j = 0; j < columns; ++j) input_cuts[j] = std::min(1.0f, step_max / std::max(input_cuts[j], 1e-30f));
  return hn::GetLane(hn::SumOfLanes(d, total));
}

PairBlockResult step(const PairBlock& block, PairScratch& scratch) {
  const int32_t columns = scratch.reserve(block);
  float* c = scratch.coefficients();
  transpose(block, columns, scratch.transposed());
  PairBlockResult result;
  result.finite = compute_coefficients(block, scratch.transposed(), columns, c, result.loss);
  if (!result.finite) return result;
  const size_t stride = static_cast<size_t>(columns);
  const float* output_cuts = scratch.output_cuts();
  const float* input_cuts = scratch.input_cuts(block);
  result.slope = cut_steps(block, columns, c, scratch.output_cuts(), scratch.input_cuts(block)) / block.scale;
  RowPrefetch prefetch(block);
  // dx goes through scratch memory: x must stay old until dy has been taken from it.
  for_tiles({0, block.inputs}, kSumRows, [&](int32_t j, int32_t rows) {
    sums<false>(block.y, {c + j, 1, stride}, outputs_near(block, j, rows), nullptr, block.dim, rows,
                scratch.dx_rows() + j);
    prefetch.ask(2 * rows);
  });
  // A tile has positives or negatives, not both: bands are for positives.
  for (const Range outputs : {Range{0, block.positives}, Range{block.positives, block.outputs}})
    for_tiles(outputs, kSumRows, [&](int32_t i, int32_t rows) {
      sums<true>(block.x, {c + i * stride, stride, 1}, inputs_near(block, i, rows), output_cuts + i, block.dim, rows,
                 block.dy + i);
      prefetch.ask(2 * rows);
    });
  prefetch.ask_for_all();
  for (int32_t j = 0; j < block.inputs; ++j) add_row(scratch.dx_rows()[j], input_cuts[j], block.dim, block.dx[j]);
  return result;
}

}  // namespace streamvec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace streamvec {
namespace {

HWY_EXPORT(step);

class SimdPairKernel final : public PairKernel {
 public:
  PairBlockResult step(const PairBlock& block) override { return HWY_DYNAMIC_DISPATCH(step)(block, scratch_); }
  std::string name() const override {
    return std::string("simd ") + hwy::TargetName(hwy::SupportedAndGeneratedTargets().front());
  }

 private:
  PairScratch scratch_;
};

}  // namespace

std::unique_ptr<PairKernel> make_simd_pair_kernel() {
  return std::make_unique<SimdPairKernel>();
}

}  // namespace streamvec
#endif
