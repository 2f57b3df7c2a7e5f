#include "streamvec/kernel/gate_polynomials.h"

#include <array>
#include <cmath>

namespace streamvec {
namespace {

// The polynomial in x that has f's values at as many Chebyshev points of an interval as it has coefficients: by divided
// differences, then multiplied out.
template <int kDegree, typename F>
std::array<double, kDegree + 1> polynomial_through(const F& f, double middle, double half_width) {
  constexpr int kPoints = kDegree + 1;
  std::array<double, kPoints> x, difference;
  for (int i = 0; i < kPoints; ++i) {
    x[i] = middle + half_width * std::cos((2 * i + 1) * std::acos(-1.0) / (2 * kPoints));
    difference[i] = f(x[i]);
  }
  for (int order = 1; order < kPoints; ++order)
    for (int i = kDegree; i >= order; --i) difference[i] = (difference[i] - difference[i - 1]) / (x[i] - x[i - order]);
  std::array<double, kPoints> made{difference[kDegree]};
  for (int i = kDegree - 1; i >= 0; --i) {  // made = made * (x - x[i]) + difference[i]
    for (int k = kDegree; k > 0; --k) made[k] = made[k - 1] - x[i] * made[k];
    made[0] = difference[i] - x[i] * made[0];
  }
  return made;
}

template <int kDegree, typename F>
GatePolynomials<kDegree> fit(const F& f, double limit) {
  GatePolynomials<kDegree> made;
  const double width = limit / 31;
  made.per_unit = static_cast<float>(1 / width);
  made.limit = static_cast<float>(limit);
  for (int i = 0; i < 32; ++i) {
    const auto polynomial = polynomial_through<kDegree>(f, i * width, width / 2);
    for (int k = 0; k <= kDegree; ++k) made.coefficients[k][i] = static_cast<float>(polynomial[k]);
  }
  return made;
}

}  // namespace

const GateCubics& cubics_of_tanh() {
  static const GateCubics cubics = fit<3>([](double x) { return std::tanh(x); }, 6.75);
  return cubics;
}

const GateCubics& cubics_of_half_tanh() {
  static const GateCubics cubics = fit<3>([](double x) { return std::tanh(x / 2) / 2; }, 13.5);
  return cubics;
}

const GateQuadratics& quadratics_of_tanh_of_half() {
  static const GateQuadratics quadratics = fit<2>([](double x) { return std::tanh(x / 2); }, 10);
  return quadratics;
}

}  // namespace streamvec
