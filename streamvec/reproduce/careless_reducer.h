// The "asynchronous" all-reduce of 2018: begun, and never waited for. What a node steps along is its own slopes, or an
// old sum, or whatever else was there at that moment. The program raced on the memory itself; here every access takes a
// lock, so that the race is between whole buffers and the program stays sound.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "streamvec/core/deadline.h"
#include "streamvec/core/status.h"
#include "streamvec/transport/collective.h"

namespace streamvec {

class CarelessReducer {
 public:
  // The collective is borrowed, and nobody else uses it.
  explicit CarelessReducer(Collective& collective);
  ~CarelessReducer();

  // Puts `slopes` into the shared buffer, begins to sum it up with the others', divides at once by the number of nodes
  // and hands what is there to `use`. Waits only while two sums are under way. The first error sticks.
  Status exchange(const std::vector<float>& slopes, const std::function<void(const std::vector<float>&)>& use);
  // Waits for what is under way.
  Status settle();

 private:
  void run();

  Collective& collective_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<float> buffer_;
  int64_t begun_ = 0, ended_ = 0;
  bool closed_ = false;
  Status status_;
  std::thread thread_;
};

}  // namespace streamvec
