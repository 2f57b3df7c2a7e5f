// Gates of recurrent cells and their slopes, for the CPU a file is compiled for at the moment.
// Include inside a HWY_BEFORE_NAMESPACE section's file, after highway.h; guarded per target, as Highway's own are.
#if defined(STREAMVEC_KERNEL_GATES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STREAMVEC_KERNEL_GATES_INL_H_
#undef STREAMVEC_KERNEL_GATES_INL_H_
#else
#define STREAMVEC_KERNEL_GATES_INL_H_
#endif

#include <hwy/highway.h>

#include "streamvec/kernel/logistic-inl.h"

HWY_BEFORE_NAMESPACE();
namespace streamvec::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

HWY_INLINE V sigma_of(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V e = exp_of_minus(d, hn::Abs(x));
  const V high = hn::Div(one, hn::Add(one, e));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(e, high), high);
}

HWY_INLINE V tanh_of(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V e = exp_of_minus(d, hn::Abs(hn::Add(x, x)));
  return hn::CopySign(hn::Div(hn::Sub(one, e), hn::Add(one, e)), x);
}

// x' (1 - y * y) and x' y (1 - y): slopes through tanh and sigma, given their values.
HWY_INLINE V through_tanh(D d, V slope, V y) {
  return hn::Mul(slope, hn::NegMulAdd(y, y, hn::Set(d, 1.0f)));
}
HWY_INLINE V through_sigma(V slope, V y) {
  return hn::Mul(slope, hn::NegMulAdd(y, y, y));
}

HWY_INLINE V load_or_zero(D d, const float* from, int32_t k) {
  return from == nullptr ? hn::Zero(d) : hn::Load(d, from + k);
}

}  // namespace streamvec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
