#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "streamvec/kernel/bf16_values.cc"
#include "streamvec/kernel/bf16_values.h"

#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace streamvec::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using U = hn::RebindToUnsigned<F>;
using H = hn::Rebind<uint16_t, U>;

hn::Vec<F> widened(hn::Vec<H> halves) {
  return hn::BitCast(F(), hn::ShiftLeft<16>(hn::PromoteTo(U(), halves)));
}

hn::Vec<H> halved(hn::Vec<F> values) {
  const U u;
  const auto bits = hn::BitCast(u, values), exponent = hn::Set(u, 0x7f800000u);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(u, 1));
  const auto rounded = hn::Add(hn::Add(bits, hn::Set(u, 0x7fffu)), odd);
  const auto finite = hn::Ne(hn::And(bits, exponent), exponent);
  const auto upper = hn::ShiftRight<16>(hn::IfThenElse(finite, rounded, bits));
  return hn::DemoteTo(H(), hn::BitCast(hn::RebindToSigned<U>(), upper));
}

// Calls use(first value, of how many): whole vectors in place, and the rest in vectors of their own.
template <typename Use>
void for_each_vector(int64_t count, const Use& use) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(F()));
  int64_t k = 0;
  for (; k + lanes <= count; k += lanes) use(k, lanes);
  if (k < count) use(k, count - k);
}

hn::Vec<F> load_values(const float* from, int64_t count) {
  if (count == static_cast<int64_t>(hn::Lanes(F()))) return hn::LoadU(F(), from);
  HWY_ALIGN float some[HWY_MAX_BYTES / sizeof(float)] = {};
  std::memcpy(some, from, static_cast<size_t>(count) * sizeof(float));
  return hn::Load(F(), some);
}

hn::Vec<H> load_halves(const uint16_t* from, int64_t count) {
  if (count == static_cast<int64_t>(hn::Lanes(F()))) return hn::LoadU(H(), from);
  HWY_ALIGN uint16_t some[HWY_MAX_BYTES / sizeof(float)] = {};
  std::memcpy(some, from, static_cast<size_t>(count) * sizeof(uint16_t));
  return hn::Load(H(), some);
}

void store_halves(hn::Vec<H> halves, int64_t count, uint16_t* to) {
  if (count == static_cast<int64_t>(hn::Lanes(F()))) return hn::StoreU(halves, H(), to);
  HWY_ALIGN uint16_t some[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(halves, H(), some);
  std::memcpy(to, some, static_cast<size_t>(count) * sizeof(uint16_t));
}

void bf16_encode(const float* HWY_RESTRICT values, int64_t count, uint16_t* HWY_RESTRICT halves) {
  for_each_vector(count, [&](int64_t k, int64_t some)
                             HWY_ATTR { store_halves(halved(load_values(values + k, some)), some, halves + k); });
}

void bf16_decode(const uint16_t* HWY_RESTRICT halves, int64_t count, float* HWY_RESTRICT values) {
  for_each_vector(count, [&](int64_t k, int64_t some) HWY_ATTR {
    const auto wide = widened(load_halves(halves + k, some));
    if (some == static_cast<int64_t>(hn::Lanes(F()))) return hn::StoreU(wide, F(), values + k);
    HWY_ALIGN float last[HWY_MAX_BYTES / sizeof(float)];
    hn::Store(wide, F(), last);
    std::memcpy(values + k, last, static_cast<size_t>(some) * sizeof(float));
  });
}

void bf16_add(const float* HWY_RESTRICT values, float divisor, int64_t count, uint16_t* HWY_RESTRICT halves) {
  const auto parts = hn::Set(F(), divisor);
  for_each_vector(count, [&](int64_t k, int64_t some) HWY_ATTR {
    const auto sum = hn::Add(widened(load_halves(halves + k, some)), load_values(values + k, some));
    store_halves(halved(hn::Div(sum, parts)), some, halves + k);
  });
}

}  // namespace streamvec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace streamvec {

HWY_EXPORT(bf16_encode);
HWY_EXPORT(bf16_decode);
HWY_EXPORT(bf16_add);

void bf16_encode(const float* values, int64_t count, uint16_t* halves) {
  HWY_DYNAMIC_DISPATCH(bf16_encode)(values, count, halves);
}

void bf16_decode(const uint16_t* halves, int64_t count, float* values) {
  HWY_DYNAMIC_DISPATCH(bf16_decode)(halves, count, values);
}

void bf16_add(const float* values, float divisor, int64_t count, uint16_t* halves) {
  HWY_DYNAMIC_DISPATCH(bf16_add)(values, divisor, count, halves);
}

}  // namespace streamvec
#endif
