// Products with AMX tiles: 32 rows by a panel of 32 columns are four sums of 16 x 16, so that each loaded tile serves
// twice.
#include <immintrin.h>

#include <algorithm>

#include "streamvec/kernel/amx_tiles.h"
#include "streamvec/kernel/packed_panels.h"

namespace streamvec {

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,amx-tile,amx-bf16")
namespace {

constexpr int64_t kBBytes = kPanelColumns * 4;

void load_sums(bool add, const float* c, int64_t c_bytes) {
  if (!add) {
    _tile_zero(0);
    _tile_zero(1);
    return;
  }
  _tile_loadd(0, c, c_bytes);
  _tile_loadd(1, c + 16, c_bytes);
}

void multiply_16(const uint32_t* a, int64_t a_stride, const uint32_t* b, int64_t words, bool add, float* c,
                 int64_t c_stride) {
  const int64_t a_bytes = a_stride * 4, c_bytes = c_stride * 4;
  load_sums(add, c, c_bytes);
  for (int64_t k = 0; k < words; k += 16) {
    _tile_loadd(4, a + k, a_bytes);
    _tile_loadd(6, b + k * kPanelColumns, kBBytes);
    _tile_loadd(7, b + k * kPanelColumns + 16, kBBytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
  }
  _tile_stored(0, c, c_bytes);
  _tile_stored(1, c + 16, c_bytes);
}

void multiply_32(const uint32_t* a, int64_t a_stride, const uint32_t* b, int64_t words, bool add, float* c,
                 int64_t c_stride) {
  const int64_t a_bytes = a_stride * 4, c_bytes = c_stride * 4;
  float* lower = c + 16 * c_stride;
  load_sums(add, c, c_bytes);
  if (add) {
    _tile_loadd(2, lower, c_bytes);
    _tile_loadd(3, lower + 16, c_bytes);
  } else {
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t k = 0; k < words; k += 16) {
    _tile_loadd(4, a + k, a_bytes);
    _tile_loadd(6, b + k * kPanelColumns, kBBytes);
    _tile_loadd(7, b + k * kPanelColumns + 16, kBBytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + 16 * a_stride + k, a_bytes);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c, c_bytes);
  _tile_stored(1, c + 16, c_bytes);
  _tile_stored(2, lower, c_bytes);
  _tile_stored(3, lower + 16, c_bytes);
}

// Fewer than 16 rows of c, while `a` has them all.
void multiply_rest(const uint32_t* a, int64_t a_stride, int64_t rows, const uint32_t* b, int64_t words, bool add,
                   float* c, int64_t c_stride) {
  alignas(64) float sums[16 * kPanelColumns];
  multiply_16(a, a_stride, b, words, false, sums, kPanelColumns);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < kPanelColumns; j += 16) {
      const __m512 sum = _mm512_load_ps(sums + r * kPanelColumns + j);
      float* to = c + r * c_stride + j;
      _mm512_storeu_ps(to, add ? _mm512_add_ps(sum, _mm512_loadu_ps(to)) : sum);
    }
}

void multiply(const uint32_t* a, int64_t a_stride, int64_t rows, const uint32_t* b, int64_t words, bool add, float* c,
              int64_t c_stride) {
  configure_amx_tiles();
  int64_t i = 0;
  for (; i + 32 <= rows; i += 32) multiply_32(a + i * a_stride, a_stride, b, words, add, c + i * c_stride, c_stride);
  for (; i + 16 <= rows; i += 16) multiply_16(a + i * a_stride, a_stride, b, words, add, c + i * c_stride, c_stride);
  if (i < rows) multiply_rest(a + i * a_stride, a_stride, rows - i, b, words, add, c + i * c_stride, c_stride);
}

}  // namespace
#pragma GCC pop_options

const PanelGemm& panel_gemm_amx() {
  static const PanelGemm gemm{"amx", true, 16, multiply};
  return gemm;
}

}  // namespace streamvec
