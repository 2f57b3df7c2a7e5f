#include "streamvec/core/crew.h"

#include <thread>

#include "streamvec/core/thread_time.h"

namespace streamvec {
namespace {

constexpr int32_t kSpins = 4'000;  // some 100 us

void spin() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

Crew::Crew(int32_t helpers) {
  (void)threads_.start(helpers, [this](int64_t) { stand_by(); });
}

Crew::~Crew() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  begun_.notify_all();
  threads_.join();
}

void Crew::share(int64_t parts, const std::function<void(int64_t)>& work) {
  std::unique_lock lock(mutex_);
  if ((threads_.size() == 0 && looking_in_ == 0) || parts < 2) {
    lock.unlock();
    for (int64_t i = 0; i < parts; ++i) work(i);
    return;
  }
  work_ = &work;
  parts_ = parts;
  next_ = 0;
  finished_ = 0;
  open_ = true;
  if (looking_in_ == 0) begun_.notify_all();
  take_parts(lock);
  lock.unlock();
  // Parts are short: to sleep and to be woken would take longer.
  for (int32_t i = 0; i < kSpins && finished_ < parts; ++i) spin();
  lock.lock();
  done_.wait(lock, [&] { return finished_ == parts_; });
  parts_ = next_ = 0;
}

void Crew::come() {
  const std::lock_guard lock(mutex_);
  ++looking_in_;
}

void Crew::go() {
  const std::lock_guard lock(mutex_);
  if (--looking_in_ == 0) begun_.notify_all();
}

double Crew::helped_s() const {
  const std::lock_guard lock(mutex_);
  return helped_s_;
}

void Crew::stand_by() {
  std::unique_lock lock(mutex_);
  while (true) {
    begun_.wait(lock, [&] { return stopping_ || wanted(); });
    if (stopping_) return;
    const double begun = thread_seconds();
    take_parts(lock);
    helped_s_ += thread_seconds() - begun;
  }
}

void Crew::help_out() {
  std::unique_lock lock(mutex_);
  if (next_ == parts_) return;
  const double begun = thread_seconds();
  take_parts(lock);
  helped_s_ += thread_seconds() - begun;
}

void Crew::take_parts(std::unique_lock<std::mutex>& lock) {
  while (next_ < parts_) {
    const int64_t part = next_++;
    if (next_ == parts_) open_ = false;
    const std::function<void(int64_t)>& work = *work_;
    lock.unlock();
    work(part);
    lock.lock();
    if (++finished_ == parts_) done_.notify_all();
  }
}

}  // namespace streamvec
