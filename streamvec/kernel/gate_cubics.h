// tanh(x) and tanh(x / 2) / 2 (sigma without its half) for x >= 0 as 32 cubics each: number i is good from
// (i - 1/2) / per_unit to (i + 1/2) / per_unit. Absolute errors are below 4e-6, beyond `limit` as well, where the value
// there stands for all.
#pragma once

#include <cstdint>

namespace streamvec {

struct GateCubics {
  alignas(64) float coefficients[4][32];  // of x^0 .. x^3
  float per_unit, limit;
};
const GateCubics& cubics_of_tanh();
const GateCubics& cubics_of_half_tanh();

}  // namespace streamvec
