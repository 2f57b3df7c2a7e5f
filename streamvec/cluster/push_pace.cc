#include "streamvec/cluster/push_pace.h"

#include <algorithm>

namespace streamvec {
namespace {

constexpr double kPushEvery = 0.25;  // seconds at most, also by a node whose text comes slowly
// At first all rows grow, each by what the others have grown to: nodes that hear of each other late grow late.
constexpr int64_t kEagerWords = 200'000;
constexpr int64_t kEagerTimes = 4;  // as many pushes
constexpr double kEagerShare = 0.5;
constexpr int64_t kFirstPushes = 8;  // that tell what is trained between two
constexpr double kNewShare = 0.25;   // of the last push in the mean of late
constexpr double kSquareMin = 0.5;   // of rows that have yet to grow: what they will soon be

}  // namespace

double talking_share_of(int64_t workers) {
  return std::clamp(0.05 * static_cast<double>(workers), 0.1, 0.2);
}

bool PushPace::is_time(const Done& done) const {
  const int64_t wanted = options_.words_min / (done.words < kEagerWords ? kEagerTimes : 1);
  return done.words - begun_.words >= wanted || done.now_s - begun_.now_s >= kPushEvery;
}

bool PushPace::can_afford(const Done& done) const {
  if (done.words - begun_.words > options_.words_max) return true;
  const double share = done.words < kEagerWords ? kEagerShare : options_.talking_share;
  return done.talking_s - begun_.talking_s <= share * options_.threads * (done.now_s - begun_.now_s);
}

void PushPace::begin(const Done& done) {
  const double since = done.steps - begun_.steps;
  steps_a_push_ += (pushes_ < kFirstPushes ? 1 : kNewShare) * (since - steps_a_push_);
  begun_ = done;
  ++pushes_;
}

std::span<const uint64_t> PushPace::rows(int64_t push, double mean_square) const {
  return schedule_.due(push, steps_a_push_ * std::max(mean_square, kSquareMin));
}

}  // namespace streamvec
