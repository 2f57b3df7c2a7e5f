#include "streamvec/kernel/gate_cubics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace streamvec {
namespace {

float value_of(const GateCubics& cubics, float x) {
  const float y = std::min(x, cubics.limit);
  const auto i = static_cast<int>(std::nearbyint(y * cubics.per_unit));
  const auto c = [&](int k) { return cubics.coefficients[k][i]; };
  return ((c(3) * y + c(2)) * y + c(1)) * y + c(0);
}

TEST(GateCubics, AreWithinFourMillionthsOfTheFunctions) {
  for (int step = 0; step < 20'000; ++step) {
    const float x = static_cast<float>(step) * 1e-3f;
    EXPECT_NEAR(value_of(cubics_of_tanh(), x), std::tanh(x), 4e-6) << x;
    EXPECT_NEAR(value_of(cubics_of_half_tanh(), x), std::tanh(x / 2) / 2, 4e-6) << x;
  }
}

}  // namespace
}  // namespace streamvec
