#include "streamvec/source/newsroom/publisher.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace streamvec::newsroom {

Publisher::Publisher(Options options, std::function<double()> clock)
    : options_(options),
      clock_(std::move(clock)),
      start_s_(clock_()),
      published_(options.published),
      asked_(options.asked) {}

int64_t Publisher::published() const {
  constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  const double by_now = std::clamp((clock_() - start_s_) * options_.rate, 0.0, 1e15);
  const std::lock_guard guard(lock_);
  int64_t count = options_.articles > 0 ? options_.articles : kNoLimit;
  if (options_.rate > 0) count = std::min(count, options_.published + static_cast<int64_t>(by_now));
  if (options_.ahead_max > 0) count = std::min(count, asked_ + options_.ahead_max);
  return published_ = std::max(published_, count);
}

void Publisher::note_asked(int64_t number) {
  if (options_.ahead_max == 0) return;
  const std::lock_guard guard(lock_);
  if (number >= asked_) asked_above_.insert(number);
  while (!asked_above_.empty() && *asked_above_.begin() == asked_) {
    asked_above_.erase(asked_above_.begin());
    ++asked_;
  }
}

int64_t Publisher::asked() const {
  const std::lock_guard guard(lock_);
  return asked_;
}

}  // namespace streamvec::newsroom
