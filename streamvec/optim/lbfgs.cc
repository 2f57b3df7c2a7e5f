#include "streamvec/optim/lbfgs.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace streamvec {
namespace {

using Kind = VectorOp::Kind;

VectorOp copy(VectorId a, VectorId b) {
  return {Kind::kCopy, a, b, 0};
}
VectorOp scale(VectorId a, double factor) {
  return {Kind::kScale, a, 0, factor};
}
VectorOp axpy(VectorId a, double factor, VectorId b) {
  return {Kind::kAxpy, a, b, factor};
}
VectorOp dot_of(VectorId a, VectorId b) {
  return {Kind::kDot, a, b, 0};
}

}  // namespace

Lbfgs::Lbfgs(VectorSpace& space, const LbfgsOptions& options)
    : space_(space), options_(options), products_(static_cast<size_t>(options.history)) {
  STREAMVEC_CHECK(options.history >= 1 && options.history <= kLbfgsHistoryMax);
}

Status Lbfgs::ask(std::initializer_list<VectorOp> ops) {
  return space_.apply({ops.begin(), ops.size()}, told_);
}

Result<std::string> Lbfgs::minimise(const std::function<Result<bool>(const LbfgsProgress&)>& after_step) {
  STREAMVEC_RETURN_IF_ERROR(begin());
  while (progress_.iterations < options_.iterations_max) {
    if (progress_.gradient <= options_.gradient_min * first_gradient_) return std::string("the gradient is almost 0");
    double slope = 0, value = 0;
    STREAMVEC_RETURN_IF_ERROR(find_direction(slope));
    STREAMVEC_ASSIGN_OR_RETURN(bool found, search(slope, value));
    if (!found && end_ > first_) {  // what is remembered may mislead
      first_ = end_;
      scale_ = 1;
      continue;
    }
    if (!found) return std::string("no step leads further down");
    STREAMVEC_RETURN_IF_ERROR(take_step(value));
    STREAMVEC_ASSIGN_OR_RETURN(const bool go_on, after_step(progress_));
    if (!go_on) return std::string("it was stopped");
  }
  return "all " + std::to_string(options_.iterations_max) + " iterations are done";
}

Status Lbfgs::begin() {
  STREAMVEC_RETURN_IF_ERROR(ask({copy(kPoint, kTrial)}));
  STREAMVEC_ASSIGN_OR_RETURN(progress_.value, space_.evaluate());
  ++progress_.evaluations;
  if (!std::isfinite(progress_.value))
    return error(Code::kOutOfRange, "the loss at the first point is not a number; begin with another model");
  STREAMVEC_RETURN_IF_ERROR(ask({copy(kTrialGradient, kGradient), dot_of(kGradient, kGradient)}));
  progress_.gradient = std::sqrt(told_[0]);
  first_gradient_ = progress_.gradient;
  return {};
}

// The two loops: kDirection = -H kGradient, with H from the steps remembered.
Status Lbfgs::find_direction(double& slope) {
  std::vector<double> shares(products_.size());
  const auto at = [&](int64_t i) { return static_cast<size_t>(i % options_.history); };
  STREAMVEC_RETURN_IF_ERROR(ask({copy(kGradient, kDirection)}));
  for (int64_t i = end_ - 1; i >= first_; --i) {
    STREAMVEC_RETURN_IF_ERROR(
        i == end_ - 1 ? ask({dot_of(step_of(i), kDirection)})
                      : ask({axpy(change_of(i + 1), -shares[at(i + 1)], kDirection), dot_of(step_of(i), kDirection)}));
    shares[at(i)] = told_[0] / products_[at(i)];
  }
  if (first_ < end_) STREAMVEC_RETURN_IF_ERROR(ask({axpy(change_of(first_), -shares[at(first_)], kDirection)}));
  STREAMVEC_RETURN_IF_ERROR(ask({{Kind::kDivide, kDirection, 0, 0}, scale(kDirection, scale_)}));
  for (int64_t i = first_; i < end_; ++i) {
    STREAMVEC_RETURN_IF_ERROR(ask({dot_of(change_of(i), kDirection)}));
    const double share = shares[at(i)] - told_[0] / products_[at(i)];
    STREAMVEC_RETURN_IF_ERROR(ask({axpy(step_of(i), share, kDirection)}));
  }
  STREAMVEC_RETURN_IF_ERROR(
      ask({scale(kDirection, -1), dot_of(kDirection, kGradient), dot_of(kDirection, kDirection)}));
  slope = told_[0];
  if (first_ == end_ && told_[1] > 0) {  // nothing tells how far yet
    const double shorter = options_.first_step / std::sqrt(told_[1]);
    STREAMVEC_RETURN_IF_ERROR(ask({scale(kDirection, shorter)}));
    slope *= shorter;
  }
  return {};
}

// Halving and doubling until both conditions of Wolfe hold (Lewis, Overton 2013): then step . change > 0.
Result<bool> Lbfgs::search(double slope, double& value) {
  if (!(slope < 0)) return false;
  double low = 0, high = std::numeric_limits<double>::infinity(), length = 1;
  for (int32_t trial = 0; trial < options_.trials_max; ++trial) {
    STREAMVEC_RETURN_IF_ERROR(ask({copy(kPoint, kTrial), axpy(kDirection, length, kTrial)}));
    STREAMVEC_ASSIGN_OR_RETURN(value, space_.evaluate());
    ++progress_.evaluations;
    STREAMVEC_RETURN_IF_ERROR(ask({dot_of(kDirection, kTrialGradient)}));
    if (!(value <= progress_.value + options_.decrease_min * length * slope))
      high = length;
    else if (told_[0] < options_.slope_left_max * slope)
      low = length;
    else
      return std::isfinite(value);
    length = std::isfinite(high) ? (low + high) / 2 : 2 * low;
  }
  return false;
}

Status Lbfgs::take_step(double value) {
  const VectorId step = step_of(end_), change = change_of(end_);
  STREAMVEC_RETURN_IF_ERROR(ask({copy(kTrial, step),
                                 axpy(kPoint, -1, step),
                                 copy(kTrialGradient, change),
                                 axpy(kGradient, -1, change),
                                 copy(kTrial, kPoint),
                                 copy(kTrialGradient, kGradient),
                                 dot_of(step, change),
                                 {Kind::kDotDivided, change, change, 0},
                                 dot_of(kGradient, kGradient)}));
  ++progress_.iterations;
  progress_.value = value;
  progress_.gradient = std::sqrt(told_[2]);
  if (told_[0] > 0 && told_[1] > 0) {  // rounding may leave a step that says nothing
    products_[static_cast<size_t>(end_ % options_.history)] = told_[0];
    scale_ = told_[0] / told_[1];
    ++end_;
    first_ = std::max(first_, end_ - options_.history);
  }
  return {};
}

}  // namespace streamvec
