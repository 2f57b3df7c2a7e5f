// L-BFGS as a textbook has it, on vectors at hand, in double precision: what others are held against.
#pragma once

#include <cmath>
#include <deque>
#include <functional>
#include <vector>

#include "streamvec/optim/lbfgs.h"

namespace streamvec {

using PlainVector = std::vector<double>;
// The value at x; the gradient goes to the second.
using PlainFunction = std::function<double(const PlainVector& x, PlainVector& gradient)>;

inline double plain_dot(const PlainVector& a, const PlainVector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

inline PlainVector plain_sum(const PlainVector& a, double factor, const PlainVector& b) {
  PlainVector sum = a;
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += factor * b[i];
  return sum;
}

// Minimises from `x` on with so many steps; `scales` divide the first guess of the inverse curvature. Returns the
// values after each step.
inline std::vector<double> plain_lbfgs(const PlainFunction& f, const LbfgsOptions& options, const PlainVector& scales,
                                       PlainVector& x) {
  std::deque<PlainVector> steps, changes;
  PlainVector gradient(x.size()), next_gradient(x.size());
  double value = f(x, gradient);
  std::vector<double> values;
  for (int64_t iteration = 0; iteration < options.iterations_max; ++iteration) {
    PlainVector q = gradient;
    std::vector<double> shares(steps.size());
    for (size_t i = steps.size(); i-- > 0;) {
      shares[i] = plain_dot(steps[i], q) / plain_dot(steps[i], changes[i]);
      q = plain_sum(q, -shares[i], changes[i]);
    }
    double scale = 1;
    if (!steps.empty()) {
      double square = 0;
      for (size_t i = 0; i < x.size(); ++i) square += changes.back()[i] * changes.back()[i] / scales[i];
      scale = plain_dot(steps.back(), changes.back()) / square;
    }
    for (size_t i = 0; i < x.size(); ++i) q[i] *= scale / scales[i];
    for (size_t i = 0; i < steps.size(); ++i)
      q = plain_sum(q, shares[i] - plain_dot(changes[i], q) / plain_dot(steps[i], changes[i]), steps[i]);
    for (double& each : q) each = -each;
    if (steps.empty()) q = plain_sum(PlainVector(x.size()), options.first_step / std::sqrt(plain_dot(q, q)), q);
    const double slope = plain_dot(q, gradient);
    double low = 0, high = INFINITY, length = 1, next_value = 0;
    PlainVector next;
    while (true) {
      next = plain_sum(x, length, q);
      next_value = f(next, next_gradient);
      if (!(next_value <= value + options.decrease_min * length * slope))
        high = length;
      else if (plain_dot(q, next_gradient) < options.slope_left_max * slope)
        low = length;
      else
        break;
      length = std::isinf(high) ? 2 * low : (low + high) / 2;
    }
    steps.push_back(plain_sum(next, -1, x));
    changes.push_back(plain_sum(next_gradient, -1, gradient));
    if (static_cast<int32_t>(steps.size()) > options.history) steps.pop_front(), changes.pop_front();
    x = next;
    gradient = next_gradient;
    value = next_value;
    values.push_back(value);
  }
  return values;
}

}  // namespace streamvec
