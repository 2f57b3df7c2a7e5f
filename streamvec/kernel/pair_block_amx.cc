// The block with AMX tiles: bf16 operands, fp32 sums and rows. Tiles multiply so fast that moving rows is what takes
// time, so everything between two visits to a row stays in the first cache. Rows are visited twice:
//   1. for the products y . x', 32 outputs at a time; 32 are packed while those before them are multiplied;
//   2. for the steps, by slices of 32 columns: all rows' slices are packed in pairs of rows, dy = c x and dx = c' y are
//      taken from that and added at once, because no other slice looks at these columns again.
#include <immintrin.h>

#include <algorithm>

#include "streamvec/kernel/amx_tiles.h"
#include "streamvec/kernel/bf16_gemm.h"
#include "streamvec/kernel/pair_block.h"
#include "streamvec/kernel/pair_coefficients_bf16.h"
#include "streamvec/kernel/row_prefetch.h"
#include "streamvec/kernel/scratch.h"
#include "streamvec/kernel/transpose16.h"

namespace streamvec {

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,amx-tile,amx-bf16")
namespace {

constexpr int32_t kSlice = 32;                  // columns that are worked on together: two tiles
constexpr size_t kTile = 16 * 16;               // words of a tile
constexpr size_t kTileBytes = 16 * 4;           // of a tile's row
constexpr size_t kSliceBytes = 2 * kTileBytes;  // of a slice's row

// 32 columns of a row from d on as bf16, or 16 where the row's padding ends before.
inline __m512i load_slice(const float* row, int32_t d, int32_t floats) {
  return to_bf16(_mm512_load_ps(row + d), d + 16 < floats ? _mm512_load_ps(row + d + 16) : _mm512_setzero_ps());
}

// Inputs turned on their side: words [k][j] = values (2k, 2k + 1) of input j, `columns` words a row.
void turn_inputs(const PairBlock& block, int32_t columns, Bf16Pair* out) {
  const int32_t floats = round_up(block.dim, 16);
  for (int32_t d = 0; d < block.dim; d += kSlice, out += 16 * static_cast<size_t>(columns))
    for (int32_t j = 0; j < columns; j += 16) {
      __m512i v[16];
      for (int32_t r = 0; r < 16; ++r)
        v[r] = j + r < block.inputs ? load_slice(block.x[j + r], d, floats) : _mm512_setzero_si512();
      transpose_16x16(v);
      for (int32_t r = 0; r < 16; ++r) _mm512_store_si512(out + static_cast<size_t>(r) * columns + j, v[r]);
    }
}

// 32 outputs from `first` on as tiles: for each slice of columns the first 16 rows, then the others. Rows past the last
// are 0. This packs those of them that are numbered [begin, end).
struct PackedOutputs {
  int32_t first;
  Bf16Pair* tiles;
};
void pack_outputs(const PairBlock& block, const PackedOutputs& out, int32_t begin, int32_t end) {
  const int32_t floats = round_up(block.dim, 16);
  for (int32_t r = begin; r < end; ++r) {
    Bf16Pair* to = out.tiles + 16 * r;
    const float* row = out.first + r < block.outputs ? block.y[out.first + r] : nullptr;
    for (int32_t d = 0; d < block.dim; d += kSlice, to += 2 * kTile)
      _mm512_store_si512(to, row != nullptr ? load_slice(row, d, floats) : _mm512_setzero_si512());
  }
}

// c (32 x 32) = packed outputs times 32 turned inputs. While the tiles multiply, the next outputs are packed, if there
// are any.
void multiply_products(const PairBlock& block, const Bf16Pair* y, const Bf16Pair* x, int32_t columns,
                       const PackedOutputs* next, float* c) {
  const size_t row_bytes = static_cast<size_t>(columns) * 4;
  const int32_t slices = (block.dim + kSlice - 1) / kSlice;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int32_t k = 0; k < slices; ++k, y += 2 * kTile, x += 16 * static_cast<size_t>(columns)) {
    _tile_loadd(4, y, kTileBytes);
    _tile_loadd(6, x, row_bytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, x + 16, row_bytes);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, y + kTile, kTileBytes);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    if (next != nullptr) pack_outputs(block, *next, 32 * k / slices, 32 * (k + 1) / slices);
  }
  _tile_stored(0, c, row_bytes);
  _tile_stored(1, c + 16, row_bytes);
  _tile_stored(2, c + 16 * static_cast<size_t>(columns), row_bytes);
  _tile_stored(3, c + 16 * static_cast<size_t>(columns) + 16, row_bytes);
}

// A slice of rows by twos: word [k][j] = (row 2k, row 2k + 1) at column d + j, 32 words a row. Rows past `count` are 0.
template <int32_t kVectors>
void pair_rows(const float* const* rows, int32_t count, int32_t count_padded, int32_t d, Bf16Pair* out) {
  int32_t i = 0;
  for (; i + 2 <= count; i += 2, out += kSlice)
    for (int32_t v = 0; v < kVectors; ++v) {
      _mm512_store_si512(out + 16 * v,
                         paired_bf16(_mm512_load_ps(rows[i] + d + 16 * v), _mm512_load_ps(rows[i + 1] + d + 16 * v)));
    }
  for (; i < count_padded; i += 2, out += kSlice)
    for (int32_t v = 0; v < kVectors; ++v) {
      const __m512 first = i < count ? _mm512_load_ps(rows[i] + d + 16 * v) : _mm512_setzero_ps();
      _mm512_store_si512(out + 16 * v, paired_bf16(first, _mm512_setzero_ps()));
    }
}

// strip (32 rows of a slice) = a (32 rows of `depth` values, a_bytes apart) times a slice of `depth` rows in pairs.
template <int32_t kVectors>
void multiply_slice(const Bf16Pair* a, size_t a_bytes, const Bf16Pair* b, int32_t depth, float* strip) {
  const Bf16Pair* lower = a + 4 * a_bytes;  // 16 rows on, in words
  _tile_zero(0);
  _tile_zero(2);
  if (kVectors > 1) _tile_zero(1);
  if (kVectors > 1) _tile_zero(3);
  for (int32_t k = 0; k < depth; k += 32, b += 2 * kTile) {
    _tile_loadd(4, a + k / 2, a_bytes);
    _tile_loadd(6, b, kSliceBytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, lower + k / 2, a_bytes);
    _tile_dpbf16ps(2, 5, 6);
    if (kVectors == 1) continue;
    _tile_loadd(7, b + 16, kSliceBytes);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, strip, kSliceBytes);
  _tile_stored(2, strip + 16 * kSlice, kSliceBytes);
  if (kVectors == 1) return;
  _tile_stored(1, strip + 16, kSliceBytes);
  _tile_stored(3, strip + 16 * kSlice + 16, kSliceBytes);
}

// Steps that lie in a strip and are still to be added to a slice of rows.
struct Pending {
  const float* strip = nullptr;
  float* const* rows = nullptr;
  const float* cuts = nullptr;
  int32_t count = 0, d = 0;
};

template <int32_t kVectors>
void add_strip(const Pending& steps, RowPrefetch& prefetch) {
  const float* strip = steps.strip;
  for (int32_t r = 0; r < steps.count; ++r, strip += kSlice) {
    if (r % 4 == 0) prefetch.ask(1);
    const __m512 cut = _mm512_set1_ps(steps.cuts[r]);
    float* to = steps.rows[r] + steps.d;
    for (int32_t v = 0; v < kVectors; ++v)
      _mm512_store_ps(to + 16 * v, _mm512_fmadd_ps(_mm512_load_ps(strip + 16 * v), cut, _mm512_load_ps(to + 16 * v)));
  }
}

}  // namespace
#pragma GCC pop_options

namespace {

class AmxPairKernel final : public PairKernel {
 public:
  PairBlockResult step(const PairBlock& block) override {
    const int32_t n = round_up(block.inputs, 32), m = round_up(block.outputs, 32);
    configure_amx_tiles();
    reserve(n, m, round_up(block.dim, kSlice));
    multiply(block, n);
    RowPrefetch prefetch(block);
    const PairBlockResult result =
        coefficients_and_cuts(block, n, m, c_.data(), prefetch,
                              {c_straight_.data(), c_turned_.data(), output_cuts_.data(), input_cuts_.data()});
    if (!result.finite) return result;
    add_steps(block, n, m, prefetch);
    prefetch.ask_for_all();
    return result;
  }

  std::string name() const override { return "bf16 AMX"; }

 private:
  void multiply(const PairBlock& block, int32_t n) {
    turn_inputs(block, n, x_turned_.data());
    PackedOutputs now{0, y_packed_.data()};
    pack_outputs(block, now, 0, 32);
    while (now.first < block.outputs) {
      const PackedOutputs next{now.first + 32, y_packed_.data() + (now.tiles == y_packed_.data() ? y_half_ : 0)};
      for (int32_t j = 0; j < n; j += 32)
        multiply_products(block, now.tiles, x_turned_.data() + j, n,
                          j == 0 && next.first < block.outputs ? &next : nullptr,
                          c_.data() + static_cast<size_t>(now.first) * n + j);
      now = next;
    }
  }

  void add_steps(const PairBlock& block, int32_t n, int32_t m, RowPrefetch& prefetch) {
    Pending pending;
    int32_t d = 0;
    for (; d + 16 < block.dim; d += kSlice) add_slice<2>(block, n, m, d, pending, prefetch);
    add_strip<2>(pending, prefetch);
    pending = {};
    if (d < block.dim) add_slice<1>(block, n, m, d, pending, prefetch);
    add_strip<1>(pending, prefetch);
  }

  // Two strips take turns: while the tiles of one are still being stored, the rows of the other are added to.
  template <int32_t kVectors>
  void add_slice(const PairBlock& block, int32_t n, int32_t m, int32_t d, Pending& pending, RowPrefetch& prefetch) {
    pair_rows<kVectors>(block.x, block.inputs, n, d, x_paired_.data());
    pair_rows<kVectors>(block.y, block.outputs, m, d, y_paired_.data());
    const auto add = [&](const Bf16Pair* a, const Bf16Pair* b, int32_t depth, const Pending& next) {
      multiply_slice<kVectors>(a, static_cast<size_t>(depth) * 2, b, depth, strips_.data() + strip_);
      add_strip<kVectors>(pending, prefetch);
      pending = next;
      pending.strip = strips_.data() + strip_;
      strip_ ^= 32 * kSlice;
    };
    for (int32_t i = 0; i < block.outputs; i += 32)
      add(c_straight_.data() + static_cast<size_t>(i) * n / 2, x_paired_.data(), n,
          {nullptr, block.dy + i, output_cuts_.data() + i, std::min(32, block.outputs - i), d});
    for (int32_t j = 0; j < block.inputs; j += 32)
      add(c_turned_.data() + static_cast<size_t>(j) * m / 2, y_paired_.data(), m,
          {nullptr, block.dx + j, input_cuts_.data() + j, std::min(32, block.inputs - j), d});
  }

  void reserve(int32_t n, int32_t m, int32_t depth) {
    x_turned_.reserve(static_cast<size_t>(n) * depth / 2);
    y_half_ = static_cast<size_t>(32) * depth / 2;
    y_packed_.reserve(2 * y_half_);
    x_paired_.reserve(static_cast<size_t>(n) * kSlice / 2);
    y_paired_.reserve(static_cast<size_t>(m) * kSlice / 2);
    strips_.reserve(2 * 32 * kSlice);
    c_.reserve(static_cast<size_t>(m) * n);
    c_straight_.reserve(static_cast<size_t>(m) * n / 2);
    c_turned_.reserve(static_cast<size_t>(m) * n / 2);
    output_cuts_.reserve(static_cast<size_t>(m));
    input_cuts_.reserve(static_cast<size_t>(n));
  }

  AlignedBuffer<Bf16Pair> x_turned_, y_packed_, x_paired_, y_paired_, c_straight_, c_turned_;
  AlignedBuffer<float> c_, output_cuts_, input_cuts_, strips_;
  size_t y_half_ = 0;  // words of 32 packed outputs
  size_t strip_ = 0;   // which of the two is next
};

}  // namespace

std::unique_ptr<PairKernel> make_amx_pair_kernel() {
  return std::make_unique<AmxPairKernel>();
}

}  // namespace streamvec
