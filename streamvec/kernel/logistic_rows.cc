#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "streamvec/kernel/logistic_rows.cc"
#include "streamvec/kernel/logistic_rows.h"

#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "streamvec/kernel/logistic-inl.h"

HWY_BEFORE_NAMESPACE();
namespace streamvec::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;

float dot(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, int32_t dim) {
  const D d;
  auto sum = hn::Zero(d);
  for (int32_t k = 0; k < dim; k += static_cast<int32_t>(hn::Lanes(d)))
    sum = hn::MulAdd(hn::Load(d, a + k), hn::Load(d, b + k), sum);
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

double climb_negatives(const float* HWY_RESTRICT weights, int32_t count, float* HWY_RESTRICT products) {
  const D d;
  auto loss = hn::Zero(d);
  for (int32_t k = 0; k < count; k += static_cast<int32_t>(hn::Lanes(d))) {
    const auto g = hn::Load(d, products + k), weight = hn::Load(d, weights + k);
    auto sigma = hn::Zero(d);
    const auto rest = logistic(d, g, sigma);
    loss = hn::MulAdd(weight, hn::Add(rest, hn::Max(g, hn::Zero(d))), loss);
    hn::Store(hn::Neg(hn::Mul(weight, sigma)), d, products + k);
  }
  return double{hn::GetLane(hn::SumOfLanes(d, loss))};
}

}  // namespace streamvec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace streamvec {

HWY_EXPORT(dot);
HWY_EXPORT(climb_negatives);

float dot(const float* a, const float* b, int32_t dim) {
  return HWY_DYNAMIC_DISPATCH(dot)(a, b, dim);
}

double climb_negatives(const float* weights, int32_t count, float* products) {
  return HWY_DYNAMIC_DISPATCH(climb_negatives)(weights, count, products);
}

}  // namespace streamvec
#endif
