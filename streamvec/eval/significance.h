// Which of many measured values are more than chance: what chance makes as a function of how much text stands behind a
// value, tail probabilities, and a bound on false discoveries.
#pragma once

#include <span>
#include <vector>

namespace streamvec {

// How values that vary with x are spread: running quantiles over windows of neighbouring x, at knots, straight lines
// between them and constant beyond. Robust: a sixth of the values may be anything without moving the low side, and a
// half without moving the middle out of the rest.
class SpreadCurve {
 public:
  // `x` and `y` belong together. REQUIRES: equal sizes, at least one value, all finite.
  SpreadCurve(std::span<const double> x, std::span<const double> y);

  double middle(double x) const { return at(x, middle_); }  // the median
  // From the median to the quantile one standard deviation of a normal distribution away. Never below 1e-6.
  double above(double x) const { return at(x, above_); }
  double below(double x) const { return at(x, below_); }

 private:
  double at(double x, const std::vector<double>& values) const;

  std::vector<double> knots_, middle_, above_, below_;
};

// The probability that chance gives a value so great or greater, from a sample of what chance gave: the share of the
// sample that is greater, and beyond its 95% quantile an exponential tail with the sample's own mean excess (and two
// standard errors of it), so that a p-value may be smaller than 1 / sample size without a normal distribution being
// believed in.
class TailProbability {
 public:
  explicit TailProbability(std::vector<double> sample);  // REQUIRES: at least one value, all finite
  double operator()(double value) const;

 private:
  std::vector<double> sample_;  // rising
  double tail_begin_ = 0, tail_share_ = 0, mean_excess_ = 0;
};

// The greatest p for which rejecting all up to it keeps the expected share of false ones among them at `rate`
// (Benjamini, Hochberg 1995); -1 when none can be rejected.
double discovery_threshold(std::vector<double> p_values, double rate);

}  // namespace streamvec
