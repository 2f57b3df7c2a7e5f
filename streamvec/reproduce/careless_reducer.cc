#include "streamvec/reproduce/careless_reducer.h"

namespace streamvec {
namespace {

constexpr int64_t kUnderWayMax = 2;
constexpr std::chrono::seconds kSumWithin{60};

void scale(std::vector<float>& values, float factor) {
  for (float& value : values) value *= factor;
}

}  // namespace

CarelessReducer::CarelessReducer(Collective& collective) : collective_(collective), thread_([this] { run(); }) {}

CarelessReducer::~CarelessReducer() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Status CarelessReducer::exchange(const std::vector<float>& slopes,
                                 const std::function<void(const std::vector<float>&)>& use) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return begun_ - ended_ < kUnderWayMax || !status_.ok(); });
  buffer_ = slopes;
  ++begun_;
  changed_.notify_all();
  lock.unlock();  // whoever is quicker
  lock.lock();
  scale(buffer_, 1.0f / static_cast<float>(collective_.ranks()));
  use(buffer_);
  return status_;
}

Status CarelessReducer::settle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return begun_ == ended_ || !status_.ok(); });
  return status_;
}

void CarelessReducer::run() {
  std::vector<float> taken;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closed_ || begun_ > ended_; });
    if (begun_ == ended_ || !status_.ok()) return;
    taken = buffer_;
    lock.unlock();
    Status reduced = collective_.all_reduce_mean(taken, Deadline::after(kSumWithin));
    scale(taken, static_cast<float>(collective_.ranks()));
    lock.lock();
    if (reduced.ok())
      buffer_ = taken;
    else
      status_ = std::move(reduced);
    ++ended_;
    changed_.notify_all();
  }
}

}  // namespace streamvec
