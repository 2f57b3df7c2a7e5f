// What one core of this machine can do at most: multiply-adds from registers, and reads from memory.
// Each figure is the best of several short runs, by the thread's processor time, so that a busy machine counts little.
#pragma once

#include <ctime>

namespace streamvec::bench {

// Processor time of the calling thread, in seconds.
inline double thread_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Flops count a multiply-add as two. 0 where the CPU lacks the instructions.
struct Peaks {
  double fp32_gflops = 0;  // fused multiply-adds of the widest vectors there are
  double bf16_gflops = 0;  // AVX-512 dot products of bf16 pairs with fp32 sums
  double amx_gflops = 0;   // AMX tiles, the same
  double read_gbs = 0;     // 10^9 bytes a second, read in order from a buffer far larger than the caches
};

// Takes about two seconds.
Peaks measure_peaks();

}  // namespace streamvec::bench
