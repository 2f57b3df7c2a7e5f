#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "streamvec/kernel/gru_cell.cc"
#include "streamvec/kernel/gru_cell.h"

#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "streamvec/kernel/gates-inl.h"

HWY_BEFORE_NAMESPACE();
namespace streamvec::HWY_NAMESPACE {

void gru_forward(const GruStep& step, int32_t hidden) {
  const D d;
  const Gates gates(d);
  for (int32_t k = 0; k < hidden; k += static_cast<int32_t>(hn::Lanes(d))) {
    const auto sum = [&](int32_t gate) HWY_ATTR {
      const int32_t at = gate * hidden + k;
      return hn::Add(load_or_zero(d, step.recurrent, at), hn::Load(d, step.input + at));
    };
    const V r = gates.sigma(sum(0)), z = gates.sigma(sum(1));
    const V u = load_or_zero(d, step.recurrent, 2 * hidden + k);
    const V n = gates.tanh(hn::MulAdd(r, u, hn::Load(d, step.input + 2 * hidden + k)));
    const V before = load_or_zero(d, step.h_before, k);
    hn::Store(hn::MulAdd(z, hn::Sub(before, n), n), d, step.h + k);
    if (step.kept == nullptr) continue;
    hn::Store(r, d, step.kept + k);
    hn::Store(z, d, step.kept + hidden + k);
    hn::Store(n, d, step.kept + 2 * hidden + k);
    hn::Store(u, d, step.kept + 3 * hidden + k);
  }
}

void gru_backward(const GruSlope& slope, int32_t hidden) {
  const D d;
  for (int32_t k = 0; k < hidden; k += static_cast<int32_t>(hn::Lanes(d))) {
    const V r = hn::Load(d, slope.kept + k), z = hn::Load(d, slope.kept + hidden + k);
    const V n = hn::Load(d, slope.kept + 2 * hidden + k), u = hn::Load(d, slope.kept + 3 * hidden + k);
    const V dh = hn::Load(d, slope.dh + k), before = load_or_zero(d, slope.h_before, k);
    const auto give = [&](int32_t gate, V input, V recurrent) HWY_ATTR {
      const int32_t at = gate * hidden + k;
      hn::Store(hn::Add(hn::Load(d, slope.dz_input + at), input), d, slope.dz_input + at);
      if (slope.dz_sum == nullptr) return;
      if (!slope.first) recurrent = hn::Add(recurrent, hn::Load(d, slope.dz_sum + at));
      hn::Store(recurrent, d, slope.dz_sum + at);
    };
    const V dn = through_tanh(d, hn::NegMulAdd(dh, z, dh), n);
    const V dr = through_sigma(hn::Mul(dn, u), r), dz = through_sigma(hn::Mul(dh, hn::Sub(before, n)), z);
    give(0, dr, dr);
    give(1, dz, dz);
    give(2, dn, hn::Mul(dn, r));
    if (slope.dh_before == nullptr) continue;
    hn::Store(hn::MulAdd(dh, z, hn::Load(d, slope.dh_before + k)), d, slope.dh_before + k);
  }
}

}  // namespace streamvec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace streamvec {

HWY_EXPORT(gru_forward);
HWY_EXPORT(gru_backward);

void gru_forward(const GruStep& step, int32_t hidden) {
  HWY_DYNAMIC_DISPATCH(gru_forward)(step, hidden);
}

void gru_backward(const GruSlope& slope, int32_t hidden) {
  HWY_DYNAMIC_DISPATCH(gru_backward)(slope, hidden);
}

}  // namespace streamvec
#endif
