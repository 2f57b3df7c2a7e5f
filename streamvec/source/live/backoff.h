// How long to stay away from a server that has failed.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "streamvec/core/random.h"

namespace streamvec {

// Twice as long after each failure in a row, up to `most`; each wait is drawn between half of that and all of it, so
// that many clients of one server do not come back together. One seed gives one row of waits. Not thread-safe.
class Backoff {
 public:
  struct Options {
    std::chrono::milliseconds first{500};
    std::chrono::milliseconds most{60'000};
  };
  Backoff(Options options, uint64_t seed) : options_(options), random_(seed) {}

  std::chrono::milliseconds failed() {
    const int doublings = std::min(failures_++, 20);
    const double whole = std::min(static_cast<double>(options_.most.count()),
                                  static_cast<double>(options_.first.count()) * (1 << doublings));
    return std::chrono::milliseconds(static_cast<int64_t>(whole * (0.5 + 0.5 * random_.uniform())));
  }
  void succeeded() { failures_ = 0; }
  int failures() const { return failures_; }
  // The server's own wish ("retry:" of an event stream); limited to 10 ms .. `most`.
  void set_first(std::chrono::milliseconds first) {
    options_.first = std::clamp(first, std::chrono::milliseconds(10), options_.most);
  }

 private:
  Options options_;
  Random random_;
  int failures_ = 0;
};

}  // namespace streamvec
