// How much work a thread has done.
#pragma once

#include <ctime>

namespace streamvec {

// Seconds of a processor that the calling thread has used.
inline double thread_seconds() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

}  // namespace streamvec
