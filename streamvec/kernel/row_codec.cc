#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "streamvec/kernel/row_codec.cc"
#include "streamvec/kernel/row_codec.h"

#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace streamvec::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
// At most 16 lanes, so that a vector's mask is one or two bytes of a row's bits and the padding covers the last one.
using D = hn::CappedTag<float, 16>;

constexpr float kHalfMax = 65504.0f;

// Bits of 16 values, from the least on: two bytes that are moved as a number, not by a call of memcpy.
template <class M>
uint16_t bits_of(const D d, M mask) {
  uint8_t stored[8] = {};
  hn::StoreMaskBits(d, mask, stored);
  return static_cast<uint16_t>(stored[0] | stored[1] << 8);
}

// The masks of 16 values, a vector's at a time. f(k, mask) is called with the place of each vector's first value.
template <class F>
void for_masks(const D d, uint16_t bits, F&& f) {
  const auto lanes = static_cast<int32_t>(hn::Lanes(d));
  for (int32_t k = 0; k < 16; k += lanes) {
    const auto shifted = static_cast<uint16_t>(bits >> k);
    uint8_t stored[8] = {static_cast<uint8_t>(shifted), static_cast<uint8_t>(shifted >> 8)};
    f(k, hn::LoadMaskBits(d, stored));
  }
}

// The values of a row, 16 at a time from next(k) on, into bits and levels.
template <class Next>
OneBitLevels encode_bits(int32_t dim, uint8_t* HWY_RESTRICT bits, Next&& next) {
  const D d;
  const auto lanes = static_cast<int32_t>(hn::Lanes(d));
  const auto zero = hn::Zero(d);
  auto high = zero, low = zero;
  int32_t above = 0;
  for (int32_t at = 0; at < dim; at += 16) {
    uint32_t group = 0;
    for (int32_t k = 0; k < 16; k += lanes) {  // the padding is zero: it adds nothing to either sum
      const auto value = next(at + k);
      const auto mask = hn::Ge(value, zero);
      high = hn::Add(high, hn::IfThenElseZero(mask, value));
      low = hn::Add(low, hn::IfThenZeroElse(mask, value));
      group |= static_cast<uint32_t>(bits_of(d, mask)) << k;
    }
    if (dim - at < 16) group &= (1u << (dim - at)) - 1;
    above += __builtin_popcount(group);
    bits[at / 8] = static_cast<uint8_t>(group);
    if (dim - at > 8) bits[at / 8 + 1] = static_cast<uint8_t>(group >> 8);
  }
  OneBitLevels levels;
  if (above > 0) levels.high = hn::GetLane(hn::SumOfLanes(d, high)) / static_cast<float>(above);
  if (above < dim) levels.low = hn::GetLane(hn::SumOfLanes(d, low)) / static_cast<float>(dim - above);
  return levels;
}

OneBitLevels onebit_encode(const float* HWY_RESTRICT row, int32_t dim, uint8_t* HWY_RESTRICT bits) {
  const D d;
  return encode_bits(dim, bits, [&](int32_t k) HWY_ATTR { return hn::Load(d, row + k); });
}

ChangeSquares onebit_encode_change(const float* HWY_RESTRICT live, const float* HWY_RESTRICT known, int32_t dim,
                                   uint8_t* HWY_RESTRICT bits, OneBitLevels& levels) {
  const D d;
  auto of_change = hn::Zero(d), of_known = hn::Zero(d);
  levels = encode_bits(dim, bits, [&](int32_t k) HWY_ATTR {
    const auto before = hn::Load(d, known + k), by = hn::Sub(hn::Load(d, live + k), before);
    of_change = hn::MulAdd(by, by, of_change);
    of_known = hn::MulAdd(before, before, of_known);
    return by;
  });
  return {hn::GetLane(hn::SumOfLanes(d, of_change)), hn::GetLane(hn::SumOfLanes(d, of_known))};
}

// Calls use(k, values) with what the bits stand for, a vector at a time; zero past dim.
template <class Use>
void decode_bits(const uint8_t* HWY_RESTRICT bits, OneBitLevels levels, int32_t dim, Use&& use) {
  const D d;
  const auto high = hn::Set(d, levels.high), low = hn::Set(d, levels.low);
  int32_t at = 0;
  for (; at + 16 <= dim; at += 16) {
    const auto group = static_cast<uint16_t>(bits[at / 8] | bits[at / 8 + 1] << 8);
    for_masks(d, group, [&](int32_t k, auto mask) HWY_ATTR { use(at + k, hn::IfThenElse(mask, high, low)); });
  }
  if (at == dim) return;
  const auto group = static_cast<uint16_t>(bits[at / 8] | (dim - at > 8 ? bits[at / 8 + 1] << 8 : 0));
  for_masks(d, group, [&](int32_t k, auto mask) HWY_ATTR {
    const auto live = hn::FirstN(d, static_cast<size_t>(std::max(dim - at - k, 0)));
    use(at + k, hn::IfThenElseZero(live, hn::IfThenElse(mask, high, low)));
  });
}

void onebit_decode(const uint8_t* HWY_RESTRICT bits, OneBitLevels levels, int32_t dim, float* HWY_RESTRICT row) {
  const D d;
  decode_bits(bits, levels, dim, [&](int32_t k, auto values) HWY_ATTR { hn::Store(values, d, row + k); });
}

void onebit_add(const uint8_t* HWY_RESTRICT bits, OneBitLevels levels, float scale, int32_t dim,
                float* HWY_RESTRICT to) {
  const D d;
  const auto factor = hn::Set(d, scale);
  decode_bits(bits, levels, dim, [&](int32_t k, auto values) HWY_ATTR {
    hn::Store(hn::MulAdd(factor, values, hn::Load(d, to + k)), d, to + k);
  });
}

constexpr int32_t kFourBitZero = 8;  // stands for no step
constexpr float kStepMin = 1e-30f;   // of less nothing is said
// Stored at once: a load of what two stores have written waits for both.
using Pair = uint64_t __attribute__((vector_size(16)));

// Sixteen values as whole steps, in eight bytes; use(k, whole steps) is called for every vector of them. What is zero
// stays so.
template <class Load, class Use>
HWY_INLINE uint64_t steps_of_group(float steps_per_one, Load&& load, Use&& use) {
  const D d;
  const hn::RebindToSigned<D> whole;
  const hn::Rebind<uint8_t, D> d8;
  const auto lanes = static_cast<int32_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, steps_per_one), most = hn::Set(d, static_cast<float>(kFourBitMost)),
             least = hn::Neg(most);
  HWY_ALIGN uint8_t numbers[16];
  for (int32_t k = 0; k < 16; k += lanes) {
    const auto steps = hn::NearestInt(hn::Min(hn::Max(hn::Mul(factor, load(k)), least), most));
    use(k, steps);
    hn::Store(hn::DemoteTo(d8, hn::Add(steps, hn::Set(whole, kFourBitZero))), d8, numbers + k);
  }
  uint64_t first, second;
  std::memcpy(&first, numbers, 8);
  std::memcpy(&second, numbers + 8, 8);
  return first | second << 4;
}

void fourbit_encode(const float* HWY_RESTRICT row, float steps_per_one, int32_t dim, uint8_t* HWY_RESTRICT nibbles) {
  const D d;
  for (int32_t at = 0; at < dim; at += 16) {
    const uint64_t group = steps_of_group(
        steps_per_one, [&](int32_t k) HWY_ATTR { return hn::Load(d, row + at + k); }, [](int32_t, auto) HWY_ATTR {});
    if (dim - at >= 8)
      std::memcpy(nibbles + at / 2, &group, 8);
    else
      std::memcpy(nibbles + at / 2, &group, static_cast<size_t>(dim - at));
  }
}

// Sixteen values' bytes, or as many as the row has left; no call of memcpy for those few.
HWY_INLINE uint64_t nibble_group(const uint8_t* HWY_RESTRICT nibbles, int32_t left) {
  uint64_t group = 0;
  if (left >= 8)
    std::memcpy(&group, nibbles, 8);
  else
    for (int32_t i = 0; i < left; ++i) group |= uint64_t{nibbles[i]} << (8 * i);
  return group;
}

// Calls use(k, values) with what the nibbles stand for, a vector at a time; zero past dim.
template <class Use>
void decode_nibbles(const uint8_t* HWY_RESTRICT nibbles, float step, int32_t dim, Use&& use) {
  const D d;
  const hn::RebindToSigned<D> whole;
  const hn::Rebind<uint8_t, D> d8;
  const auto lanes = static_cast<int32_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, step);
  constexpr uint64_t kLower = 0x0F0F0F0F0F0F0F0F;
  HWY_ALIGN uint8_t numbers[16];
  for (int32_t at = 0; at < dim; at += 16) {
    const uint64_t group = nibble_group(nibbles + at / 2, dim - at);
    const Pair both = {group & kLower, (group >> 4) & kLower};
    std::memcpy(numbers, &both, 16);
    for (int32_t k = 0; k < 16; k += lanes) {
      const auto number = hn::Sub(hn::PromoteTo(whole, hn::Load(d8, numbers + k)), hn::Set(whole, kFourBitZero));
      const auto values = hn::Mul(factor, hn::ConvertTo(d, number));
      const int32_t left = dim - at - k;
      use(at + k,
          left >= lanes ? values : hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(std::max(left, 0))), values));
    }
  }
}

void fourbit_decode(const uint8_t* HWY_RESTRICT nibbles, float step, int32_t dim, float* HWY_RESTRICT row) {
  const D d;
  decode_nibbles(nibbles, step, dim, [&](int32_t k, auto values) HWY_ATTR { hn::StoreU(values, d, row + k); });
}

void fourbit_add(const uint8_t* HWY_RESTRICT nibbles, float step, float scale, int32_t dim, float* HWY_RESTRICT to) {
  const D d;
  const auto factor = hn::Set(d, scale);
  decode_nibbles(nibbles, step, dim, [&](int32_t k, auto values) HWY_ATTR {
    hn::Store(hn::MulAdd(factor, values, hn::Load(d, to + k)), d, to + k);
  });
}

// left += scale * (values + what came), count of them; returns the largest magnitude of that. decode(use) calls
// use(k, what came), where something did.
template <class Decode>
HWY_INLINE float add_to_left(const float* HWY_RESTRICT values, float scale, int32_t count, float* HWY_RESTRICT left,
                             bool came, Decode&& decode) {
  const D d;
  const auto factor = hn::Set(d, scale);
  // Magnitudes as whole numbers, whose order is theirs, with NaN above infinity: a Max of floats may lose it.
  const hn::RebindToSigned<D> bits;
  auto most = hn::Zero(bits);
  const auto take = [&](int32_t k, auto sum) HWY_ATTR {
    const auto all = hn::MulAdd(factor, sum, hn::LoadU(d, left + k));
    hn::StoreU(all, d, left + k);
    most = hn::Max(most, hn::BitCast(bits, hn::Abs(all)));
  };
  if (came) {
    decode([&](int32_t k, auto sum) HWY_ATTR { take(k, hn::Add(sum, hn::LoadU(d, values + k))); });
  } else {
    for (int32_t k = 0; k < count; k += static_cast<int32_t>(hn::Lanes(d))) take(k, hn::LoadU(d, values + k));
  }
  return hn::GetLane(hn::BitCast(d, hn::MaxOfLanes(bits, most)));
}

// Takes from `left` what so many whole steps say of it.
template <class Steps>
HWY_INLINE void take_said(float step, Steps steps, float* HWY_RESTRICT left) {
  const D d;
  const auto said = hn::Mul(hn::Set(d, step), hn::ConvertTo(d, steps));
  hn::StoreU(hn::Sub(hn::LoadU(d, left), said), d, left);
}

float fourbit_pass_on(const float* HWY_RESTRICT values, const uint8_t* came, float came_step, float scale,
                      int32_t count, float* HWY_RESTRICT left, uint8_t* nibbles) {
  const D d;
  const float most = add_to_left(values, scale, count, left, came != nullptr,
                                 [&](auto&& use) HWY_ATTR { decode_nibbles(came, came_step, count, use); });
  const float step = most / kFourBitMost;
  for (int32_t at = 0; at < count; at += 16) {
    const uint64_t group = steps_of_group(
        step > kStepMin ? 1 / step : 0, [&](int32_t k) HWY_ATTR { return hn::LoadU(d, left + at + k); },
        [&](int32_t k, auto steps) HWY_ATTR { take_said(step, steps, left + at + k); });
    std::memcpy(nibbles + at / 2, &group, 8);
  }
  return step;
}

// Calls use(k, values) with what the numbers stand for, a vector at a time.
template <class Use>
void decode_numbers(const int8_t* numbers, float step, int32_t count, Use&& use) {
  const D d;
  const hn::RebindToSigned<D> whole;
  const hn::Rebind<int8_t, D> d8;
  const auto lanes = static_cast<int32_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, step);
  for (int32_t k = 0; k < count; k += lanes)
    use(k, hn::Mul(factor, hn::ConvertTo(d, hn::PromoteTo(whole, hn::LoadU(d8, numbers + k)))));
}

void eightbit_decode(const int8_t* HWY_RESTRICT numbers, float step, int32_t count, float* HWY_RESTRICT row) {
  const D d;
  decode_numbers(numbers, step, count, [&](int32_t k, auto values) HWY_ATTR { hn::StoreU(values, d, row + k); });
}

float eightbit_pass_on(const float* HWY_RESTRICT values, const int8_t* came, float came_step, float scale,
                       int32_t count, float* HWY_RESTRICT left, int8_t* numbers) {
  const D d;
  const hn::Rebind<int8_t, D> d8;
  const auto lanes = static_cast<int32_t>(hn::Lanes(d));
  const float largest = add_to_left(values, scale, count, left, came != nullptr,
                                    [&](auto&& use) HWY_ATTR { decode_numbers(came, came_step, count, use); });
  const float step = largest / kEightBitMost;
  const auto factor = hn::Set(d, step > kStepMin ? 1 / step : 0), most = hn::Set(d, static_cast<float>(kEightBitMost)),
             least = hn::Neg(most);
  for (int32_t k = 0; k < count; k += lanes) {
    const auto steps = hn::NearestInt(hn::Min(hn::Max(hn::Mul(factor, hn::LoadU(d, left + k)), least), most));
    take_said(step, steps, left + k);
    hn::StoreU(hn::DemoteTo(d8, steps), d8, numbers + k);
  }
  return step;
}

void half_encode(const float* HWY_RESTRICT row, float scale, int32_t dim, uint16_t* HWY_RESTRICT halves) {
  const D d;
  const hn::Rebind<hwy::float16_t, D> d16;
  const auto lanes = static_cast<int32_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, scale), most = hn::Set(d, kHalfMax), least = hn::Set(d, -kHalfMax);
  HWY_ALIGN hwy::float16_t narrow[16];
  for (int32_t k = 0; k < dim; k += lanes) {
    const auto value = hn::Min(hn::Max(hn::Mul(factor, hn::Load(d, row + k)), least), most);
    if (k + lanes <= dim) {
      hn::StoreU(hn::DemoteTo(d16, value), d16, reinterpret_cast<hwy::float16_t*>(halves + k));
      continue;
    }
    hn::Store(hn::DemoteTo(d16, value), d16, narrow);
    std::memcpy(halves + k, narrow, sizeof(uint16_t) * static_cast<size_t>(dim - k));
  }
}

void half_decode(const uint16_t* HWY_RESTRICT halves, float scale, int32_t dim, float* HWY_RESTRICT row) {
  const D d;
  const hn::Rebind<hwy::float16_t, D> d16;
  const auto lanes = static_cast<int32_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, scale);
  HWY_ALIGN hwy::float16_t narrow[16];
  for (int32_t k = 0; k < dim; k += lanes) {
    if (k + lanes <= dim) {
      const auto wide = hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(halves + k));
      hn::Store(hn::Mul(factor, hn::PromoteTo(d, wide)), d, row + k);
      continue;
    }
    std::memset(narrow, 0, sizeof(narrow));
    std::memcpy(narrow, halves + k, sizeof(uint16_t) * static_cast<size_t>(dim - k));
    hn::Store(hn::Mul(factor, hn::PromoteTo(d, hn::Load(d16, narrow))), d, row + k);
  }
}

float largest_magnitude(const float* HWY_RESTRICT row, int32_t dim) {
  const D d;
  auto most = hn::Zero(d);
  for (int32_t k = 0; k < dim; k += static_cast<int32_t>(hn::Lanes(d)))
    most = hn::Max(most, hn::Abs(hn::Load(d, row + k)));
  return hn::GetLane(hn::MaxOfLanes(d, most));
}

TakenChange take_change(const float* live, const float* known, int32_t dim, float* HWY_RESTRICT change) {
  const D d;
  auto of_change = hn::Zero(d), of_known = hn::Zero(d), most = hn::Zero(d);
  for (int32_t k = 0; k < dim; k += static_cast<int32_t>(hn::Lanes(d))) {
    const auto before = hn::Load(d, known + k), by = hn::Sub(hn::Load(d, live + k), before);
    of_change = hn::MulAdd(by, by, of_change);
    of_known = hn::MulAdd(before, before, of_known);
    most = hn::Max(most, hn::Abs(by));
    hn::Store(by, d, change + k);
  }
  return {{hn::GetLane(hn::SumOfLanes(d, of_change)), hn::GetLane(hn::SumOfLanes(d, of_known))},
          hn::GetLane(hn::MaxOfLanes(d, most))};
}

void shift_both(const float* to, const float* from, float share, int32_t dim, float* HWY_RESTRICT a,
                float* HWY_RESTRICT b) {
  const D d;
  const auto of_a = hn::Set(d, share);
  for (int32_t k = 0; k < dim; k += static_cast<int32_t>(hn::Lanes(d))) {
    const auto by = hn::Sub(hn::Load(d, to + k), hn::Load(d, from + k));
    hn::Store(hn::MulAdd(of_a, by, hn::Load(d, a + k)), d, a + k);
    hn::Store(hn::Add(hn::Load(d, b + k), by), d, b + k);
  }
}

void take_answer(const float* HWY_RESTRICT to, const float* HWY_RESTRICT sent, float across, float along,
                 const float* HWY_RESTRICT direction, int32_t dim, float* HWY_RESTRICT live,
                 float* HWY_RESTRICT known) {
  const D d;
  const auto lanes = static_cast<int32_t>(hn::Lanes(d));
  auto part = hn::Zero(d);
  if (along != across)
    for (int32_t k = 0; k < dim; k += lanes)
      part = hn::MulAdd(hn::Load(d, direction + k), hn::Sub(hn::Load(d, to + k), hn::Load(d, sent + k)), part);
  const auto share = hn::Set(d, across);
  const auto more = hn::Mul(hn::Set(d, along - across), hn::SumOfLanes(d, part));
  for (int32_t k = 0; k < dim; k += lanes) {
    const auto told = hn::Load(d, to + k);
    const auto by = hn::MulAdd(share, hn::Sub(told, hn::Load(d, sent + k)), hn::Load(d, live + k));
    hn::Store(hn::MulAdd(more, hn::Load(d, direction + k), by), d, live + k);
    hn::Store(hn::Add(hn::Load(d, known + k), told), d, known + k);
  }
}

RowAlong add_along(const float* HWY_RESTRICT row, const float* HWY_RESTRICT direction, float weight, int32_t dim,
                   float* HWY_RESTRICT next) {
  const D d;
  const auto lanes = static_cast<int32_t>(hn::Lanes(d));
  auto product = hn::Zero(d), square = hn::Zero(d);
  for (int32_t k = 0; k < dim; k += lanes) {
    const auto value = hn::Load(d, row + k);
    product = hn::MulAdd(value, hn::Load(d, direction + k), product);
    square = hn::MulAdd(value, value, square);
  }
  product = hn::SumOfLanes(d, product);
  const auto factor = hn::Mul(hn::Set(d, weight), product);
  for (int32_t k = 0; k < dim; k += lanes)
    hn::Store(hn::MulAdd(factor, hn::Load(d, row + k), hn::Load(d, next + k)), d, next + k);
  return {hn::GetLane(product), hn::GetLane(hn::SumOfLanes(d, square))};
}

void blend(const float* a, float x, const float* b, float y, int32_t dim, float* out) {
  const D d;
  const auto of_a = hn::Set(d, x), of_b = hn::Set(d, y);
  for (int32_t k = 0; k < dim; k += static_cast<int32_t>(hn::Lanes(d)))
    hn::Store(hn::MulAdd(of_a, hn::Load(d, a + k), hn::Mul(of_b, hn::Load(d, b + k))), d, out + k);
}

}  // namespace streamvec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace streamvec {

HWY_EXPORT(onebit_encode);
HWY_EXPORT(onebit_decode);
HWY_EXPORT(fourbit_encode);
HWY_EXPORT(fourbit_decode);
HWY_EXPORT(fourbit_add);
HWY_EXPORT(fourbit_pass_on);
HWY_EXPORT(eightbit_decode);
HWY_EXPORT(eightbit_pass_on);
HWY_EXPORT(half_encode);
HWY_EXPORT(half_decode);
HWY_EXPORT(largest_magnitude);
HWY_EXPORT(take_change);
HWY_EXPORT(shift_both);
HWY_EXPORT(blend);
HWY_EXPORT(onebit_encode_change);
HWY_EXPORT(onebit_add);
HWY_EXPORT(take_answer);
HWY_EXPORT(add_along);

OneBitLevels onebit_encode(const float* row, int32_t dim, uint8_t* bits) {
  return HWY_DYNAMIC_DISPATCH(onebit_encode)(row, dim, bits);
}

void onebit_decode(const uint8_t* bits, OneBitLevels levels, int32_t dim, float* row) {
  HWY_DYNAMIC_DISPATCH(onebit_decode)(bits, levels, dim, row);
}

void onebit_add(const uint8_t* bits, OneBitLevels levels, float scale, int32_t dim, float* to) {
  HWY_DYNAMIC_DISPATCH(onebit_add)(bits, levels, scale, dim, to);
}

void fourbit_encode(const float* row, float steps_per_one, int32_t dim, uint8_t* nibbles) {
  HWY_DYNAMIC_DISPATCH(fourbit_encode)(row, steps_per_one, dim, nibbles);
}

void fourbit_decode(const uint8_t* nibbles, float step, int32_t dim, float* row) {
  HWY_DYNAMIC_DISPATCH(fourbit_decode)(nibbles, step, dim, row);
}

void fourbit_add(const uint8_t* nibbles, float step, float scale, int32_t dim, float* to) {
  HWY_DYNAMIC_DISPATCH(fourbit_add)(nibbles, step, scale, dim, to);
}

float fourbit_pass_on(const float* values, const uint8_t* came, float came_step, float scale, int32_t count,
                      float* left, uint8_t* nibbles) {
  return HWY_DYNAMIC_DISPATCH(fourbit_pass_on)(values, came, came_step, scale, count, left, nibbles);
}

void eightbit_decode(const int8_t* numbers, float step, int32_t count, float* row) {
  HWY_DYNAMIC_DISPATCH(eightbit_decode)(numbers, step, count, row);
}

float eightbit_pass_on(const float* values, const int8_t* came, float came_step, float scale, int32_t count,
                       float* left, int8_t* numbers) {
  return HWY_DYNAMIC_DISPATCH(eightbit_pass_on)(values, came, came_step, scale, count, left, numbers);
}

void half_encode(const float* row, float scale, int32_t dim, uint16_t* halves) {
  HWY_DYNAMIC_DISPATCH(half_encode)(row, scale, dim, halves);
}

void half_decode(const uint16_t* halves, float scale, int32_t dim, float* row) {
  HWY_DYNAMIC_DISPATCH(half_decode)(halves, scale, dim, row);
}

float largest_magnitude(const float* row, int32_t dim) {
  return HWY_DYNAMIC_DISPATCH(largest_magnitude)(row, dim);
}

TakenChange take_change(const float* live, const float* known, int32_t dim, float* change) {
  return HWY_DYNAMIC_DISPATCH(take_change)(live, known, dim, change);
}

void shift_both(const float* to, const float* from, float share, int32_t dim, float* a, float* b) {
  HWY_DYNAMIC_DISPATCH(shift_both)(to, from, share, dim, a, b);
}

ChangeSquares onebit_encode_change(const float* live, const float* known, int32_t dim, uint8_t* bits,
                                   OneBitLevels& levels) {
  return HWY_DYNAMIC_DISPATCH(onebit_encode_change)(live, known, dim, bits, levels);
}

void take_answer(const float* to, const float* sent, float across, float along, const float* direction, int32_t dim,
                 float* live, float* known) {
  HWY_DYNAMIC_DISPATCH(take_answer)(to, sent, across, along, direction, dim, live, known);
}

RowAlong add_along(const float* row, const float* direction, float weight, int32_t dim, float* next) {
  return HWY_DYNAMIC_DISPATCH(add_along)(row, direction, weight, dim, next);
}

void blend(const float* a, float x, const float* b, float y, int32_t dim, float* out) {
  HWY_DYNAMIC_DISPATCH(blend)(a, x, b, y, dim, out);
}

}  // namespace streamvec
#endif
