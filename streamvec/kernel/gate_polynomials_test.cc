#include "streamvec/kernel/gate_polynomials.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace streamvec {
namespace {

template <int kDegree>
float value_of(const GatePolynomials<kDegree>& polynomials, float x) {
  const float y = std::min(x, polynomials.limit);
  const auto i = static_cast<int>(std::nearbyint(y * polynomials.per_unit));
  float value = 0;
  for (int k = kDegree; k >= 0; --k) value = value * y + polynomials.coefficients[k][i];
  return value;
}

TEST(GatePolynomials, CubicsAreWithinFourMillionthsOfTheFunctions) {
  for (int step = 0; step < 20'000; ++step) {
    const float x = static_cast<float>(step) * 1e-3f;
    EXPECT_NEAR(value_of(cubics_of_tanh(), x), std::tanh(x), 4e-6) << x;
    EXPECT_NEAR(value_of(cubics_of_half_tanh(), x), std::tanh(x / 2) / 2, 4e-6) << x;
  }
}

TEST(GatePolynomials, QuadraticsAreWithinATenThousandthOfTanh) {
  for (int step = 0; step < 20'000; ++step) {
    const float x = static_cast<float>(step) * 1e-3f;
    EXPECT_NEAR(value_of(quadratics_of_tanh_of_half(), x), std::tanh(x / 2), 1e-4) << x;
  }
}

}  // namespace
}  // namespace streamvec
