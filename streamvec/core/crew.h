// A few threads that stand by to help one thread with work that falls into parts.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace streamvec {

// One thread at a time calls share().
class Crew {
 public:
  explicit Crew(int32_t helpers);  // 0: the caller does all the work itself
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Calls work(0) to work(parts - 1), each once, here and on the helpers, in any order; returns when all have returned.
  void share(int64_t parts, const std::function<void(int64_t)>& work);
  int32_t helpers() const { return static_cast<int32_t>(threads_.size()); }
  double helped_s() const;  // of processors, that the helpers have used in all

 private:
  void help();
  void take_parts(std::unique_lock<std::mutex>& lock);

  mutable std::mutex mutex_;
  std::condition_variable begun_, done_;
  const std::function<void(int64_t)>* work_ = nullptr;
  int64_t parts_ = 0, next_ = 0, finished_ = 0;
  double helped_s_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace streamvec
