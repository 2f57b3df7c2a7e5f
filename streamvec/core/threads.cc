#include "streamvec/core/threads.h"

#include <exception>

namespace streamvec {

Status Threads::start(int64_t count, const std::function<void(int64_t)>& work) {
  try {
    threads_.reserve(threads_.size() + static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) threads_.emplace_back(work, i);
  } catch (const std::exception& thrown) {  // std::system_error, or no memory
    return error(Code::kResourceExhausted, "no more threads can be made (", thrown.what(), "); try fewer --threads");
  }
  return {};
}

void Threads::join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace streamvec
