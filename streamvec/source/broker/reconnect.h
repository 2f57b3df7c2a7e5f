// When to try a broker again that is away.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <thread>

#include "streamvec/core/deadline.h"
#include "streamvec/core/status.h"
#include "streamvec/source/live/backoff.h"

namespace streamvec {

// Not thread-safe.
class Reconnect {
 public:
  Reconnect()
      : backoff_({.first = std::chrono::milliseconds(100), .most = std::chrono::seconds(5)}, std::random_device()()) {}

  // Waits for the time of the next try. When the deadline comes before it, the trouble that was met last.
  Status wait(Deadline deadline) {
    std::this_thread::sleep_until(std::min(retry_at_, deadline.when()));
    return Deadline::Clock::now() < retry_at_ ? trouble_ : Status();
  }
  // Takes what went wrong and gives it back.
  Status failed(Status status) {
    retry_at_ = Deadline::Clock::now() + backoff_.failed();
    return trouble_ = std::move(status);
  }
  void succeeded() { backoff_.succeeded(); }

 private:
  Backoff backoff_;
  Deadline::Clock::time_point retry_at_{};
  Status trouble_;
};

}  // namespace streamvec
