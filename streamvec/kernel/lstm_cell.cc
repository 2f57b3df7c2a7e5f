#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "streamvec/kernel/lstm_cell.cc"
#include "streamvec/kernel/lstm_cell.h"

#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "streamvec/kernel/gates-inl.h"

HWY_BEFORE_NAMESPACE();
namespace streamvec::HWY_NAMESPACE {

// To nearest, ties to even, as the CPU's own conversion does.
HWY_INLINE void store_bf16(V value, uint16_t* to) {
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffu))));
  const hn::Rebind<uint16_t, D> narrow;
  hn::StoreU(hn::TruncateTo(narrow, rounded), narrow, to);
}

// What one node's step reads and writes.
template <bool kFirst>
struct LstmRow {
  LstmRow(const LstmSteps& steps, int32_t node, int32_t unit_begin, int32_t unit_end)
      : hidden(steps.input.cols / kLstmGates),
        units(unit_end - unit_begin),
        input(steps.input.row(steps.characters[static_cast<size_t>(node)])) {
    const int32_t parent = steps.parents[static_cast<size_t>(node)];
    if (!kFirst) recurrent = steps.recurrent.row(parent - steps.first_parent) - unit_begin;
    if (!kFirst) c_before = steps.c_before.row(parent) - unit_begin;
    if (steps.c.rows > 0) c = steps.c.row(node) - unit_begin;
    if (steps.h.rows > 0) h = steps.h.row(node);
    if (steps.gates.rows > 0) gates = steps.gates.row(node);
    if (steps.bf16.rows > 0) bf16 = steps.bf16.row<uint16_t>(node);
  }
  HWY_INLINE V z(D d, int64_t gate, int32_t k) const {
    const V x = hn::Load(d, input + gate * hidden + k);
    return kFirst ? x : hn::Add(hn::Load(d, recurrent + gate * units + k), x);
  }

  const int64_t hidden, units;
  const float *input, *recurrent = nullptr, *c_before = nullptr;
  float *c = nullptr, *h = nullptr, *gates = nullptr;
  uint16_t* bf16 = nullptr;
};

// kVectors of units from k on, stage by stage: by itself each is a chain of some 75 cycles, of which a core has room
// for one or two at a time.
template <bool kFirst, int kVectors>
HWY_INLINE void lstm_forward_units(const Gates& gates, const LstmRow<kFirst>& row, int32_t k) {
  const D d;
  const auto lanes = static_cast<int32_t>(hn::Lanes(d));
  V i[kVectors], f[kVectors], g[kVectors], o[kVectors], c[kVectors], h[kVectors];
  for (int v = 0; v < kVectors; ++v) i[v] = gates.sigma(row.z(d, 0, k + v * lanes));
  for (int v = 0; v < kVectors; ++v) f[v] = gates.sigma(row.z(d, 1, k + v * lanes));
  for (int v = 0; v < kVectors; ++v) g[v] = gates.tanh(row.z(d, 2, k + v * lanes));
  for (int v = 0; v < kVectors; ++v) o[v] = gates.sigma(row.z(d, 3, k + v * lanes));
  for (int v = 0; v < kVectors; ++v) {
    c[v] = hn::Mul(i[v], g[v]);
    if (!kFirst) c[v] = hn::MulAdd(f[v], hn::Load(d, row.c_before + k + v * lanes), c[v]);
  }
  for (int v = 0; v < kVectors; ++v) h[v] = hn::Mul(o[v], gates.tanh(c[v]));
  for (int v = 0; v < kVectors; ++v) {
    const int32_t at = k + v * lanes;
    if (row.c != nullptr) hn::Store(c[v], d, row.c + at);
    if (row.h != nullptr) hn::Store(h[v], d, row.h + at);
    if (row.bf16 != nullptr) store_bf16(h[v], row.bf16 + at);
    if (row.gates == nullptr) continue;
    hn::Store(i[v], d, row.gates + at);
    hn::Store(f[v], d, row.gates + row.hidden + at);
    hn::Store(g[v], d, row.gates + 2 * row.hidden + at);
    hn::Store(o[v], d, row.gates + 3 * row.hidden + at);
  }
}

template <bool kFirst>
void lstm_forward_rows(const LstmSteps& steps, int32_t begin, int32_t end, int32_t unit_begin, int32_t unit_end) {
  const D d;
  const Gates gates(d);
  const auto lanes = static_cast<int32_t>(hn::Lanes(d));
  for (int32_t node = begin; node < end; ++node) {
    const LstmRow<kFirst> row(steps, node, unit_begin, unit_end);
    int32_t k = unit_begin;
    for (; k + 2 * lanes <= unit_end; k += 2 * lanes) lstm_forward_units<kFirst, 2>(gates, row, k);
    if (k < unit_end) lstm_forward_units<kFirst, 1>(gates, row, k);
  }
}

void lstm_forward(const LstmSteps& steps, int32_t begin, int32_t end, int32_t unit_begin, int32_t unit_end) {
  const bool first = steps.recurrent.rows == 0;
  (first ? lstm_forward_rows<true> : lstm_forward_rows<false>)(steps, begin, end, unit_begin, unit_end);
}

void lstm_backward(const LstmSlope& slope, int32_t hidden) {
  const D d;
  const Gates gates(d);
  for (int32_t k = 0; k < hidden; k += static_cast<int32_t>(hn::Lanes(d))) {
    const V i = hn::Load(d, slope.gates + k), f = hn::Load(d, slope.gates + hidden + k);
    const V g = hn::Load(d, slope.gates + 2 * hidden + k), o = hn::Load(d, slope.gates + 3 * hidden + k);
    const V dh = hn::Load(d, slope.dh + k), t = gates.tanh(hn::Load(d, slope.c + k));
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

void lstm_forward(const LstmSteps& steps, int32_t begin, int32_t end, int32_t unit_begin, int32_t unit_end) {
  HWY_DYNAMIC_DISPATCH(lstm_forward)(steps, begin, end, unit_begin, unit_end);
}

void lstm_backward(const LstmSlope& slope, int32_t hidden) {
  HWY_DYNAMIC_DISPATCH(lstm_backward)(slope, hidden);
}

}  // namespace streamvec
#endif
