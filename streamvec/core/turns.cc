#include "streamvec/core/turns.h"

#include <algorithm>
#include <chrono>

#include "streamvec/core/clock.h"

namespace streamvec {
namespace {

constexpr auto kInterruptionLook = std::chrono::milliseconds(20);
constexpr double kNewWait = 0.2;  // what the last wait weighs in the mean of them

}  // namespace

Turns::Turns(const Options& options) : options_(options), free_s_(clock_seconds()) {}

void Turns::begin_step() {
  std::unique_lock lock(mutex_);
  coming_ = true;
  const double now = clock_seconds();
  if (begun_s_ > 0) step_takes_s_ = now - begun_s_;
  await_exchange(lock, now);
  changed_.wait(lock, [&] { return !wanted_; });
  coming_ = false;
  working_ = true;
  begun_s_ = clock_seconds();
  wait_takes_s_ += kNewWait * (begun_s_ - now - wait_takes_s_);
  waited_s_ += begun_s_ - now;
}

void Turns::await_exchange(std::unique_lock<std::mutex>& lock, double now_s) {
  if (options_.always) return changed_.wait(lock, [&] { return closed_ || may_step(); });
  // One that is under way and knows of no step here is waited for, too, but not those after it.
  const int64_t awaited = exchanges_begun_;
  const auto exchanged = [&] { return closed_ || (exchanged_ == steps_ && exchanges_over_ >= awaited); };
  const std::chrono::duration<double> wait_max(options_.wait_max_s);
  changed_.wait_for(lock, wait_max, [&] { return closed_ || !follows_; });
  follows_ = false;
  if (!exchanged() && is_worth_waiting(now_s)) unawaited_ = !changed_.wait_for(lock, wait_max, exchanged);
}

double Turns::exchange_takes_s() const {
  const auto end = exchanges_took_s_.begin() + static_cast<ptrdiff_t>(std::min(exchanges_, exchanges_took_s_.size()));
  return end == exchanges_took_s_.begin() ? 0 : *std::min_element(exchanges_took_s_.begin(), end);
}

// By what is left of it, as it has been under way since the last step; and by what waiting has cost of late, which may
// be more, where others are slow. Steps that do not wait bring that down, so that it is tried again.
bool Turns::is_worth_waiting(double now_s) const {
  const double left_s = exchange_takes_s() - (now_s - ended_s_), most_s = options_.patience * step_takes_s_;
  return options_.patience > 0 && !unawaited_ && left_s <= most_s && wait_takes_s_ <= most_s;
}

void Turns::end_step() {
  const std::lock_guard lock(mutex_);
  working_ = false;
  ++steps_;
  ended_s_ = free_s_ = clock_seconds();
  changed_.notify_all();
}

double Turns::waited_s() const {
  const std::lock_guard lock(mutex_);
  return waited_s_;
}

bool Turns::stepped() const {
  const std::lock_guard lock(mutex_);
  return steps_ > begun_;
}

double Turns::idle_s() const {
  const std::lock_guard lock(mutex_);
  return working_ || coming_ ? 0 : clock_seconds() - free_s_;
}

void Turns::await_step(double seconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return closed_ || steps_ > begun_; });
}

void Turns::use_wanted(std::unique_lock<std::mutex>& lock, const std::function<void()>& use) {
  lock.unlock();
  use();
  lock.lock();
  wanted_ = false;
  changed_.notify_all();
}

// Of a worker that waits for all: no exchange is under way, nor is one of its last step to come.
bool Turns::may_step() const {
  return exchanged_ == steps_ && exchanges_over_ == exchanges_begun_;
}

bool Turns::begin_exchange(const std::function<bool()>& interrupted, const std::function<void()>& use) {
  std::unique_lock lock(mutex_);
  // A worker that has waited for the last one has its step before the next.
  const auto steps_first = [&] { return options_.always && coming_ && may_step() && !closed_; };
  while (steps_first() && !interrupted()) changed_.wait_for(lock, kInterruptionLook);
  if (steps_first()) return false;
  wanted_ = true;
  follows_ = false;
  while (working_ && !interrupted()) changed_.wait_for(lock, kInterruptionLook);
  if (working_) {
    wanted_ = false;
    changed_.notify_all();
    return false;
  }
  stepped_s_ = ended_s_ > 0 ? ended_s_ : clock_seconds();
  begun_ = steps_;
  ++exchanges_begun_;
  use_wanted(lock, use);
  return true;
}

void Turns::go_on(const std::function<void()>& use) {
  std::unique_lock lock(mutex_);
  wanted_ = true;
  changed_.wait(lock, [&] { return !working_; });
  use_wanted(lock, use);
}

void Turns::end_exchange(const std::function<void()>& use) {
  std::unique_lock lock(mutex_);
  exchanges_took_s_[exchanges_++ % exchanges_took_s_.size()] = clock_seconds() - stepped_s_;
  wanted_ = true;
  changed_.wait(lock, [&] { return !working_; });
  const bool of_step = begun_ > exchanged_;
  exchanged_ = begun_;
  exchanges_over_ = exchanges_begun_;
  unawaited_ = false;
  follows_ = steps_ > begun_ && options_.patience > 0;
  use_wanted(lock, use);
  if (of_step) free_s_ = clock_seconds();
}

void Turns::drop_exchange() {
  const std::lock_guard lock(mutex_);
  begun_ = exchanged_;
  exchanges_over_ = exchanges_begun_;
  unawaited_ = false;
  changed_.notify_all();
}

void Turns::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

}  // namespace streamvec
