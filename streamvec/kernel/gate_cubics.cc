#include "streamvec/kernel/gate_cubics.h"

#include <array>
#include <cmath>

namespace streamvec {
namespace {

// The cubic in x that has f's values at the four Chebyshev points of an interval: by divided differences, then
// multiplied out.
template <typename F>
std::array<double, 4> cubic_through(const F& f, double middle, double half_width) {
  std::array<double, 4> x, difference;
  for (int i = 0; i < 4; ++i) {
    x[i] = middle + half_width * std::cos((2 * i + 1) * std::acos(-1.0) / 8);
    difference[i] = f(x[i]);
  }
  for (int order = 1; order < 4; ++order)
    for (int i = 3; i >= order; --i) difference[i] = (difference[i] - difference[i - 1]) / (x[i] - x[i - order]);
  std::array<double, 4> cubic{difference[3], 0, 0, 0};
  for (int i = 2; i >= 0; --i) {  // cubic = cubic * (x - x[i]) + difference[i]
    for (int k = 3; k > 0; --k) cubic[k] = cubic[k - 1] - x[i] * cubic[k];
    cubic[0] = difference[i] - x[i] * cubic[0];
  }
  return cubic;
}

template <typename F>
GateCubics fit(const F& f, double limit) {
  GateCubics made;
  const double width = limit / 31;
  made.per_unit = static_cast<float>(1 / width);
  made.limit = static_cast<float>(limit);
  for (int i = 0; i < 32; ++i) {
    const std::array<double, 4> cubic = cubic_through(f, i * width, width / 2);
    for (int k = 0; k < 4; ++k) made.coefficients[k][i] = static_cast<float>(cubic[k]);
  }
  return made;
}

}  // namespace

const GateCubics& cubics_of_tanh() {
  static const GateCubics cubics = fit([](double x) { return std::tanh(x); }, 6.75);
  return cubics;
}

const GateCubics& cubics_of_half_tanh() {
  static const GateCubics cubics = fit([](double x) { return std::tanh(x / 2) / 2; }, 13.5);
  return cubics;
}

}  // namespace streamvec
