// AMX tiles: one instruction multiplies a 16 x 32 by a 32 x 16 tile of bf16 and adds into 16 x 16 fp32 sums.
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "streamvec/kernel/amx_tiles.h"
#include "streamvec/kernel/bf16_gemm.h"
#include "streamvec/kernel/scratch.h"

namespace streamvec {
namespace {

// Linux keeps the tile registers from a process until it asks (arch_prctl(2)): their state makes every context
// switch dearer.
bool ask_for_tiles() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// Leaf 7 tells AMX_BF16 (edx bit 22) and AMX_TILE (bit 24). Leaf 0x1D, which describes the tiles, is hidden by some
// hypervisors and is not asked: palette 1 is the only one there is.
bool cpuid_has_amx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 22 & 1) && (d >> 24 & 1);
}

}  // namespace

bool cpu_has_amx_bf16() {
  static const bool has = cpu_has_avx512_bf16() && cpuid_has_amx() && ask_for_tiles();
  return has;
}

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,amx-tile,amx-bf16")
namespace {

// All eight tiles are 16 rows of 64 bytes, so one configuration serves every product. It belongs to the thread.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

}  // namespace

void configure_amx_tiles() {
  thread_local bool configured = false;
  if (configured) return;
  // Static, because g++ 12 takes loadconfig to read the first 8 bytes only and leaves a local one's others unwritten.
  static const TileConfig config;
  _tile_loadconfig(&config);
  configured = true;
}

namespace {

// Four sums at once, so that each loaded operand serves twice: c (32 x 32) = a (32 x depth) b (depth x 32).
void multiply_32x32(const Bf16Pair* a, const Bf16Pair* b, int32_t columns, int32_t pairs, float* c) {
  const size_t a_bytes = pairs * sizeof(Bf16Pair), b_bytes = columns * sizeof(Bf16Pair);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int32_t k = 0; k < pairs; k += 16) {
    _tile_loadd(4, a + k, a_bytes);
    _tile_loadd(6, b + static_cast<size_t>(k) * columns, b_bytes);
    _tile_loadd(7, b + static_cast<size_t>(k) * columns + 16, b_bytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + 16 * static_cast<size_t>(pairs) + k, a_bytes);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c, b_bytes);
  _tile_stored(1, c + 16, b_bytes);
  _tile_stored(2, c + 16 * static_cast<size_t>(columns), b_bytes);
  _tile_stored(3, c + 16 * static_cast<size_t>(columns) + 16, b_bytes);
}

void multiply_16x16(const Bf16Pair* a, const Bf16Pair* b, int32_t columns, int32_t pairs, float* c) {
  const size_t a_bytes = pairs * sizeof(Bf16Pair), b_bytes = columns * sizeof(Bf16Pair);
  _tile_zero(0);
  for (int32_t k = 0; k < pairs; k += 16) {
    _tile_loadd(4, a + k, a_bytes);
    _tile_loadd(6, b + static_cast<size_t>(k) * columns, b_bytes);
    _tile_dpbf16ps(0, 4, 6);
  }
  _tile_stored(0, c, b_bytes);
}

void products(const PairBlock& block, const Bf16Pair* a, const Bf16Pair* b, int32_t columns, int32_t depth, float* c) {
  configure_amx_tiles();
  const int32_t rows = round_up(block.outputs, 16);
  const int32_t pairs = depth / 2;
  for (int32_t i = 0; i < rows; i += 32)
    for (int32_t j = 0; j < columns; j += 32) {
      const Bf16Pair* a_tile = a + static_cast<size_t>(i) * pairs;
      float* c_tile = c + static_cast<size_t>(i) * columns + j;
      if (i + 32 <= rows && j + 32 <= columns) {
        multiply_32x32(a_tile, b + j, columns, pairs, c_tile);
        continue;
      }
      for (int32_t r = i; r < std::min(i + 32, rows); r += 16)
        for (int32_t s = j; s < std::min(j + 32, columns); s += 16)
          multiply_16x16(a + static_cast<size_t>(r) * pairs, b + s, columns, pairs,
                         c + static_cast<size_t>(r) * columns + s);
    }
}

// Sums for 16 rows, all columns, into `strip` (16 rows of `columns` floats).
void multiply_strip(const Bf16Pair* a, const Bf16Pair* b, int32_t dim, int32_t columns, int32_t pairs, float* strip) {
  const size_t a_bytes = pairs * sizeof(Bf16Pair), b_bytes = columns * sizeof(Bf16Pair);
  for (int32_t j = 0; j < dim; j += 64) {
    // Four tiles of 16 columns; past the last full one b's own padding (to 32 columns) is multiplied along.
    const bool wide = dim - j > 32;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int32_t k = 0; k < pairs; k += 16) {
      const Bf16Pair* from = b + static_cast<size_t>(k) * columns + j;
      _tile_loadd(4, a + k, a_bytes);
      _tile_loadd(5, from, b_bytes);
      _tile_dpbf16ps(0, 4, 5);
      _tile_loadd(6, from + 16, b_bytes);
      _tile_dpbf16ps(1, 4, 6);
      if (!wide) continue;
      _tile_loadd(7, from + 32, b_bytes);
      _tile_dpbf16ps(2, 4, 7);
      _tile_loadd(5, from + 48, b_bytes);
      _tile_dpbf16ps(3, 4, 5);
    }
    _tile_stored(0, strip + j, b_bytes);
    _tile_stored(1, strip + j + 16, b_bytes);
    if (!wide) continue;
    _tile_stored(2, strip + j + 32, b_bytes);
    _tile_stored(3, strip + j + 48, b_bytes);
  }
}

void add_strip(const float* strip, int32_t rows, int32_t dim, int32_t columns, const float* cut, RowPrefetch& prefetch,
               float* const* out) {
  for (int32_t r = 0; r < rows; ++r, strip += columns) {
    prefetch.ask(2);
    const __m512 factor = _mm512_set1_ps(cut[r]);
    for (int32_t j = 0; j < dim; j += 16)
      _mm512_store_ps(out[r] + j, _mm512_fmadd_ps(_mm512_load_ps(strip + j), factor, _mm512_load_ps(out[r] + j)));
  }
}

// Two strips take turns: while the tiles of one are still being stored, the rows of the other are added to.
void multiply_add(const Bf16Pair* a, const Bf16Pair* b, int32_t rows, int32_t dim, int32_t columns, int32_t depth,
                  const RangePair*, const float* cut, RowPrefetch& prefetch, float* const* out) {
  configure_amx_tiles();
  thread_local AlignedBuffer<float> strips;
  const size_t strip_size = 16 * static_cast<size_t>(round_up(columns, 64));
  float* strip = strips.reserve(2 * strip_size);
  const int32_t pairs = depth / 2;
  for (int32_t i = 0; i < rows + 16; i += 16) {
    if (i < rows)
      multiply_strip(a + static_cast<size_t>(i) * pairs, b, dim, columns, pairs, strip + (i / 16 % 2) * strip_size);
    if (i >= 16)
      add_strip(strip + (i / 16 + 1) % 2 * strip_size, std::min(16, rows - i + 16), dim, columns, cut + i - 16,
                prefetch, out + i - 16);
  }
}

}  // namespace
#pragma GCC pop_options

const Bf16Gemm& bf16_gemm_amx() {
  static const Bf16Gemm gemm{"bf16 AMX", products, multiply_add};
  return gemm;
}

}  // namespace streamvec
