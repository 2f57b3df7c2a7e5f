// The beat of the thread that watches the others: it looks often, and reports about twice a second.
#pragma once

#include <chrono>
#include <thread>

namespace streamvec {

class Pacer {
 public:
  // Sleeps a little; true when it is time for a report.
  bool wait() {
    return wait([](std::chrono::milliseconds most) { std::this_thread::sleep_for(most); });
  }
  // The same with a sleep of the caller's, who may be woken earlier: sleep(most).
  template <typename Sleep>
  bool wait(Sleep sleep) {
    sleep(sleep_);
    // The first looks come quickly, so that short runs end at once.
    if (sleep_ < kSleepMax) sleep_ *= 2;
    const auto now = std::chrono::steady_clock::now();
    if (now - reported_ < kReportEvery) return false;
    reported_ = now;
    return true;
  }

 private:
  static constexpr std::chrono::milliseconds kSleepMax{20}, kReportEvery{500};
  std::chrono::milliseconds sleep_{1};
  std::chrono::steady_clock::time_point reported_ = std::chrono::steady_clock::now();
};

}  // namespace streamvec
