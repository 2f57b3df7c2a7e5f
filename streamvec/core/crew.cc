#include "streamvec/core/crew.h"

#include <ctime>

namespace streamvec {
namespace {

// That the calling thread has used of a processor.
double used_s() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

}  // namespace

Crew::Crew(int32_t helpers) {
  for (int32_t i = 0; i < helpers; ++i) threads_.emplace_back([this] { help(); });
}

Crew::~Crew() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  begun_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Crew::share(int64_t parts, const std::function<void(int64_t)>& work) {
  if (threads_.empty() || parts < 2) {
    for (int64_t i = 0; i < parts; ++i) work(i);
    return;
  }
  std::unique_lock lock(mutex_);
  work_ = &work;
  parts_ = parts;
  next_ = finished_ = 0;
  begun_.notify_all();
  take_parts(lock);
  done_.wait(lock, [&] { return finished_ == parts_; });
  parts_ = next_ = 0;
}

double Crew::helped_s() const {
  const std::lock_guard lock(mutex_);
  return helped_s_;
}

void Crew::help() {
  std::unique_lock lock(mutex_);
  while (true) {
    begun_.wait(lock, [&] { return stopping_ || next_ < parts_; });
    if (stopping_) return;
    const double begun = used_s();
    take_parts(lock);
    helped_s_ += used_s() - begun;
  }
}

void Crew::take_parts(std::unique_lock<std::mutex>& lock) {
  while (next_ < parts_) {
    const int64_t part = next_++;
    const std::function<void(int64_t)>& work = *work_;
    lock.unlock();
    work(part);
    lock.lock();
    if (++finished_ == parts_) done_.notify_all();
  }
}

}  // namespace streamvec
