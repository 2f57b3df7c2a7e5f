#include "streamvec/replay/rate_limiter.h"

#include <cmath>

namespace streamvec {

Status RateLimiter::check(const Options& options) {
  if (!std::isfinite(options.samples_per_insert) || options.samples_per_insert <= 0)
    return error(Code::kInvalidArgument, "replay: ", options.samples_per_insert,
                 " samples per insert; it must be above 0");
  if (options.size_min < 1 || options.inserts_ahead_max < 1)
    return error(Code::kInvalidArgument, "replay: size_min ", options.size_min, " and inserts_ahead_max ",
                 options.inserts_ahead_max, " must be at least 1");
  return {};
}

// Where sampling cannot go on, inserting can.
bool RateLimiter::insert_allowed() const {
  const double owed_max = options_.samples_per_insert * static_cast<double>(options_.inserts_ahead_max);
  return size_ < options_.size_min || state_.owed < 1 || state_.owed + options_.samples_per_insert <= owed_max;
}

int64_t RateLimiter::allowed() const {
  const bool enough = finished_ || size_ >= options_.size_min;
  return enough && state_.owed >= 1 ? static_cast<int64_t>(std::min(state_.owed, 0x1p62)) : 0;
}

Status RateLimiter::insert_verdict(bool ready) const {
  if (closed_) return error(Code::kCancelled, "replay: closed");
  if (finished_) return error(Code::kFailedPrecondition, "replay: insert after finish");
  if (!ready) return error(Code::kDeadlineExceeded, "replay: full; sampling is too far behind");
  return {};
}

Result<int64_t> RateLimiter::sample_verdict(int64_t count) const {
  if (closed_) return error(Code::kCancelled, "replay: closed");
  if (count == 0 && !finished_) return error(Code::kDeadlineExceeded, "replay: nothing to sample");
  return count;
}

void RateLimiter::inserted() {
  ++state_.inserted;
  ++size_;
  state_.owed += options_.samples_per_insert;
}

void RateLimiter::sampled(int64_t count) {
  state_.sampled += count;
  state_.owed -= static_cast<double>(count);
}

void RateLimiter::evicted() {
  --size_;
}

void RateLimiter::erased(int64_t times_sampled) {
  --size_;
  const double to_come = std::max(0.0, options_.samples_per_insert - static_cast<double>(times_sampled));
  state_.owed = std::max(std::min(state_.owed, 0.0), state_.owed - to_come);
}

void RateLimiter::finish() {
  finished_ = true;
  wake();
}

void RateLimiter::close() {
  closed_ = true;
  wake();
}

void RateLimiter::restore(const State& state, int64_t size) {
  state_ = state;
  size_ = size;
}

}  // namespace streamvec
