#include "streamvec/cluster/staleness_finder.h"

#include <algorithm>
#include <cmath>

namespace streamvec {
namespace {

std::string words_of(int64_t staleness) {
  if (staleness <= StalenessFinder::kInStep) return "in step (bsp)";
  if (staleness == StalenessFinder::kFreely) return "freely (async)";
  return "up to " + std::to_string(staleness) + " pushes apart (ssp)";
}

}  // namespace

void StalenessFinder::pushed(double now_s, double held_s, std::span<const WorkerClock> clocks) {
  held_s_ += held_s;
  if (++pushes_ - looked_at_ >= options_.pushes || looked_s_ < 0) look(now_s, clocks);
}

void StalenessFinder::look(double now_s, std::span<const WorkerClock> clocks) {
  if (looked_s_ >= 0 && now_s > looked_s_) {
    const double held = held_s_ / (now_s - looked_s_);
    const Rates rates = rates_of(clocks);
    if (held > options_.held_most && staleness_ != kFreely)
      change(wider(), held, rates);
    else if (held < options_.held_least && rates.ratio >= options_.agree && staleness_ > kInStep)
      change(narrower(), held, rates);
  }
  clocks_.clear();
  for (const WorkerClock& clock : clocks) clocks_[clock.worker] = clock.clock;
  looked_s_ = now_s;
  looked_at_ = pushes_;
  held_s_ = 0;
}

// Of the pushes that arrived since the last look. Nodes that came or went meanwhile do not count.
StalenessFinder::Rates StalenessFinder::rates_of(std::span<const WorkerClock> clocks) const {
  Rates rates;
  int64_t least = INT64_MAX, most = 0;
  for (const WorkerClock& clock : clocks) {
    const auto before = clocks_.find(clock.worker);
    if (before == clocks_.end()) continue;
    const int64_t arrived = clock.clock - before->second;
    if (arrived < least) rates.slowest = clock.worker;
    least = std::min(least, arrived);
    most = std::max(most, arrived);
  }
  if (most > 0) rates.ratio = static_cast<double>(least) / static_cast<double>(most);
  return rates;
}

void StalenessFinder::change(int64_t staleness, double held, const Rates& rates) {
  const auto percent = [](double share) { return std::to_string(std::lround(100 * share)) + "%"; };
  reasons_.push_back("--sync auto: from " + words_of(staleness_) + " to " + words_of(staleness) + " at push " +
                     std::to_string(pushes_) + ": held back " + percent(held) + " of the time, node " +
                     std::to_string(rates.slowest) + " pushes at " + percent(rates.ratio) + " of the fastest's rate");
  staleness_ = staleness;
}

int64_t StalenessFinder::wider() const {
  return 2 * staleness_ > options_.staleness_max ? kFreely : 2 * staleness_;
}

int64_t StalenessFinder::narrower() const {
  return staleness_ == kFreely ? options_.staleness_max : staleness_ / 2;
}

}  // namespace streamvec
