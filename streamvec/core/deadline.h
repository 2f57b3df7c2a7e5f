// A moment by which a wait must end. Every wait in the library takes one, so that nothing hangs.
#pragma once

#include <chrono>

namespace streamvec {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  static Deadline never() { return Deadline(Clock::time_point::max()); }
  // A wait too long for the clock never ends.
  static Deadline after(Clock::duration wait) {
    const Clock::time_point now = Clock::now();
    return wait > Clock::time_point::max() - now ? never() : Deadline(now + wait);
  }

  // Likewise; what is no wait, below zero or no number, is over at once.
  static Deadline after_s(double seconds) {
    constexpr double kLongest = 4e9;  // the clock's own is nine
    if (seconds > kLongest) return never();
    const std::chrono::duration<double> wait(seconds > 0 ? seconds : 0);
    return after(std::chrono::duration_cast<Clock::duration>(wait));
  }

  bool passed() const { return when_ != Clock::time_point::max() && Clock::now() >= when_; }
  Clock::time_point when() const { return when_; }

 private:
  explicit Deadline(Clock::time_point when) : when_(when) {}
  Clock::time_point when_;
};

}  // namespace streamvec
