// How a new word's row begins.
#pragma once

#include <cstdint>
#include <span>

#include "streamvec/core/random.h"

namespace streamvec {

// Uniform in +-0.5 / dim, from a seed of its own: the same wherever the row lies.
inline void draw_first_row(uint64_t seed, uint64_t draw, std::span<float> row) {
  const float scale = 1.0f / static_cast<float>(row.size());
  Random random(mix(seed, draw));
  for (float& value : row) value = (random.uniform() - 0.5f) * scale;
}

}  // namespace streamvec
