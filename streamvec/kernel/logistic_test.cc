#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "streamvec/kernel/logistic-inl.h"

namespace streamvec {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The polynomials are the same for every target; the one this file is compiled for shows their errors.
struct Values {
  explicit Values(float g) {
    const hn::ScalableTag<float> d;
    auto s = hn::Zero(d);
    log_part = hn::GetLane(HWY_NAMESPACE::logistic(d, hn::Set(d, g), s));
    sigma = hn::GetLane(s);
    exp_of_minus = hn::GetLane(HWY_NAMESPACE::exp_of_minus(d, hn::Set(d, std::abs(g))));
  }
  double sigma, log_part, exp_of_minus;
};

TEST(Logistic, SigmaAndSoftplusAreExactToAMillionth) {
  for (double g = -110; g <= 110; g += 0.0037) {
    const auto at = static_cast<float>(g);
    const Values values(at);
    ASSERT_NEAR(values.sigma, 1 / (1 + std::exp(-double{at})), 3e-7) << at;
    ASSERT_NEAR(values.log_part, std::log1p(std::exp(-std::abs(double{at}))), 1.1e-6) << at;
  }
}

TEST(Logistic, ExpOfMinusIsExactRelativeToItsSizeAndNeverZero) {
  double worst_near = 0, worst = 0;
  for (double a = 0; a < 87; a += 0.0011) {
    const auto at = static_cast<float>(a);
    const double error = std::abs(Values(at).exp_of_minus / std::exp(-double{at}) - 1);
    worst = std::max(worst, error);
    if (a < 1) worst_near = std::max(worst_near, error);
  }
  EXPECT_LT(worst_near, 3e-7);
  EXPECT_LT(worst, 5e-6);
  for (float a : {87.0f, 88.0f, 100.0f, 1e10f, 3e38f}) EXPECT_GT(Values(a).exp_of_minus, 0) << a;
}

TEST(Logistic, ZeroIsTheMiddle) {
  EXPECT_FLOAT_EQ(static_cast<float>(Values(0).sigma), 0.5f);
  EXPECT_FLOAT_EQ(static_cast<float>(Values(-0.0f).sigma), 0.5f);
  EXPECT_NEAR(Values(0).log_part, std::log(2.0), 1.1e-6);
}

}  // namespace
}  // namespace streamvec
