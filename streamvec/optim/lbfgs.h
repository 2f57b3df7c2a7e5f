// L-BFGS (Liu, Nocedal 1989) over vectors that somebody else keeps, whole or in parts: it names them, says what is to
// be done with them, and gets sums back, so that it never sees a value of a vector and no vector has to be in one
// place (Sandblaster: Dean et al. 2012). The two loops over what it remembers and a line search, nothing else.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "streamvec/core/status.h"

namespace streamvec {

// Vectors by number. The first five are these, then come pairs of steps and changes of the gradient.
using VectorId = uint8_t;
enum : VectorId { kPoint = 0, kGradient = 1, kDirection = 2, kTrial = 3, kTrialGradient = 4, kHistory = 5 };
constexpr int32_t kLbfgsHistoryMax = 100;

struct VectorOp {
  enum class Kind : uint8_t {
    kCopy = 1,       // b = a
    kScale = 2,      // a *= factor
    kAxpy = 3,       // b += factor * a
    kDot = 4,        // tells a . b
    kDivide = 5,     // a /= scales, value by value: expected curvatures, where they are known
    kDotDivided = 6  // tells a . (b / scales)
  };
  Kind kind = Kind::kDot;
  VectorId a = 0, b = 0;
  double factor = 0;
  friend bool operator==(const VectorOp&, const VectorOp&) = default;
  bool tells() const { return kind == Kind::kDot || kind == Kind::kDotDivided; }
};

// Who keeps the vectors, and knows the function. All are as long as kPoint, and zero when they are first named.
class VectorSpace {
 public:
  virtual ~VectorSpace() = default;
  // Does all, in order; what was told, in order, goes to `told`.
  virtual Status apply(std::span<const VectorOp> ops, std::vector<double>& told) = 0;
  // The function's value at kTrial; its gradient there becomes kTrialGradient.
  virtual Result<double> evaluate() = 0;
};

struct LbfgsOptions {
  int32_t history = 10;         // steps that are remembered, two vectors each; more: fewer iterations, more memory
  int64_t iterations_max = 50;  // steps taken at most
  double first_step = 1;        // length of the first step that is tried; later ones have a natural length
  double gradient_min = 1e-7;   // ends when the gradient is shorter than so much of what it was at first
  double decrease_min = 1e-4;   // of what the slope promises (Armijo)
  double slope_left_max = 0.9;  // of the slope, at the step's end (Wolfe)
  int32_t trials_max = 25;      // of one line search
};

struct LbfgsProgress {
  int64_t iterations = 0;   // steps taken
  int64_t evaluations = 0;  // of the function
  double value = 0;         // at kPoint
  double gradient = 0;      // its length there
};

// One minimisation. Not thread-safe.
class Lbfgs {
 public:
  // REQUIRES: 1 <= history <= kLbfgsHistoryMax; `space` outlives it.
  Lbfgs(VectorSpace& space, const LbfgsOptions& options);

  // Steps from kPoint on until nothing is left to gain, iterations_max is reached, or `after_step` (called after each,
  // when kPoint is the new point) says false. Returns why it ended, in words. An error of the space ends it at once;
  // kPoint is then a point that a step has led to, or half of the way to one.
  Result<std::string> minimise(const std::function<Result<bool>(const LbfgsProgress&)>& after_step);
  const LbfgsProgress& progress() const { return progress_; }

 private:
  VectorId step_of(int64_t i) const { return static_cast<VectorId>(kHistory + 2 * (i % options_.history)); }
  VectorId change_of(int64_t i) const { return static_cast<VectorId>(step_of(i) + 1); }
  Status begin();
  Status find_direction(double& slope);
  // True with a step that is long enough and not too long; kPoint and kGradient do not change.
  Result<bool> search(double slope, double& value);
  Status take_step(double value);
  Status ask(std::initializer_list<VectorOp> ops);

  VectorSpace& space_;
  const LbfgsOptions options_;
  LbfgsProgress progress_;
  std::vector<double> told_;
  double first_gradient_ = 0;
  int64_t first_ = 0, end_ = 0;   // steps remembered, by number
  std::vector<double> products_;  // step . change, by place
  double scale_ = 1;              // of the curvature, from the last step
};

}  // namespace streamvec
