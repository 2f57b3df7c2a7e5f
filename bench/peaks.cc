#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/peaks.cc"
#include "bench/peaks.h"

#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <vector>

// Tells the compiler that the value is read and changed here, so that it stays in its register and is neither folded
// with others nor left out.
#if HWY_ARCH_X86
#define STREAMVEC_KEEP(value) asm volatile("" : "+v"(value))
#elif HWY_ARCH_ARM_A64
#define STREAMVEC_KEEP(value) asm volatile("" : "+w"(value))
#endif

HWY_BEFORE_NAMESPACE();
namespace streamvec::bench::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

#if defined(STREAMVEC_KEEP) && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
HWY_INLINE void keep(V& v) {
  STREAMVEC_KEEP(v.raw);
}
#else
HWY_INLINE void keep(V& v) {
  [[maybe_unused]] static volatile float seen;
  seen = hn::GetLane(v);
}
#endif

template <typename... Sums>
HWY_INLINE void add_to_each(V a, V b, Sums&... sums) {
  ((sums = hn::MulAdd(a, sums, b), keep(sums)), ...);
}

// Twelve sums hide the latency of two units with four or five cycles, and fit sixteen registers beside the operands.
// They are named one by one because arrays of vectors may end up in memory. Returns the flops.
double multiply_adds(int64_t rounds) {
  const D d;
  V a = hn::Set(d, 0.999f), b = hn::Set(d, 1e-3f);
  keep(a);
  keep(b);
  V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0, s8 = s0, s9 = s0, s10 = s0,
    s11 = s0;
  for (int64_t i = 0; i < rounds; ++i) add_to_each(a, b, s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11);
  return 12.0 * 2.0 * static_cast<double>(hn::Lanes(d)) * static_cast<double>(rounds);
}

// Returns the bytes read.
double read_in_order(const float* data, int64_t size) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  for (int64_t i = 0; i + 4 * lanes <= size; i += 4 * lanes) {
    s0 = hn::Add(s0, hn::Load(d, data + i));
    s1 = hn::Add(s1, hn::Load(d, data + i + lanes));
    s2 = hn::Add(s2, hn::Load(d, data + i + 2 * lanes));
    s3 = hn::Add(s3, hn::Load(d, data + i + 3 * lanes));
  }
  V sum = hn::Add(hn::Add(s0, s1), hn::Add(s2, s3));
  keep(sum);
  return static_cast<double>(size) * sizeof(float);
}

}  // namespace streamvec::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <hwy/aligned_allocator.h>

#include "streamvec/kernel/bf16_gemm.h"
#if HWY_ARCH_X86
#include <immintrin.h>
#endif

namespace streamvec::bench {
namespace {

HWY_EXPORT(multiply_adds);
HWY_EXPORT(read_in_order);

// The most that `work` (which returns how much it did) does a second, over runs of about 20 ms and 0.4 s in all.
template <typename Work>
double best_rate(Work work) {
  double best = 0;
  for (const double begin = thread_seconds(); thread_seconds() - begin < 0.4;) {
    const double start = thread_seconds();
    double done = 0;
    do done += work();
    while (thread_seconds() - start < 0.02);
    best = std::max(best, done / (thread_seconds() - start));
  }
  return best;
}

#if HWY_ARCH_X86
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
inline void keep(__m512& v) {
  STREAMVEC_KEEP(v);
}

template <typename... Sums>
inline void add_dots_to_each(__m512i a, __m512i b, Sums&... sums) {
  ((sums = _mm512_dpbf16_ps(sums, (__m512bh)a, (__m512bh)b), keep(sums)), ...);
}

double bf16_dot_products(int64_t rounds) {
  __m512i a = _mm512_set1_epi32(0x3f003f00), b = _mm512_set1_epi32(0x3a003a00);
  STREAMVEC_KEEP(a);
  STREAMVEC_KEEP(b);
  __m512 s0 = _mm512_setzero_ps(), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0, s8 = s0, s9 = s0,
         s10 = s0, s11 = s0;
  for (int64_t i = 0; i < rounds; ++i) add_dots_to_each(a, b, s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11);
  return 12.0 * 64.0 * static_cast<double>(rounds);
}
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("amx-tile,amx-bf16")
// All eight tiles are 16 rows of 64 bytes, as the pair kernel has them, so that its configuration of this thread stays
// right. The instructions are volatile by themselves.
double tile_products(int64_t rounds) {
  // Static, because g++ 12 takes loadconfig to read the first 8 bytes only and leaves a local one's others unwritten.
  struct alignas(64) Config {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  };
  static const Config config;
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (int64_t i = 0; i < rounds; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  return 4.0 * 16.0 * 16.0 * 32.0 * 2.0 * static_cast<double>(rounds);
}
#pragma GCC pop_options
#else
double bf16_dot_products(int64_t) {
  return 0;
}
double tile_products(int64_t) {
  return 0;
}
#endif

double read_rate() {
  constexpr int64_t kFloats = int64_t{256} << 18;  // 256 MiB
  const auto data = hwy::AllocateAligned<float>(kFloats);
  std::fill_n(data.get(), kFloats, 1.0f);
  return best_rate([&] { return HWY_DYNAMIC_DISPATCH(read_in_order)(data.get(), kFloats); });
}

}  // namespace

Peaks measure_peaks() {
  constexpr int64_t kRounds = 100'000;
  Peaks peaks;
  peaks.fp32_gflops = 1e-9 * best_rate([] { return HWY_DYNAMIC_DISPATCH(multiply_adds)(kRounds); });
  if (cpu_has_avx512_bf16()) peaks.bf16_gflops = 1e-9 * best_rate([] { return bf16_dot_products(kRounds); });
  if (cpu_has_amx_bf16()) peaks.amx_gflops = 1e-9 * best_rate([] { return tile_products(kRounds); });
  peaks.read_gbs = 1e-9 * read_rate();
  return peaks;
}

}  // namespace streamvec::bench
#endif
