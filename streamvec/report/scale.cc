#include "streamvec/report/scale.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "streamvec/report/markup.h"

namespace streamvec {
namespace {

constexpr int kTicks = 5;
constexpr double kTicksMax = 9;

// The 1, 2 or 5 times a power of ten next above `rough`.
double round_step(double rough) {
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (rough <= factor * power * (1 + 1e-9)) return factor * power;
  return 10 * power;
}

double step_of(double low, double high) {
  return round_step((high - low) / kTicks);
}

// The nearest of 1, 2, 5 times a power of ten that is at most (or, upwards, at least) `value`.
double round_logarithm(double value, bool upwards) {
  const double power = std::pow(10.0, std::floor(std::log10(value)));
  double best = upwards ? 10 * power : power;
  for (const double factor : {2.0, 5.0}) {
    if (!upwards && factor * power <= value * (1 + 1e-9)) best = factor * power;
    if (upwards && factor * power >= value * (1 - 1e-9)) best = std::min(best, factor * power);
  }
  if (upwards && power >= value * (1 - 1e-9)) best = power;
  return best;
}

std::vector<double> ticks_by_factors(double low, double high, std::initializer_list<double> factors, int powers) {
  std::vector<double> ticks;
  const int first = static_cast<int>(std::floor(std::log10(low))), last = static_cast<int>(std::ceil(std::log10(high)));
  for (int power = first; power <= last; ++power) {
    if ((power - first) % powers != 0) continue;
    for (const double factor : factors) {
      const double tick = factor * std::pow(10.0, power);
      if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) ticks.push_back(tick);
    }
  }
  return ticks;
}

}  // namespace

Scale Scale::make(double low, double high, bool logarithmic, double begin, double end) {
  if (!std::isfinite(low) || !std::isfinite(high) || low > high) low = logarithmic ? 1 : 0, high = logarithmic ? 10 : 1;
  Scale scale;
  scale.logarithmic_ = logarithmic;
  scale.begin_ = begin;
  scale.end_ = end;
  if (logarithmic) {
    if (high <= 0) high = 10;
    if (low <= 0) low = high / 1000;
    scale.low_ = round_logarithm(low, false);
    scale.high_ = round_logarithm(high, true);
    if (scale.low_ >= scale.high_) scale.high_ = 10 * scale.low_;
    return scale;
  }
  if (low == high) {
    const double room = low == 0 ? 1 : std::abs(low) / 2;
    high += room;
    if (low != 0) low -= room;
  }
  const double step = step_of(low, high);
  scale.low_ = std::floor(low / step + 1e-9) * step;
  scale.high_ = std::ceil(high / step - 1e-9) * step;
  return scale;
}

double Scale::at(double value) const {
  value = std::clamp(value, low_, high_);
  const double share = logarithmic_ ? std::log(value / low_) / std::log(high_ / low_) : (value - low_) / (high_ - low_);
  return begin_ + share * (end_ - begin_);
}

std::vector<double> Scale::ticks() const {
  if (logarithmic_) {
    const double decades = std::log10(high_ / low_);
    if (decades <= 2.5) return ticks_by_factors(low_, high_, {1, 2, 5}, 1);
    return ticks_by_factors(low_, high_, {1}, std::max(1, static_cast<int>(std::ceil(decades / kTicksMax))));
  }
  std::vector<double> ticks;
  const double step = step_of(low_, high_);
  const auto first = static_cast<int64_t>(std::llround(low_ / step));
  for (int64_t i = first; static_cast<double>(i) * step <= high_ + step * 1e-6; ++i)
    ticks.push_back(static_cast<double>(i) * step);
  return ticks;
}

std::string tick_text(double value) {
  constexpr std::pair<double, const char*> kUnits[] = {{1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
  for (const auto& [size, unit] : kUnits)
    if (std::abs(value) >= size) return number_text(value / size) + unit;
  return number_text(value);
}

}  // namespace streamvec
