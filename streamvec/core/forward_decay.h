// Counts that fade without being swept: forward decay (Cormode, Shkapenyuk, Srivastava, Xu 2009).
// Instead of making old counts smaller, each new occurrence weighs more, 2^(t / half_life); only ratios of weights mean
// anything. What a sum of weights is worth at a later time t is the sum divided by the weight of an occurrence at t.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "streamvec/core/status.h"

namespace streamvec {

// Weights are kept relative to a landmark, a whole number of half-lives, so that they stay small. When an occurrence
// would weigh more than 2^kExponentMax the landmark moves on, and the owner multiplies all sums it keeps by the power
// of two that advance() names: exact, and once in kExponentMax half-lives. Sums of 2^60 occurrences fit a float then.
// With an infinite half-life every occurrence weighs exactly 1 for ever: plain counts.
// `t` is the caller's: tokens, seconds, anything that grows; the half-life has the same unit. Late times are fine.
class ForwardDecay {
 public:
  static constexpr int kExponentMax = 64;
  static constexpr double kHalfLivesMax = 0x1p52;  // a time further from 0 counts as that far
  static constexpr double kForever = std::numeric_limits<double>::infinity();

  // REQUIRES: half_life > 0.
  explicit ForwardDecay(double half_life = kForever) : half_life_(half_life) { STREAMVEC_CHECK(half_life > 0); }

  double half_life() const { return half_life_; }
  // What an occurrence at t weighs. REQUIRES: t is finite, and no later than the latest advance().
  double weight(double t) const { return std::exp2(exponent(t)); }

  // Moves the landmark to t, forwards or back. REQUIRES: no sum is kept yet.
  void start(double t) { landmark_ += static_cast<int64_t>(std::floor(exponent(t))); }
  // To be called before weights at t are used. Returns k: every sum kept so far must be multiplied by 2^-k. Mostly 0.
  int64_t advance(double t) {
    const double passed = exponent(t);
    if (!(passed > kExponentMax)) return 0;
    const auto moved = static_cast<int64_t>(std::floor(passed));
    landmark_ += moved;
    return moved;
  }

  int64_t landmark() const { return landmark_; }  // in half-lives; with it a saved state goes on
  void set_landmark(int64_t landmark) { landmark_ = landmark; }

 private:
  double exponent(double t) const {
    return std::clamp(t / half_life_, -kHalfLivesMax, kHalfLivesMax) - static_cast<double>(landmark_);
  }

  double half_life_;
  int64_t landmark_ = 0;
};

// sum * 2^-k, 0 where that is too small for a normal number.
template <typename T>
T rescaled(T sum, int64_t k) {
  const T scaled = std::ldexp(sum, -static_cast<int>(std::min<int64_t>(k, 1 << 20)));
  return scaled < std::numeric_limits<T>::min() ? T{0} : scaled;
}

}  // namespace streamvec
