#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "streamvec/kernel/lstm_cell.cc"
#include "streamvec/kernel/lstm_cell.h"

#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "streamvec/kernel/gates-inl.h"

HWY_BEFORE_NAMESPACE();
namespace streamvec::HWY_NAMESPACE {

void lstm_forward(const LstmStep& step, int32_t hidden) {
  const D d;
  for (int32_t k = 0; k < hidden; k += static_cast<int32_t>(hn::Lanes(d))) {
    const auto z = [&](int32_t gate) HWY_ATTR {
      const int32_t at = gate * hidden + k;
      return hn::Add(load_or_zero(d, step.recurrent, at), hn::Load(d, step.input + at));
    };
    const V i = sigma_of(d, z(0)), f = sigma_of(d, z(1)), g = tanh_of(d, z(2)), o = sigma_of(d, z(3));
    const V c = hn::MulAdd(f, load_or_zero(d, step.c_before, k), hn::Mul(i, g));
    hn::Store(c, d, step.c + k);
    hn::Store(hn::Mul(o, tanh_of(d, c)), d, step.h + k);
    if (step.gates == nullptr) continue;
    hn::Store(i, d, step.gates + k);
    hn::Store(f, d, step.gates + hidden + k);
    hn::Store(g, d, step.gates + 2 * hidden + k);
    hn::Store(o, d, step.gates + 3 * hidden + k);
  }
}

void lstm_backward(const LstmSlope& slope, int32_t hidden) {
  const D d;
  for (int32_t k = 0; k < hidden; k += static_cast<int32_t>(hn::Lanes(d))) {
    const V i = hn::Load(d, slope.gates + k), f = hn::Load(d, slope.gates + hidden + k);
    const V g = hn::Load(d, slope.gates + 2 * hidden + k), o = hn::Load(d, slope.gates + 3 * hidden + k);
    const V dh = hn::Load(d, slope.dh + k), t = tanh_of(d, hn::Load(d, slope.c + k));
    const V dc = hn::Add(load_or_zero(d, slope.dc, k), through_tanh(d, hn::Mul(dh, o), t));
    const auto give = [&](int32_t gate, V dz) HWY_ATTR {
      const int32_t at = gate * hidden + k;
      hn::Store(hn::Add(hn::Load(d, slope.dz_input + at), dz), d, slope.dz_input + at);
      if (slope.dz_sum == nullptr) return;
      if (!slope.first) dz = hn::Add(dz, hn::Load(d, slope.dz_sum + at));
      hn::Store(dz, d, slope.dz_sum + at);
    };
    give(0, through_sigma(hn::Mul(dc, g), i));
    give(1, through_sigma(hn::Mul(dc, load_or_zero(d, slope.c_before, k)), f));
    give(2, through_tanh(d, hn::Mul(dc, i), g));
    give(3, through_sigma(hn::Mul(dh, t), o));
    if (slope.dc_before == nullptr) continue;
    const V back = hn::Mul(dc, f);
    hn::Store(slope.first ? back : hn::Add(back, hn::Load(d, slope.dc_before + k)), d, slope.dc_before + k);
  }
}

}  // namespace streamvec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace streamvec {

HWY_EXPORT(lstm_forward);
HWY_EXPORT(lstm_backward);

void lstm_forward(const LstmStep& step, int32_t hidden) {
  HWY_DYNAMIC_DISPATCH(lstm_forward)(step, hidden);
}

void lstm_backward(const LstmSlope& slope, int32_t hidden) {
  HWY_DYNAMIC_DISPATCH(lstm_backward)(slope, hidden);
}

}  // namespace streamvec
#endif
