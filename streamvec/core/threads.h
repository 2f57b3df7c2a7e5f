// Threads that share a piece of work, on a system that may have no more of them to give.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "streamvec/core/status.h"

namespace streamvec {

// Joins them when it goes; what they wait for has to end before that. Used by one thread.
class Threads {
 public:
  Threads() = default;
  ~Threads() { join(); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  // work(0) .. work(count - 1), each on a thread of its own, all with their own copy of `work`. kResourceExhausted:
  // some could not be made; the first size() run, and the caller tells them to end.
  Status start(int64_t count, const std::function<void(int64_t)>& work);
  void join();
  int64_t size() const { return static_cast<int64_t>(threads_.size()); }

 private:
  std::vector<std::thread> threads_;
};

}  // namespace streamvec
