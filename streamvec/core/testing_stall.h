// For tests of what becomes of nodes that are silent for a while: on a machine that does other things a core may stand
// still for as long, and then nodes are silent that should not be.
#pragma once

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iostream>
#include <thread>
#include <utility>
#include <vector>

namespace streamvec {

// A thread on each core that may run this program looks how late it wakes up.
class StallWatch {
 public:
  StallWatch() {
    cpu_set_t allowed;
    if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) CPU_ZERO(&allowed);
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &allowed)) threads_.emplace_back([this, core] { watch(core); });
  }
  ~StallWatch() { end(); }
  // The longest time for which a core stood still since this began. Ends the watch.
  std::chrono::duration<double> end() {
    over_ = true;
    for (std::thread& thread : threads_)
      if (thread.joinable()) thread.join();
    return std::chrono::nanoseconds(longest_ns_);
  }

 private:
  void watch(int core) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(core, &only);
    ::pthread_setaffinity_np(::pthread_self(), sizeof only, &only);  // else it watches whatever core it is on
    for (auto before = std::chrono::steady_clock::now(); !over_;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      const auto now = std::chrono::steady_clock::now();
      const int64_t took_ns = std::chrono::nanoseconds(now - std::exchange(before, now)).count();
      for (int64_t longest_ns = longest_ns_; took_ns > longest_ns;)
        if (longest_ns_.compare_exchange_weak(longest_ns, took_ns)) break;
    }
  }

  std::atomic<bool> over_ = false;
  std::atomic<int64_t> longest_ns_ = 0;
  std::vector<std::thread> threads_;
};

// Runs a scenario, and again when a claim of it failed while a core stood still for longer than that: this shows
// nothing. A claim that fails though all cores ran has failed at once.
inline void repeat_when_stalled(std::chrono::duration<double> most, const std::function<void()>& scenario) {
  constexpr int kTries = 20;
  for (int tries = 1;; ++tries) {
    ::testing::TestPartResultArray said;
    StallWatch watch;
    {
      const ::testing::ScopedFakeTestPartResultReporter reporter(
          ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &said);
      scenario();
    }
    bool failed = false;
    for (int i = 0; i < said.size(); ++i) failed = failed || said.GetTestPartResult(i).failed();
    if (!failed) return;
    if (const auto stalled = watch.end(); stalled > most && tries < kTries) {
      std::cout << "a core stood still for " << stalled.count() << " s: again" << std::endl;
      continue;
    }
    for (int i = 0; i < said.size(); ++i) {
      const ::testing::TestPartResult& each = said.GetTestPartResult(i);
      if (each.failed()) ADD_FAILURE_AT(each.file_name(), each.line_number()) << each.message();
    }
    return;
  }
}

}  // namespace streamvec
