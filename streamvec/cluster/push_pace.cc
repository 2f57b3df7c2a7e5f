#include "streamvec/cluster/push_pace.h"

#include <algorithm>

namespace streamvec {
namespace {

constexpr double kPushEvery = 0.25;   // seconds at most, also by a node whose text comes slowly
constexpr double kSlowWord = 2.5e-6;  // seconds: with pushes far apart, as long as words_min take at this speed
constexpr double kDryEvery = 0.05;    // by one that only follows the others, so that slow rows come round in seconds
// At first all rows grow, each by what the others have grown to: nodes that hear of each other late grow late.
constexpr int64_t kEagerWords = 200'000;
constexpr int64_t kEagerEvery = 2'500;  // words, and a quarter of words_min where that is less
constexpr int64_t kEagerTimes = 4;
// After that pushes become rarer until words_min lie between two: each when a quarter of all that was trained is new.
constexpr int64_t kNewPart = 4;
constexpr double kEagerShare = 0.5;
constexpr double kAwaitedTimes = 3;  // of the share
constexpr int64_t kFirstPushes = 8;  // that tell what is trained between two
constexpr double kNewShare = 0.25;   // of the last push in the mean of late
constexpr int64_t kEarly = 16;       // a push begins this part of words_max before threads wait for it
constexpr double kSquareMin = 0.5;   // of rows that have yet to grow: what they will soon be
// Where pushes are further apart than this the run is long, and slow rows may wait for their moves to add up: what is
// worth a message grows with the square of the words between two pushes, up to kWorthMost times. Less far apart they
// may not: a run that has not learnt all it can loses by it (docs/BENCHMARKS.md, Slow rows of long runs).
constexpr double kNearWords = 160'000, kWorthMost = 16;

}  // namespace

double talking_share_of(int64_t workers) {
  return 0.025 * static_cast<double>(std::clamp<int64_t>(workers, 2, 4));
}

int64_t PushPace::words_wanted(const Done& done) const {
  if (done.words < kEagerWords) return std::min(kEagerEvery, options_.words_min / kEagerTimes);
  return std::min(done.words / kNewPart, options_.words_min);
}

double PushPace::push_every() const {
  return std::max(kPushEvery, kSlowWord * static_cast<double>(options_.words_min));
}

int64_t PushPace::words_most() const {
  return options_.words_max - options_.words_max / kEarly;
}

double PushPace::share(const Done& done) const {
  return done.words < kEagerWords ? kEagerShare : options_.talking_share * (done.awaited ? kAwaitedTimes : 1);
}

bool PushPace::is_time(const Done& done) const {
  if (done.awaited || done.now_s - begun_.now_s >= (done.dry ? kDryEvery : push_every())) return true;
  return done.words - begun_.words >= words_wanted(done);
}

bool PushPace::can_afford(const Done& done) const {
  if (done.words - begun_.words > words_most()) return true;
  return done.talking_s - begun_.talking_s <= share(done) * options_.threads * (done.now_s - begun_.now_s);
}

double PushPace::due_in(const Done& done) const {
  const double since_s = done.now_s - begun_.now_s;
  const auto words = static_cast<double>(done.words - begun_.words);
  const auto trained_in = [&](int64_t wanted) {
    const double missing = static_cast<double>(wanted) - words;
    return missing <= 0 ? 0 : words > 0 ? since_s * missing / words : push_every();
  };
  const double time_in = done.awaited ? 0 : std::min(trained_in(words_wanted(done)), push_every() - since_s);
  const double paid_in = (done.talking_s - begun_.talking_s) / (share(done) * options_.threads) - since_s;
  return std::max({0.0, time_in, std::min(paid_in, trained_in(words_most() + 1))});
}

void PushPace::begin(const Done& done) {
  const double since = done.steps - begun_.steps;
  steps_a_push_ += (pushes_ < kFirstPushes ? 1 : kNewShare) * (since - steps_a_push_);
  begun_ = done;
  ++pushes_;
}

std::span<const uint64_t> PushPace::rows(int64_t push, double mean_square) const {
  const double apart = static_cast<double>(words_wanted(begun_)) / kNearWords;
  const double worth = std::clamp(apart * apart, 1.0, kWorthMost);
  return schedule_.due(push, steps_a_push_ * std::max(mean_square, kSquareMin) / worth);
}

}  // namespace streamvec
