#include "streamvec/core/thread_team.h"

namespace streamvec {

ThreadTeam::ThreadTeam(int32_t size) {
  (void)threads_.start(size - 1, [this](int64_t i) { serve(static_cast<int32_t>(i) + 1); });
}

ThreadTeam::~ThreadTeam() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  begun_.notify_all();
  threads_.join();
}

void ThreadTeam::run(const std::function<void(int32_t)>& work) {
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    busy_ = static_cast<int32_t>(threads_.size());
    ++round_;
  }
  begun_.notify_all();
  work(0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return busy_ == 0; });
}

void ThreadTeam::serve(int32_t member) {
  int64_t served = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    begun_.wait(lock, [&] { return closed_ || round_ != served; });
    if (closed_) return;
    served = round_;
    lock.unlock();
    (*work_)(member);
    lock.lock();
    if (--busy_ == 0) done_.notify_one();
  }
}

}  // namespace streamvec
