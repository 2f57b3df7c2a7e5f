// tanh(x), tanh(x / 2) and half of that (sigma without its half) for x >= 0 as 32 polynomials each: number i is good
// from (i - 1/2) / per_unit to (i + 1/2) / per_unit. Absolute errors of cubics are below 4e-6, of quadratics below
// 1e-4, beyond `limit` as well, where the value there stands for all.
#pragma once

#include <cstdint>

namespace streamvec {

template <int kDegree>
struct GatePolynomials {
  alignas(64) float coefficients[kDegree + 1][32];  // of x^0 and on
  float per_unit, limit;
};
using GateCubics = GatePolynomials<3>;
using GateQuadratics = GatePolynomials<2>;

const GateCubics& cubics_of_tanh();
const GateCubics& cubics_of_half_tanh();
const GateQuadratics& quadratics_of_tanh_of_half();

}  // namespace streamvec
