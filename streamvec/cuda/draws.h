// Counter-based random numbers: the i-th output of splitmix64 (core/random.h) from a seed, in any order. On the card
// and beside it.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define STREAMVEC_ON_CARD __host__ __device__
#else
#define STREAMVEC_ON_CARD
#endif

namespace streamvec::cuda {

STREAMVEC_ON_CARD inline uint64_t draw_at(uint64_t seed, uint64_t i) {
  uint64_t x = seed + (i + 1) * 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// What a chunk of text draws, by purpose: whether its i-th word is kept, how far that word's window reaches, and the
// k-th negative of the block that begins with or after the word. REQUIRES: k < kNegativesMax.
constexpr uint64_t kNegativesMax = 1 << 12;
STREAMVEC_ON_CARD inline uint32_t keep_draw(uint64_t seed, uint64_t i) {
  return static_cast<uint32_t>(draw_at(seed, i) >> 32);
}
STREAMVEC_ON_CARD inline int32_t reach_draw(uint64_t seed, uint64_t i, int32_t window) {
  const uint64_t bits = draw_at(seed, (uint64_t{1} << 32) + i) >> 32;
  return 1 + static_cast<int32_t>((bits * static_cast<uint32_t>(window)) >> 32);
}
STREAMVEC_ON_CARD inline uint64_t negative_draw(uint64_t seed, uint64_t i, uint64_t k) {
  return draw_at(seed, (uint64_t{1} << 48) + i * kNegativesMax + k);
}

}  // namespace streamvec::cuda
