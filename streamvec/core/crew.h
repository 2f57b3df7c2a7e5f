// Threads that help one thread with work that falls into parts: those that do something else and look in now and then,
// so that nobody waits for a core on which they run, and some that stand by for when there are none of them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

#include "streamvec/core/threads.h"

namespace streamvec {

// One thread at a time calls share().
class Crew {
 public:
  // `helpers` stand by, or as many as the system gives; none: the caller does what nobody looks in for.
  explicit Crew(int32_t helpers);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Calls work(0) to work(parts - 1), each once, here and on the helpers, in any order; returns when all have returned.
  void share(int64_t parts, const std::function<void(int64_t)>& work);

  // Threads that look in every now and then, from come() to go(): while any is there, those that stand by sleep on. Who
  // waits for something is not there.
  void come();
  void go();
  // Takes parts that are left, if any are. Costs next to nothing when there is no work.
  void look_in() {
    if (open_.load(std::memory_order_relaxed)) help_out();
  }

  int32_t helpers() const { return static_cast<int32_t>(threads_.size()); }
  double helped_s() const;  // of processors, that the helpers have used in all

 private:
  void stand_by();
  void help_out();
  void take_parts(std::unique_lock<std::mutex>& lock);
  bool wanted() const { return next_ < parts_ && looking_in_ == 0; }

  mutable std::mutex mutex_;
  std::condition_variable begun_, done_;
  const std::function<void(int64_t)>* work_ = nullptr;
  int64_t parts_ = 0, next_ = 0;
  std::atomic<int64_t> finished_ = 0;
  std::atomic<bool> open_ = false;  // parts are left
  int32_t looking_in_ = 0;
  double helped_s_ = 0;
  bool stopping_ = false;
  Threads threads_;
};

// While it lives, the thread that made it looks in. No crew: nothing to do.
class CrewVisit {
 public:
  explicit CrewVisit(Crew* crew) : crew_(crew) {
    if (crew_ != nullptr) crew_->come();
  }
  ~CrewVisit() {
    if (crew_ != nullptr) crew_->go();
  }
  CrewVisit(const CrewVisit&) = delete;
  CrewVisit& operator=(const CrewVisit&) = delete;

 private:
  Crew* const crew_;
};

}  // namespace streamvec
