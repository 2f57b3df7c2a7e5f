// Hashing and comparing words: mostly short, met by the hundred million.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "streamvec/core/random.h"

namespace streamvec {
namespace word_bytes {

inline uint64_t load64(const char* at) {
  uint64_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

inline uint64_t load32(const char* at) {
  uint32_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// 1 to 3 bytes as one number.
inline uint64_t load_few(const char* at, size_t size) {
  const auto byte = [&](size_t i) { return static_cast<uint64_t>(static_cast<unsigned char>(at[i])); };
  return byte(0) << 16 | byte(size >> 1) << 8 | byte(size - 1);
}

// REQUIRES: size > 0.
inline bool equal(const char* a, const char* b, size_t size) {
  if (size >= 8) {
    for (size_t i = 0; i + 8 < size; i += 8)
      if (load64(a + i) != load64(b + i)) return false;
    return load64(a + size - 8) == load64(b + size - 8);
  }
  if (size >= 4) return load32(a) == load32(b) && load32(a + size - 4) == load32(b + size - 4);
  return load_few(a, size) == load_few(b, size);
}

}  // namespace word_bytes

// A 64-bit hash of a word under a secret drawn from the seed: whoever does not know the seed cannot choose words that
// collide, because every factor of every product holds part of the secret. Not for signatures. Little-endian machines
// agree on it.
class WordHash {
 public:
  explicit WordHash(uint64_t seed) : WordHash(mix(seed, 1), mix(seed, 2), mix(seed, 3)) {}
  // With constants instead of a secret, for tables that planted words are no danger to.
  constexpr WordHash(uint64_t start, uint64_t first, uint64_t last) : start_(start), first_(first), last_(last | 1) {}

  // Most words are shorter than 16 bytes and cost two loads, which may overlap, and two multiplications.
  // REQUIRES: the word is not empty.
  uint64_t operator()(std::string_view word) const {
    using word_bytes::load32, word_bytes::load64, word_bytes::load_few;
    const char* at = word.data();
    size_t size = word.size();
    uint64_t state = start_ ^ size, a = 0, b = 0;
    if (size >= 8) {
      for (; size > 16; at += 16, size -= 16) state = fold(load64(at) ^ first_, load64(at + 8) ^ state);
      // Fewer than 8 left: the bytes before belong to the word, at least 16 of them were passed.
      a = load64(size >= 8 ? at : at + size - 16);
      b = load64(at + size - 8);
    } else if (size >= 4) {
      a = load32(at);
      b = load32(at + size - 4);
    } else {
      a = load_few(at, size);
    }
    return fold(fold(a ^ first_, b ^ state), last_);
  }

 private:
  __extension__ using Wide = unsigned __int128;  // -Wpedantic needs the word of leave

  // Both halves of the 128-bit product, folded: each input bit reaches most output bits for one multiplication.
  static uint64_t fold(uint64_t a, uint64_t b) {
    const auto product = static_cast<Wide>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }

  uint64_t start_, first_, last_;
};

}  // namespace streamvec
