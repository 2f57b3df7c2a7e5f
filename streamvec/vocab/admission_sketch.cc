#include "streamvec/vocab/admission_sketch.h"

#include "streamvec/core/forward_decay.h"
#include "streamvec/core/random.h"

namespace streamvec {
namespace {
constexpr int kShiftMin = 64 - 36;  // no sketch is larger than a terabyte
}  // namespace

AdmissionSketch::AdmissionSketch(int64_t bytes, uint64_t seed) {
  const auto fits = [&](int shift) { return static_cast<int64_t>(kDepth * sizeof(float)) << (64 - shift) <= bytes; };
  while (shift_ > kShiftMin && fits(shift_ - 1)) --shift_;
  for (size_t row = 0; row < kDepth; ++row) factors_[row] = mix(seed, row) | 1;
  cells_.resize(kDepth << (64 - shift_));
}

void AdmissionSketch::rescale(int64_t k) {
  for (float& sum : cells_) sum = rescaled(sum, k);
}

}  // namespace streamvec
