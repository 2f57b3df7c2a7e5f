#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "streamvec/kernel/row_ops.cc"
#include "streamvec/kernel/row_ops.h"

#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace streamvec::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;

void add_scaled(const float* HWY_RESTRICT from, float scale, int32_t dim, float* HWY_RESTRICT to) {
  const D d;
  const auto factor = hn::Set(d, scale);
  for (int32_t k = 0; k < dim; k += static_cast<int32_t>(hn::Lanes(d)))
    hn::Store(hn::MulAdd(factor, hn::LoadU(d, from + k), hn::Load(d, to + k)), d, to + k);
}

void subtract_from(const float* HWY_RESTRICT from, int32_t dim, float* HWY_RESTRICT to) {
  const D d;
  for (int32_t k = 0; k < dim; k += static_cast<int32_t>(hn::Lanes(d)))
    hn::Store(hn::Sub(hn::Load(d, from + k), hn::Load(d, to + k)), d, to + k);
}

void take_change(const float* HWY_RESTRICT row, int32_t dim, float* HWY_RESTRICT known, float* HWY_RESTRICT change) {
  const D d;
  for (int32_t k = 0; k < dim; k += static_cast<int32_t>(hn::Lanes(d))) {
    const auto now = hn::Load(d, row + k);
    hn::Store(hn::Sub(now, hn::Load(d, known + k)), d, change + k);
    hn::Store(now, d, known + k);
  }
}

void replace_part(const float* HWY_RESTRICT to, int32_t dim, float* HWY_RESTRICT part, float* HWY_RESTRICT row) {
  const D d;
  for (int32_t k = 0; k < dim; k += static_cast<int32_t>(hn::Lanes(d))) {
    const auto value = hn::Load(d, to + k);
    hn::Store(hn::Add(hn::Load(d, row + k), hn::Sub(value, hn::Load(d, part + k))), d, row + k);
    hn::Store(value, d, part + k);
  }
}

void merge_row(float share, int32_t dim, float* HWY_RESTRICT copy, float* HWY_RESTRICT base, float* HWY_RESTRICT row) {
  const D d;
  const auto factor = hn::Set(d, share);
  for (int32_t k = 0; k < dim; k += static_cast<int32_t>(hn::Lanes(d))) {
    const auto change = hn::Sub(hn::Load(d, copy + k), hn::Load(d, base + k));
    const auto merged = hn::MulAdd(factor, change, hn::Load(d, row + k));
    hn::Store(merged, d, row + k);
    hn::Store(merged, d, copy + k);
    hn::Store(merged, d, base + k);
  }
}

void mean_of_rows(const float* const* rows, int32_t count, int32_t dim, float* HWY_RESTRICT out) {
  const D d;
  const auto share = hn::Set(d, 1.0f / static_cast<float>(count));
  for (int32_t k = 0; k < dim; k += static_cast<int32_t>(hn::Lanes(d))) hn::Store(hn::Load(d, rows[0] + k), d, out + k);
  for (int32_t i = 1; i < count; ++i) {
    const float* HWY_RESTRICT row = rows[i];
    for (int32_t k = 0; k < dim; k += static_cast<int32_t>(hn::Lanes(d)))
      hn::Store(hn::Add(hn::Load(d, row + k), hn::Load(d, out + k)), d, out + k);
  }
  for (int32_t k = 0; k < dim; k += static_cast<int32_t>(hn::Lanes(d)))
    hn::Store(hn::Mul(share, hn::Load(d, out + k)), d, out + k);
}

void add_to_rows(const float* HWY_RESTRICT step, int32_t dim, float* const* rows, int32_t count) {
  const D d;
  for (int32_t i = 0; i < count; ++i) {
    float* HWY_RESTRICT row = rows[i];
    for (int32_t k = 0; k < dim; k += static_cast<int32_t>(hn::Lanes(d)))
      hn::Store(hn::Add(hn::Load(d, step + k), hn::Load(d, row + k)), d, row + k);
  }
}

void sum_scaled_rows(const float* const* rows, const float* scales, int32_t count, int32_t dim,
                     float* HWY_RESTRICT out) {
  const D d;
  const auto lanes = static_cast<int32_t>(hn::Lanes(d));
  // Four vectors at a time stay in registers over all rows.
  int32_t k = 0;
  for (; k + 3 * lanes < dim; k += 4 * lanes) {
    auto a = hn::Zero(d), b = a, c = a, e = a;
    for (int32_t i = 0; i < count; ++i) {
      const float* HWY_RESTRICT row = rows[i] + k;
      const auto factor = hn::Set(d, scales[i]);
      a = hn::MulAdd(factor, hn::Load(d, row), a);
      b = hn::MulAdd(factor, hn::Load(d, row + lanes), b);
      c = hn::MulAdd(factor, hn::Load(d, row + 2 * lanes), c);
      e = hn::MulAdd(factor, hn::Load(d, row + 3 * lanes), e);
    }
    hn::Store(a, d, out + k);
    hn::Store(b, d, out + k + lanes);
    hn::Store(c, d, out + k + 2 * lanes);
    hn::Store(e, d, out + k + 3 * lanes);
  }
  for (; k < dim; k += lanes) {
    auto sum = hn::Zero(d);
    for (int32_t i = 0; i < count; ++i) sum = hn::MulAdd(hn::Set(d, scales[i]), hn::Load(d, rows[i] + k), sum);
    hn::Store(sum, d, out + k);
  }
}

void add_scaled_to_rows(const float* step, const float* scales, int32_t dim, float* const* rows, int32_t count) {
  for (int32_t i = 0; i < count; ++i) add_scaled(step, scales[i], dim, rows[i]);
}

float dual_step(const float* HWY_RESTRICT target, float noise, float gain, int32_t dim, float* HWY_RESTRICT dual,
                float* HWY_RESTRICT change) {
  const D d;
  const auto share = hn::Set(d, 1 / (noise + gain)), ridge = hn::Set(d, noise);
  auto squares = hn::Zero(d);
  for (int32_t k = 0; k < dim; k += static_cast<int32_t>(hn::Lanes(d))) {
    const auto residual = hn::Sub(hn::Load(d, target + k), hn::Load(d, change + k));
    const auto before = hn::Load(d, dual + k);
    const auto step = hn::Mul(share, hn::NegMulAdd(ridge, before, residual));
    squares = hn::MulAdd(residual, residual, squares);
    hn::Store(hn::Add(before, step), d, dual + k);
    hn::Store(step, d, change + k);
  }
  return hn::GetLane(hn::SumOfLanes(d, squares));
}

float mean_square(const float* HWY_RESTRICT row, int32_t dim) {
  const D d;
  auto sum = hn::Zero(d);
  for (int32_t k = 0; k < dim; k += static_cast<int32_t>(hn::Lanes(d))) {
    const auto value = hn::LoadU(d, row + k);
    sum = hn::MulAdd(value, value, sum);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum)) / static_cast<float>(dim);
}

void adam_step(const float* HWY_RESTRICT gradient, float lr, int64_t step, const AdamRates& rates, int32_t dim,
               float* HWY_RESTRICT mean, float* HWY_RESTRICT variance, float* HWY_RESTRICT row) {
  const D d;
  const double correction1 = 1 - std::pow(double{rates.beta1}, static_cast<double>(step));
  const double correction2 = 1 - std::pow(double{rates.beta2}, static_cast<double>(step));
  const auto beta1 = hn::Set(d, rates.beta1), beta2 = hn::Set(d, rates.beta2);
  const auto rest1 = hn::Set(d, 1 - rates.beta1), rest2 = hn::Set(d, 1 - rates.beta2);
  const auto rate = hn::Set(d, static_cast<float>(lr / correction1));
  const auto root_scale = hn::Set(d, static_cast<float>(1 / std::sqrt(correction2)));
  const auto epsilon = hn::Set(d, rates.epsilon);
  // No gradients can move a value further in one step (Cauchy-Schwarz on the two moments). A thread that overwrote
  // another's variance can: the mean would be divided by almost nothing.
  const double ratio = double{rates.beta1} * rates.beta1 / rates.beta2;
  const double step_max = 1.1 * lr * (1 - rates.beta1) / std::sqrt((1 - rates.beta2) * (1 - ratio));
  const auto most = hn::Set(d, static_cast<float>(step_max)), least = hn::Neg(most);
  for (int32_t k = 0; k < dim; k += static_cast<int32_t>(hn::Lanes(d))) {
    const auto g = hn::Load(d, gradient + k);
    const auto m = hn::MulAdd(beta1, hn::Load(d, mean + k), hn::Mul(rest1, g));
    const auto v = hn::MulAdd(beta2, hn::Load(d, variance + k), hn::Mul(rest2, hn::Mul(g, g)));
    hn::Store(m, d, mean + k);
    hn::Store(v, d, variance + k);
    const auto root = hn::MulAdd(hn::Sqrt(v), root_scale, epsilon);
    const auto change = hn::Min(hn::Max(hn::Div(hn::Mul(rate, m), root), least), most);
    hn::Store(hn::Add(hn::Load(d, row + k), change), d, row + k);
  }
}

void nesterov_step(float momentum, int32_t dim, float* HWY_RESTRICT mean, float* HWY_RESTRICT slope) {
  const D d;
  const auto keep = hn::Set(d, momentum), rest = hn::Set(d, 1 - momentum);
  for (int32_t k = 0; k < dim; k += static_cast<int32_t>(hn::Lanes(d))) {
    const auto now = hn::LoadU(d, slope + k), before = hn::LoadU(d, mean + k);
    const auto after = hn::MulAdd(rest, hn::Sub(now, before), before);
    hn::StoreU(after, d, mean + k);
    hn::StoreU(hn::MulAdd(keep, hn::Sub(after, now), now), d, slope + k);
  }
}

}  // namespace streamvec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace streamvec {

HWY_EXPORT(add_scaled);
HWY_EXPORT(subtract_from);
HWY_EXPORT(take_change);
HWY_EXPORT(replace_part);
HWY_EXPORT(merge_row);
HWY_EXPORT(mean_of_rows);
HWY_EXPORT(add_to_rows);
HWY_EXPORT(sum_scaled_rows);
HWY_EXPORT(add_scaled_to_rows);
HWY_EXPORT(dual_step);
HWY_EXPORT(mean_square);
HWY_EXPORT(adam_step);
HWY_EXPORT(nesterov_step);

void add_scaled(const float* from, float scale, int32_t dim, float* to) {
  HWY_DYNAMIC_DISPATCH(add_scaled)(from, scale, dim, to);
}

void subtract_from(const float* from, int32_t dim, float* to) {
  HWY_DYNAMIC_DISPATCH(subtract_from)(from, dim, to);
}

void take_change(const float* row, int32_t dim, float* known, float* change) {
  HWY_DYNAMIC_DISPATCH(take_change)(row, dim, known, change);
}

void replace_part(const float* to, int32_t dim, float* part, float* row) {
  HWY_DYNAMIC_DISPATCH(replace_part)(to, dim, part, row);
}

void merge_row(float share, int32_t dim, float* copy, float* base, float* row) {
  HWY_DYNAMIC_DISPATCH(merge_row)(share, dim, copy, base, row);
}

void mean_of_rows(const float* const* rows, int32_t count, int32_t dim, float* out) {
  HWY_DYNAMIC_DISPATCH(mean_of_rows)(rows, count, dim, out);
}

void add_to_rows(const float* step, int32_t dim, float* const* rows, int32_t count) {
  HWY_DYNAMIC_DISPATCH(add_to_rows)(step, dim, rows, count);
}

void sum_scaled_rows(const float* const* rows, const float* scales, int32_t count, int32_t dim, float* out) {
  HWY_DYNAMIC_DISPATCH(sum_scaled_rows)(rows, scales, count, dim, out);
}

void add_scaled_to_rows(const float* step, const float* scales, int32_t dim, float* const* rows, int32_t count) {
  HWY_DYNAMIC_DISPATCH(add_scaled_to_rows)(step, scales, dim, rows, count);
}

float dual_step(const float* target, float noise, float gain, int32_t dim, float* dual, float* change) {
  return HWY_DYNAMIC_DISPATCH(dual_step)(target, noise, gain, dim, dual, change);
}

float mean_square(const float* row, int32_t dim) {
  return HWY_DYNAMIC_DISPATCH(mean_square)(row, dim);
}

void adam_step(const float* gradient, float lr, int64_t step, const AdamRates& rates, int32_t dim, float* mean,
               float* variance, float* row) {
  HWY_DYNAMIC_DISPATCH(adam_step)(gradient, lr, step, rates, dim, mean, variance, row);
}

void nesterov_step(float momentum, int32_t dim, float* mean, float* slope) {
  HWY_DYNAMIC_DISPATCH(nesterov_step)(momentum, dim, mean, slope);
}

}  // namespace streamvec
#endif
