// The block in fp32 with Highway: three small matrix products, each in register tiles.
//   1. products: x is transposed once, so that a vector holds one output's products with several inputs and no
//      horizontal sum is needed; sigma, loss and coefficients follow while the products are in registers.
//   2. dx = c' y and 3. dy += c x: a tile of rows is summed in registers over all its partners and stored once.
// Positives have few partners (their window). With AVX-512 they are taken pair by pair (pair_block_positives-inl.h);
// elsewhere tiles of them visit only the union of their bands.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "streamvec/kernel/pair_block_simd.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <algorithm>

#include "streamvec/kernel/logistic-inl.h"
#include "streamvec/kernel/pair_block.h"
#include "streamvec/kernel/pair_block_bands.h"
#include "streamvec/kernel/pair_block_positives-inl.h"
#include "streamvec/kernel/pair_block_sums-inl.h"
#include "streamvec/kernel/row_prefetch.h"
#include "streamvec/kernel/scratch.h"
#include "streamvec/kernel/transpose16.h"

HWY_BEFORE_NAMESPACE();
namespace streamvec::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Register tiles for 32 vector registers (AVX-512) or 16.
constexpr int32_t kProductRows = kManyRegisters ? 8 : 6;
constexpr int32_t kProductVectors = 2;

struct Sums {
  V loss;
  V poison;             // 0 while every product is finite, NaN for ever after one is not
  const float* shared;  // weights that most negatives have, if any do
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

// The coefficients that products `g` come to, of positives or negatives with these weights.
HWY_INLINE V coefficients(V g, bool positive, V weight, float scale, Sums& sums) {
  const D d;
  const V label = hn::Set(d, positive ? 1.0f : 0.0f);
  V sigma;
  const V log_part = logistic(d, g, sigma);
  const V z = positive ? hn::Neg(g) : g;
  sums.loss = hn::MulAdd(weight, hn::Add(log_part, hn::Max(z, hn::Zero(d))), sums.loss);
  sums.poison = hn::MulAdd(g, hn::Zero(d), sums.poison);
  return hn::Mul(hn::Mul(weight, hn::Set(d, scale)), hn::Sub(label, sigma));
}

// The products `g` of output i with a vector of inputs from column j become coefficients in c[j ..].
HWY_INLINE void coefficients(const PairBlock& block, int32_t i, int32_t j, V g, float* HWY_RESTRICT c, Sums& sums) {
  const D d;
  const V weight = hn::LoadU(d, block.weight[i] + j);
  hn::StoreU(coefficients(g, i < block.positives, weight, block.scale, sums), d, c + j);
}

// The products of those of the negatives [i, i + kRows) whose weights are shared: coefficients, and one logarithm for
// all. Returns whether there are any.
template <int32_t kRows, int32_t kVectors>
HWY_INLINE bool shared_coefficients(const PairBlock& block, int32_t i, int32_t j, int32_t columns,
                                    const V (&g)[kRows][kVectors], float* HWY_RESTRICT c, Sums& sums) {
  const D d;
  const int32_t lanes = static_cast<int32_t>(hn::Lanes(d));
  int32_t count = 0;
  for (int32_t r = 0; r < kRows; ++r) count += block.weight[i + r] == sums.shared;
  if (sums.shared == nullptr || count == 0) return false;
  for (int32_t v = 0; v < kVectors; ++v) {
    const V weight = hn::Load(d, sums.shared + j + v * lanes);
    const V step = hn::Mul(weight, hn::Set(d, -block.scale));
    V product = hn::Set(d, 1.0f), above = hn::Zero(d);
    for (int32_t r = 0; r < kRows; ++r) {
      if (block.weight[i + r] != sums.shared) continue;
      V e;
      const V sigma = sigma_of(d, g[r][v], e);
      product = hn::MulAdd(product, e, product);
      above = hn::Add(above, hn::Max(g[r][v], hn::Zero(d)));
      sums.poison = hn::MulAdd(g[r][v], hn::Zero(d), sums.poison);
      hn::Store(hn::Mul(step, sigma), d, c + static_cast<size_t>(i + r) * columns + j + v * lanes);
    }
    sums.loss = hn::MulAdd(weight, hn::Add(log_of(d, product), above), sums.loss);
  }
  return true;
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
  const bool shared = i >= block.positives && shared_coefficients(block, i, j, columns, g, c, sums);
  for (int32_t r = 0; r < kRows; ++r) {
    if (shared && block.weight[i + r] == sums.shared) continue;
    for (int32_t v = 0; v < kVectors; ++v)
      coefficients(block, i + r, j + v * lanes, g[r][v], c + static_cast<size_t>(i + r) * columns, sums);
  }
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

// Positives' products with the inputs of their bands; rows of c are 0 elsewhere.
void positive_products(const PairBlock& block, const float* xt, int32_t columns, float* c, Sums& totals) {
  std::fill(c, c + static_cast<size_t>(block.positives) * columns, 0.0f);
  for (int32_t i = 0; i < block.positives; i += kProductRows) {
    const int32_t rows = std::min(kProductRows, block.positives - i);
    Range range = inputs_near(block, i, rows)[0];
    if (range.begin == range.end) range = {0, 1};  // no partners, but sums may pass these rows: they must be finite
    products(block, xt, columns, i, rows, range, c, totals);
  }
}

void negative_products(const PairBlock& block, const float* xt, int32_t columns, float* c, Sums& totals) {
  for_tiles({block.positives, block.outputs}, kProductRows, [&](int32_t i, int32_t rows) {
    products(block, xt, columns, i, rows, {0, block.inputs}, c, totals);
  });
}

// Whether all products were finite; the loss goes into the result.
bool finish(const Sums& totals, PairBlockResult& result) {
  const D d;
  result.loss = hn::GetLane(hn::SumOfLanes(d, totals.loss));
  result.finite = hn::AllTrue(d, hn::Eq(totals.poison, hn::Zero(d)));
  return result.finite;
}

void add_row(const float* HWY_RESTRICT from, float cut, int32_t dim, float* HWY_RESTRICT to) {
  const D d;
  for (int32_t k = 0; k < dim; k += static_cast<int32_t>(hn::Lanes(d)))
    hn::Store(hn::MulAdd(hn::Load(d, from + k), hn::Set(d, cut), hn::Load(d, to + k)), d, to + k);
}

// Adds up |c| by output and by input. Returns the sum of all.
float sum_steps(const PairBlock& block, int32_t columns, const float* c, float* output_sums, float* input_sums) {
  const D d;
  const int32_t lanes = static_cast<int32_t>(hn::Lanes(d));
  V total = hn::Zero(d);
  for (int32_t i = 0; i < block.outputs; ++i, c += columns) {
    V sum = hn::Zero(d);
    for (int32_t j = 0; j < block.inputs; j += lanes) {  // past the last vector lies an older block
      const V size = hn::Abs(hn::Load(d, c + j));
      sum = hn::Add(sum, size);
      hn::StoreU(hn::Add(hn::LoadU(d, input_sums + j), size), d, input_sums + j);
    }
    total = hn::Add(total, sum);
    output_sums[i] = hn::GetLane(hn::SumOfLanes(d, sum));
  }
  return hn::GetLane(hn::SumOfLanes(d, total));
}

// Sums become lengths of steps (pair_block.h: a_j, b_i).
void cut_steps(float step_max, const float* longest, const float* paces, int32_t count, float* sums) {
  if (step_max == 0) step_max = 3e38f;
  for (int32_t i = 0; i < count; ++i)
    sums[i] = std::min(paces != nullptr ? paces[i] : 1.0f,
                       (longest != nullptr ? longest[i] : step_max) / std::max(sums[i], 1e-30f));
}

// A block as tiles see it: coefficients with `columns` of them a row.
struct Tiles {
  const PairBlock& block;
  int32_t columns;
  float* c;
  RowPrefetch& prefetch;
};

// dx of all inputs, into scratch memory: x must stay old until dy has been taken from it. Positives take
// part or not.
void sum_inputs(const Tiles& tiles, bool positives, float* const* dx) {
  const PairBlock& block = tiles.block;
  const auto stride = static_cast<size_t>(tiles.columns);
  for_tiles({0, block.inputs}, kSumRows, [&](int32_t j, int32_t rows) {
    RangePair near = outputs_near(block, j, rows);
    if (!positives) near[0] = {};
    sums<false>(block.y, {tiles.c + j, 1, stride}, near, nullptr, block.dim, rows, dx + j);
    tiles.prefetch.ask(2 * rows);
  });
}

// dy of some outputs, added to them. REQUIRES: positives or negatives, not both: bands are for positives.
void add_outputs(const Tiles& tiles, Range outputs, const float* cuts) {
  const PairBlock& block = tiles.block;
  const auto stride = static_cast<size_t>(tiles.columns);
  for_tiles(outputs, kSumRows, [&](int32_t i, int32_t rows) {
    sums<true>(block.x, {tiles.c + i * stride, stride, 1}, inputs_near(block, i, rows), cuts + i, block.dim, rows,
               block.dy + i);
    tiles.prefetch.ask(2 * rows);
  });
}

#if HWY_TARGET <= HWY_AVX3
// The products of the listed pairs, and their coefficients.
void pair_coefficients(const PairBlock& block, PairList& list, Sums& totals) {
  const D d;
  list_pairs(block, list);
  for_pieces(block.dim,
             [&](int32_t offset, auto vectors) { multiply_pairs<decltype(vectors)::value>(block, offset, list); });
  for (int32_t p = 0; p < list.size; p += 16) {
    const V g{sums_of_16(list.partial.data() + 16 * static_cast<size_t>(p))};
    const V weight = hn::Load(d, list.weights.data() + p);
    hn::Store(coefficients(g, true, weight, block.scale, totals), d, list.steps.data() + p);
  }
}

// The step with positives taken pair by pair. REQUIRES: visits_bands_alone(block).
PairBlockResult step_by_pairs(const PairBlock& block, PairScratch& scratch, PairList& list) {
  const D d;
  const int32_t columns = scratch.reserve(block);
  float *c = scratch.coefficients(), *output_cuts = scratch.output_cuts(), *input_sums = scratch.input_cuts(block);
  Sums totals{hn::Zero(d), hn::Zero(d), shared_weights(block)};
  pair_coefficients(block, list, totals);
  transpose(block, columns, scratch.transposed());
  negative_products(block, scratch.transposed(), columns, c, totals);
  PairBlockResult result;
  if (!finish(totals, result)) return result;
  const float slope = cut_negatives(block, columns, c, list, output_cuts, input_sums);
  list.turn(block);
  RowPrefetch prefetch(block);
  const Tiles tiles{block, columns, c, prefetch};
  sum_inputs(tiles, false, scratch.dx_rows());
  add_outputs(tiles, {block.positives, block.outputs}, output_cuts);
  float pair_slope = 0;
  for_pieces(block.dim, [&](int32_t offset, auto vectors) {
    pair_slope = add_pair_outputs<decltype(vectors)::value>(block, offset, list);
  });
  prefetch.ask_for_all();
  for_pieces(block.dim, [&](int32_t offset, auto vectors) {
    add_pair_inputs<decltype(vectors)::value>(block, offset, scratch.dx_rows(), input_sums, list);
  });
  result.slope = (slope + pair_slope) / block.scale;
  return result;
}
#endif

PairBlockResult step_by_bands(const PairBlock& block, PairScratch& scratch) {
  const D d;
  const int32_t columns = scratch.reserve(block);
  float *c = scratch.coefficients(), *output_cuts = scratch.output_cuts(), *input_cuts = scratch.input_cuts(block);
  Sums totals{hn::Zero(d), hn::Zero(d), shared_weights(block)};
  transpose(block, columns, scratch.transposed());
  positive_products(block, scratch.transposed(), columns, c, totals);
  negative_products(block, scratch.transposed(), columns, c, totals);
  PairBlockResult result;
  if (!finish(totals, result)) return result;
  std::fill(input_cuts, input_cuts + columns, 0.0f);
  result.slope = sum_steps(block, columns, c, output_cuts, input_cuts) / block.scale;
  cut_steps(block.step_max, block.output_max, block.output_pace, block.outputs, output_cuts);
  cut_steps(block.step_max, block.input_max, block.input_pace, block.inputs, input_cuts);
  RowPrefetch prefetch(block);
  const Tiles tiles{block, columns, c, prefetch};
  sum_inputs(tiles, true, scratch.dx_rows());
  add_outputs(tiles, {0, block.positives}, output_cuts);
  add_outputs(tiles, {block.positives, block.outputs}, output_cuts);
  prefetch.ask_for_all();
  for (int32_t j = 0; j < block.inputs; ++j) add_row(scratch.dx_rows()[j], input_cuts[j], block.dim, block.dx[j]);
  return result;
}

PairBlockResult step(const PairBlock& block, PairScratch& scratch, [[maybe_unused]] PairList& list) {
#if HWY_TARGET <= HWY_AVX3
  if (visits_bands_alone(block)) return step_by_pairs(block, scratch, list);
#endif
  return step_by_bands(block, scratch);
}

}  // namespace streamvec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace streamvec {
namespace {

HWY_EXPORT(step);

class SimdPairKernel final : public PairKernel {
 public:
  PairBlockResult step(const PairBlock& block) override { return HWY_DYNAMIC_DISPATCH(step)(block, scratch_, list_); }
  std::string name() const override {
    return std::string("simd ") + hwy::TargetName(hwy::SupportedAndGeneratedTargets().front());
  }

 private:
  PairScratch scratch_;
  PairList list_;
};

}  // namespace

std::unique_ptr<PairKernel> make_simd_pair_kernel() {
  return std::make_unique<SimdPairKernel>();
}

}  // namespace streamvec
#endif
