#include "streamvec/kernel/amx_tiles.h"

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "streamvec/kernel/bf16_gemm.h"
#include "streamvec/kernel/int8_lstm.h"

namespace streamvec {
namespace {

// Linux keeps the tile registers from a process until it asks (arch_prctl(2)): their state makes every context
// switch dearer.
bool ask_for_tiles() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// Leaf 7 tells AMX_BF16 (edx bit 22), AMX_TILE (bit 24) and AMX_INT8 (bit 25). Leaf 0x1D, which describes the tiles, is
// hidden by some hypervisors and is not asked: palette 1 is the only one there is.
bool cpuid_has_amx(int kind) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> kind & 1) && (d >> 24 & 1);
}

}  // namespace

bool cpu_has_amx_bf16() {
  static const bool has = cpu_has_avx512_bf16() && cpuid_has_amx(22) && ask_for_tiles();
  return has;
}

bool cpu_has_amx_int8() {
  static const bool has = cpu_has_amx_bf16() && cpuid_has_amx(25) && __builtin_cpu_supports("avx512vbmi");
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
#pragma GCC pop_options

}  // namespace streamvec
