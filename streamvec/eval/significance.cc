#include "streamvec/eval/significance.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "streamvec/core/status.h"

namespace streamvec {
namespace {

constexpr size_t kKnots = 25;
constexpr size_t kWindowMin = 25, kWindowMax = 401, kWindowShare = 5;
constexpr double kBelow = 0.1587, kAbove = 0.8413;  // of a normal distribution: one standard deviation
constexpr double kSpreadMin = 1e-6;
constexpr double kTailQuantile = 0.95;

// The quantile of rising values, straight lines between them.
double quantile(std::span<const double> rising, double share) {
  const double place = share * static_cast<double>(rising.size() - 1);
  const auto low = static_cast<size_t>(place);
  const size_t high = std::min(low + 1, rising.size() - 1);
  return rising[low] + (place - static_cast<double>(low)) * (rising[high] - rising[low]);
}

}  // namespace

SpreadCurve::SpreadCurve(std::span<const double> x, std::span<const double> y) {
  STREAMVEC_CHECK(x.size() == y.size() && !x.empty());
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] != x[b] ? x[a] < x[b] : a < b; });
  const size_t half = std::clamp(x.size() / kWindowShare, kWindowMin, kWindowMax) / 2;
  const size_t knots = std::min(kKnots, x.size());
  std::vector<double> xs, ys;
  for (size_t k = 0; k < knots; ++k) {
    const size_t centre = knots == 1 ? 0 : k * (x.size() - 1) / (knots - 1);
    // Whole windows at the low end: rare words are many and alike, and half a window would say too little of them.
    const size_t begin = centre - std::min(centre, half), end = std::min(x.size(), begin + 2 * half + 1);
    xs.clear(), ys.clear();
    for (size_t i = begin; i < end; ++i) xs.push_back(x[order[i]]), ys.push_back(y[order[i]]);
    std::sort(ys.begin(), ys.end());
    const double knot = quantile(xs, 0.5), middle = quantile(ys, 0.5);
    if (!knots_.empty() && knot <= knots_.back()) continue;
    knots_.push_back(knot);
    middle_.push_back(middle);
    above_.push_back(std::max(kSpreadMin, quantile(ys, kAbove) - middle));
    below_.push_back(std::max(kSpreadMin, middle - quantile(ys, kBelow)));
  }
}

double SpreadCurve::at(double x, const std::vector<double>& values) const {
  const auto next = static_cast<size_t>(std::upper_bound(knots_.begin(), knots_.end(), x) - knots_.begin());
  if (next == 0) return values.front();
  if (next == knots_.size()) return values.back();
  const double share = (x - knots_[next - 1]) / (knots_[next] - knots_[next - 1]);
  return values[next - 1] + share * (values[next] - values[next - 1]);
}

TailProbability::TailProbability(std::vector<double> sample) : sample_(std::move(sample)) {
  STREAMVEC_CHECK(!sample_.empty());
  std::sort(sample_.begin(), sample_.end());
  tail_begin_ = quantile(sample_, kTailQuantile);
  const auto first = std::upper_bound(sample_.begin(), sample_.end(), tail_begin_);
  const auto beyond = static_cast<double>(sample_.end() - first);
  tail_share_ = (beyond + 1) / (static_cast<double>(sample_.size()) + 1);
  double excess = 0;
  for (auto at = first; at != sample_.end(); ++at) excess += *at - tail_begin_;
  // Two standard errors longer than it was found: what is far out must not hang on a tail of a few values.
  mean_excess_ = std::max(kSpreadMin, beyond > 0 ? excess / beyond * (1 + 2 / std::sqrt(beyond)) : 0);
}

double TailProbability::operator()(double value) const {
  if (value > tail_begin_) return tail_share_ * std::exp(-(value - tail_begin_) / mean_excess_);
  const auto greater = sample_.end() - std::lower_bound(sample_.begin(), sample_.end(), value);
  return (static_cast<double>(greater) + 1) / (static_cast<double>(sample_.size()) + 1);
}

double discovery_threshold(std::vector<double> p_values, double rate) {
  std::sort(p_values.begin(), p_values.end());
  const auto count = static_cast<double>(p_values.size());
  for (size_t i = p_values.size(); i > 0; --i)
    if (p_values[i - 1] <= rate * static_cast<double>(i) / count) return p_values[i - 1];
  return -1;
}

}  // namespace streamvec
