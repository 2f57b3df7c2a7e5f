// Keeps sampling in step with arrival.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "streamvec/core/deadline.h"
#include "streamvec/core/status.h"

namespace streamvec {

// Over its life an item is sampled about `samples_per_insert` times: each insert adds that many to the samples owed,
// each sample takes one off. Samples wait while fewer than one are owed, inserts while too many are, so that the two
// sides are never further apart than `inserts_ahead_max`. One side can always go on.
// Every call is made under the one lock that guards what is inserted and sampled; waits let go of it as a condition
// variable does, so that a right and its use are one step. close() wakes every waiter.
class RateLimiter {
 public:
  struct Options {
    double samples_per_insert = 4.0;     // more: learns more from each item, and trails the stream further
    int64_t size_min = 1'000;            // sampling waits until so many are held
    int64_t inserts_ahead_max = 10'000;  // less: what is sampled is fresher; more: bursts are taken without waiting
  };
  struct State {  // goes on after a restart
    double owed = 0;
    int64_t inserted = 0, sampled = 0;
  };
  using Lock = std::unique_lock<std::mutex>;

  // kInvalidArgument unless samples_per_insert is finite and above 0 and the others are at least 1.
  static Status check(const Options& options);
  // REQUIRES: check(options).ok().
  explicit RateLimiter(const Options& options) : options_(options) {}

  // Waits until one may be inserted and `room()` holds, which is asked only then. kDeadlineExceeded; kCancelled after
  // close(); kFailedPrecondition after finish().
  template <typename Room>
  Status await_insert(Lock& lock, Deadline deadline, const Room& room) {
    bool ready = false;
    wait(lock, inserters_, deadline, [&] {
      ready = !closed_ && !finished_ && insert_allowed() && room();
      return closed_ || finished_ || ready;
    });
    return insert_verdict(ready);
  }
  // Waits until 1..count_max samples may be taken and returns how many; 0 when finish() was called and none is owed.
  // `pressing()` are samples that may be taken whatever is owed. kDeadlineExceeded; kCancelled after close().
  // REQUIRES: count_max > 0.
  template <typename Pressing>
  Result<int64_t> await_sample(int64_t count_max, Lock& lock, Deadline deadline, const Pressing& pressing) {
    int64_t count = 0;
    wait(lock, samplers_, deadline, [&] {
      count = size_ == 0 ? 0 : std::min(count_max, std::max(allowed(), pressing()));
      return closed_ || finished_ || count > 0;
    });
    return sample_verdict(count);
  }

  // What was done; wake() after the last of them.
  void inserted();
  void sampled(int64_t count);
  void evicted();  // one left in its turn: what is owed stays owed
  // One was taken out after `times_sampled` samples: those it had still to come are not owed any more.
  void erased(int64_t times_sampled);

  void finish();  // no more inserts: samples go on until none is owed
  void close();   // all waits end, for ever
  void wake_samplers() { wake(samplers_); }
  void wake() {
    wake(inserters_);
    wake(samplers_);
  }

  double owed() const { return state_.owed; }
  bool finished() const { return finished_; }
  const State& state() const { return state_; }
  void restore(const State& state, int64_t size);

 private:
  struct Side {
    std::condition_variable changed;
    int64_t waiting = 0;
  };

  template <typename Ready>
  static void wait(Lock& lock, Side& side, Deadline deadline, const Ready& ready) {
    if (ready()) return;
    ++side.waiting;
    if (deadline.when() == Deadline::Clock::time_point::max())
      side.changed.wait(lock, ready);
    else
      side.changed.wait_until(lock, deadline.when(), ready);
    --side.waiting;
  }
  static void wake(Side& side) {
    if (side.waiting > 0) side.changed.notify_all();
  }
  bool insert_allowed() const;
  int64_t allowed() const;
  Status insert_verdict(bool ready) const;
  Result<int64_t> sample_verdict(int64_t count) const;

  Options options_;
  State state_;
  int64_t size_ = 0;
  bool finished_ = false, closed_ = false;
  Side inserters_, samplers_;
};

}  // namespace streamvec
