#include "streamvec/replay/weights.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace streamvec {
namespace {

constexpr float kMeanStep = 1.0f / 256;  // the mean follows about the last 256 priorities

}  // namespace

ReplayWeights::ReplayWeights(const Options& options, size_t places)
    : options_(options),
      decay_(options.half_life),
      drawn_(places),
      plain_(fades() ? places : 0),
      times_(fades() ? places : 0) {}

float ReplayWeights::faded(float weight, double t) const {
  constexpr double kLeast = std::numeric_limits<float>::min(), kMost = 0x1p96;  // the sum of all stays finite
  return static_cast<float>(std::clamp(weight * decay_.weight(t), kLeast, kMost));
}

void ReplayWeights::set(size_t place, float weight) {
  if (!fades()) return drawn_.set(place, weight);
  plain_.set(place, weight);
  drawn_.set(place, weight == 0 ? 0 : faded(weight, times_[place]));
}

void ReplayWeights::advance(double t) {
  if (fades() && decay_.advance(t) != 0) refresh();
}

void ReplayWeights::add(size_t place, double t) {
  restore(place, t, options_.prioritised && mean_ > 0 ? mean_ : 1.0f);
}

void ReplayWeights::restore(size_t place, double t, float weight) {
  if (fades()) times_[place] = t;
  set(place, options_.prioritised ? weight : 1.0f);
  ++held_;
}

void ReplayWeights::remove(size_t place) {
  set(place, 0);
  --held_;
}

// From the weights and times, not by scaling: the same bits as after a restart.
void ReplayWeights::refresh() {
  std::vector<float> weights(drawn_.size());
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = plain_.get(i) == 0 ? 0 : faded(plain_.get(i), times_[i]);
  drawn_.assign(weights);
}

// Before the first priority nobody knows what scale they have: all weights were 1.
void ReplayWeights::adopt_scale(float first) {
  mean_ = first;
  std::vector<float> weights(drawn_.size());
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = get(i) == 0 ? 0 : first;
  if (!fades()) return drawn_.assign(weights);
  plain_.assign(weights);
  refresh();
}

bool ReplayWeights::update(size_t place, float priority) {
  if (!std::isfinite(priority) || priority < 0) return false;
  if (!options_.prioritised) return true;
  // Within what sums and quotients of weights can bear.
  const float weight = std::clamp(std::pow(priority, static_cast<float>(options_.alpha)), 0x1p-60f, 0x1p60f);
  if (mean_ == 0) adopt_scale(weight);
  mean_ += (std::clamp(weight, mean_ / kSpreadMax, mean_ * kSpreadMax) - mean_) * kMeanStep;
  set(place, std::clamp(weight, mean_ / kSpreadMax, mean_ * kSpreadMax));
  return true;
}

void ReplayWeights::draw(std::span<double> numbers, std::span<size_t> places) const {
  for (double& number : numbers) number *= drawn_.total();
  drawn_.find(numbers, places);
}

float ReplayWeights::importance(size_t place) const {
  if (!options_.prioritised || options_.beta == 0) return 1;
  return std::pow(std::min(1.0f, reference() / get(place)), static_cast<float>(options_.beta));
}

// Taken in turn, a chunk is as likely as any: like one whose weight is the mean of all.
float ReplayWeights::importance_in_order() const {
  if (!options_.prioritised || options_.beta == 0) return 1;
  const double mean = plain().total() / static_cast<double>(held_);
  return std::pow(std::min(1.0f, static_cast<float>(reference() / mean)), static_cast<float>(options_.beta));
}

double ReplayWeights::log2_sum() const {
  return std::log2(drawn_.total()) + (fades() ? static_cast<double>(decay_.landmark()) : 0);
}

void ReplayWeights::restore(const State& state) {
  mean_ = state.mean;
  if (state.half_life == decay_.half_life()) decay_.set_landmark(state.landmark);
}

}  // namespace streamvec
