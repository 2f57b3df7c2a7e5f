// Gates of recurrent cells and their slopes, for the CPU a file is compiled for at the moment.
// Include inside a HWY_BEFORE_NAMESPACE section's file, after highway.h; guarded per target, as Highway's own are.
#if defined(STREAMVEC_KERNEL_GATES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STREAMVEC_KERNEL_GATES_INL_H_
#undef STREAMVEC_KERNEL_GATES_INL_H_
#else
#define STREAMVEC_KERNEL_GATES_INL_H_
#endif

#include <hwy/highway.h>

#include "streamvec/kernel/gate_polynomials.h"
#include "streamvec/kernel/logistic-inl.h"

HWY_BEFORE_NAMESPACE();
namespace streamvec::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// sigma and tanh with absolute errors below 5e-6. To be made outside of loops, which then find it in registers.
#if HWY_TARGET <= HWY_AVX3
// Half of the time that an exponential and a division take: tables of cubics that two permutations of 16 values look
// up.
class Gates {
 public:
  explicit Gates(D d) : d_(d), sigma_(cubics_of_half_tanh()), tanh_(cubics_of_tanh()) {}
  HWY_INLINE V sigma(V x) const { return hn::Add(sigma_.odd(d_, x), hn::Set(d_, 0.5f)); }
  HWY_INLINE V tanh(V x) const { return tanh_.odd(d_, x); }

 private:
  struct Lookup {
    HWY_INLINE explicit Lookup(const GateCubics& from)
        : per_unit(_mm512_set1_ps(from.per_unit)), limit(_mm512_set1_ps(from.limit)) {
      for (int k = 0; k < 4; ++k) {
        low[k] = _mm512_load_ps(from.coefficients[k]);
        high[k] = _mm512_load_ps(from.coefficients[k] + 16);
      }
    }
    HWY_INLINE V odd(D d, V x) const {
      const V y = hn::Min(hn::Abs(x), V{limit});
      // Added to 2^23 a number leaves its nearest whole one in the lowest bits.
      const __m512i at = _mm512_castps_si512(hn::MulAdd(y, V{per_unit}, hn::Set(d, 8388608.0f)).raw);
      const auto look = [&](int k) HWY_ATTR { return V{_mm512_permutex2var_ps(low[k], at, high[k])}; };
      const V p = hn::MulAdd(hn::MulAdd(hn::MulAdd(look(3), y, look(2)), y, look(1)), y, look(0));
      return hn::CopySign(p, x);
    }
    __m512 low[4], high[4], per_unit, limit;
  };

  D d_;
  Lookup sigma_, tanh_;
};
#else
class Gates {
 public:
  explicit Gates(D d) : d_(d) {}
  HWY_INLINE V sigma(V x) const {
    const V one = hn::Set(d_, 1.0f);
    const V e = exp_of_minus(d_, hn::Abs(x));
    const V high = hn::Div(one, hn::Add(one, e));
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d_)), hn::Mul(e, high), high);
  }
  HWY_INLINE V tanh(V x) const {
    const V one = hn::Set(d_, 1.0f);
    const V e = exp_of_minus(d_, hn::Abs(hn::Add(x, x)));
    return hn::CopySign(hn::Div(hn::Sub(one, e), hn::Add(one, e)), x);
  }

 private:
  D d_;
};
#endif

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
