// Seeded random numbers that are the same on every machine and cheap to place anywhere in a run.
// A training chunk draws from Random(mix(seed, epoch, chunk)): a resumed run needs no saved generator state.
#pragma once

#include <cstdint>

namespace streamvec {

// Finaliser of splitmix64 (Steele, Lea, Flood 2014): every input bit reaches every output bit.
inline uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// One seed out of several numbers; the order matters.
template <typename... Rest>
uint64_t mix(uint64_t first, uint64_t second, Rest... rest) {
  return mix(mix(first) ^ second, static_cast<uint64_t>(rest)...);
}

// xoshiro256++ (Blackman, Vigna 2019), seeded by splitmix64. Not thread-safe; a few cycles per number.
class Random {
 public:
  explicit Random(uint64_t seed) {
    for (uint64_t& word : state_) word = seed = mix(seed);
  }

  uint64_t next() {
    const uint64_t result = rotate(state_[0] + state_[3], 23) + state_[0];
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = rotate(state_[3], 45);
    return result;
  }
  uint32_t next_u32() { return static_cast<uint32_t>(next() >> 32); }
  // 0 <= result < bound, by multiplication (Lemire 2019, without the rejection: bias below bound / 2^32).
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>((uint64_t{next_u32()} * bound) >> 32); }
  // 0 <= result < 1.
  float uniform() { return static_cast<float>(next() >> 40) * 0x1p-24f; }

 private:
  static uint64_t rotate(uint64_t x, int bits) { return (x << bits) | (x >> (64 - bits)); }
  uint64_t state_[4];
};

}  // namespace streamvec
