// Two threads that use the same values in turn. One, the worker, goes step by step: it begins and ends each. The other
// exchanges the values after every step: it begins by looking at them and ends by changing them, some time later.
//
// The worker's next step waits for the exchange of the last one where that is soon over, so that it knows of it. Where
// it would take too long the step goes on without: what the exchange ends with then comes between this step and the
// next, and that next one waits until the exchange of this has begun, so that every step has its own as long as
// exchanges take no longer than steps do; where they do, several steps share one. Where a step is nothing without its
// exchange, every one waits (Options::always). Whichever it is, the other never looks at or changes the values while
// the worker is at a step.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

namespace streamvec {

class Turns {
 public:
  struct Options {
    // A step waits for an exchange while that takes no more than this share of the time from step to step; 0: never.
    // The character model's batches learn about as much less from an exchange that comes one late
    // (docs/BENCHMARKS.md, A round after every batch).
    double patience = 0.2;
    double wait_max_s = 1;  // an exchange that takes longer than expected is not waited for after so long
    bool always = false;    // a step waits for every exchange, however long that takes: the two above mean nothing then
  };
  explicit Turns(const Options& options);

  // The worker's. REQUIRES: one thread at a time; a step that was begun is ended.
  void begin_step();
  void end_step();
  double waited_s() const;  // for exchanges, so far

  // The other's.
  bool stepped() const;  // a step has ended since the last exchange began
  // How long the worker has been at no step and waited for none, though it might: no exchange of a step has ended
  // since.
  double idle_s() const;
  // Returns when a step has ended, or so much time has passed, or nothing is waited for any more.
  void await_step(double seconds);
  // Calls use() while the worker is not at a step. False, and nothing was called, where `interrupted` comes true
  // before.
  bool begin_exchange(const std::function<bool()>& interrupted, const std::function<void()>& use);
  // In between: calls use() while the worker is not at a step.
  void go_on(const std::function<void()>& use);
  void end_exchange(const std::function<void()>& use);
  void drop_exchange();  // it came to nothing, and what was stepped is to be exchanged once more

  // From now on the worker waits for nothing.
  void close();

 private:
  // The shortest of the last ones: exchanges also wait for others who come late, and those who do not wait for an
  // exchange come as late as they like; once all have waited for one, all begin the next together.
  double exchange_takes_s() const;
  bool is_worth_waiting(double now_s) const;
  void await_exchange(std::unique_lock<std::mutex>& lock, double now_s);
  bool may_step() const;
  void use_wanted(std::unique_lock<std::mutex>& lock, const std::function<void()>& use);

  const Options options_;
  mutable std::mutex mutex_;  // of all that follows
  std::condition_variable changed_;
  bool working_ = false;   // at a step
  bool coming_ = false;    // wants to be, and waits
  bool wanted_ = false;    // by the other, as soon as the worker is not at a step
  int64_t steps_ = 0;      // that have ended
  int64_t begun_ = 0;      // of them, those whose exchange has begun
  int64_t exchanged_ = 0;  // and ended
  int64_t exchanges_begun_ = 0, exchanges_over_ = 0;
  bool unawaited_ = false;  // this exchange has been waited for in vain
  bool follows_ = false;    // one has ended, and the next is to begin before the next step does
  bool closed_ = false;
  double begun_s_ = 0, ended_s_ = 0;  // when the last step did
  double free_s_ = 0;                 // when that or the exchange of a step ended last
  double stepped_s_ = 0;              // when that one ended which the exchange under way is of
  double step_takes_s_ = 0;
  double wait_takes_s_ = 0;                   // of a step for an exchange, in the mean of the last ones
  double waited_s_ = 0;                       // in all
  std::array<double, 8> exchanges_took_s_{};  // the last ones
  size_t exchanges_ = 0;                      // so far
};

}  // namespace streamvec
