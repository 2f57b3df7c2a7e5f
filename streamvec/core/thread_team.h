// Threads that wait between pieces of work, for work that comes many times a second in parts of equal size.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

#include "streamvec/core/threads.h"

namespace streamvec {

// The caller is one of the team. One run at a time.
class ThreadTeam {
 public:
  // Of that size, or as large as the system has threads for. REQUIRES: size >= 1.
  explicit ThreadTeam(int32_t size);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int32_t size() const { return static_cast<int32_t>(threads_.size()) + 1; }
  // Calls work(0) .. work(size() - 1), each on its own thread, work(0) on the caller's; returns when all are done.
  void run(const std::function<void(int32_t)>& work);

 private:
  void serve(int32_t member);

  std::mutex mutex_;
  std::condition_variable begun_, done_;
  const std::function<void(int32_t)>* work_ = nullptr;
  int64_t round_ = 0;
  int32_t busy_ = 0;
  bool closed_ = false;
  Threads threads_;
};

}  // namespace streamvec
