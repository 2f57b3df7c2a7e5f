// sigma and softplus for vectors of floats, for inclusion once per Highway target (see pair_block_simd.cc).
// Both come out of one e = exp(-|g|), and 1 + e lies in (1, 2], so that the logarithm needs no exponent.
#if defined(STREAMVEC_KERNEL_LOGISTIC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STREAMVEC_KERNEL_LOGISTIC_INL_H_
#undef STREAMVEC_KERNEL_LOGISTIC_INL_H_
#else
#define STREAMVEC_KERNEL_LOGISTIC_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace streamvec::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// exp(-a) for a >= 0, relative error below 3e-7 up to a = 1, 5e-6 beyond; 0 is never reached (a is cut at 87).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_of_minus(D d, V a) {
  const hn::RebindToSigned<D> di;
  const V t = hn::Mul(hn::Min(a, hn::Set(d, 87.0f)), hn::Set(d, -1.44269504f));
  const V whole = hn::Round(t);
  const V f = hn::Sub(t, whole);
  // 2^f on [-0.5, 0.5]: Chebyshev fit of degree 5.
  V p = hn::Set(d, 0.00134004f);
  p = hn::MulAdd(p, f, hn::Set(d, 0.00967604f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.05550327f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.24022107f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.69314721f));
  p = hn::MulAdd(p, f, hn::Set(d, 1.00000008f));
  const auto power = hn::ShiftLeft<23>(hn::ConvertTo(di, whole));
  return hn::BitCast(d, hn::Add(hn::BitCast(di, p), power));
}

// log(1 + e) for e in [0, 1], absolute error below 1.1e-6: e times a Chebyshev fit of degree 6.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log_of_one_plus(D d, V e) {
  V q = hn::Set(d, 0.01420283f);
  q = hn::MulAdd(q, e, hn::Set(d, -0.06658805f));
  q = hn::MulAdd(q, e, hn::Set(d, 0.14943458f));
  q = hn::MulAdd(q, e, hn::Set(d, -0.23514864f));
  q = hn::MulAdd(q, e, hn::Set(d, 0.33112052f));
  q = hn::MulAdd(q, e, hn::Set(d, -0.49987192f));
  q = hn::MulAdd(q, e, hn::Set(d, 0.99999876f));
  return hn::Mul(q, e);
}

// The logarithm of finite values that are at least 1.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log_of(D d, V value) {
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(di, value);
  const V power = hn::ConvertTo(d, hn::Sub(hn::ShiftRight<23>(bits), hn::Set(di, 127)));
  const auto mantissa = hn::Or(hn::And(bits, hn::Set(di, 0x7fffff)), hn::Set(di, 0x3f800000));
  return hn::MulAdd(power, hn::Set(d, 0.69314718f),
                    log_of_one_plus(d, hn::Sub(hn::BitCast(d, mantissa), hn::Set(d, 1.0f))));
}

// Returns sigma(g) and sets e to exp(-|g|).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigma_of(D d, V g, V& e) {
  const V one = hn::Set(d, 1.0f);
  e = exp_of_minus(d, hn::Abs(g));
  const V high = hn::Div(one, hn::Add(one, e));
  return hn::IfThenElse(hn::Lt(g, hn::Zero(d)), hn::Mul(e, high), high);
}

// Sets sigma to sigma(g) and returns log(1 + exp(-|g|)), absolute error below 1.1e-6.
// softplus(z) is that plus max(z, 0), whichever sign z = +-g has.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V logistic(D d, V g, V& sigma) {
  V e;
  sigma = sigma_of(d, g, e);
  return log_of_one_plus(d, e);
}

}  // namespace streamvec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
