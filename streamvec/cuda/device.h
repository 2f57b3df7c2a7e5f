// The NVIDIA card of this machine, if there is one. Everything here answers in every build: without CUDA it says so.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "streamvec/core/status.h"

namespace streamvec::cuda {

struct Device {
  std::string name;  // "NVIDIA H200"
  int32_t multiprocessors = 0;
  int64_t memory = 0, free = 0;  // bytes; free at the time of the call
  int64_t block_memory = 0;      // bytes of shared memory that a block of threads can have
};

// The first card. kUnimplemented: this build has no CUDA. kUnavailable: no driver, or no card. kFailedPrecondition: the
// driver is older than this build's CUDA, or the card than what kernels are compiled for. Each says what to try.
Result<Device> find_device();

// What --device means: cpu and cuda as they are, auto is cuda where find_device() is well. An error of find_device()
// for cuda where it is not, kInvalidArgument for any other name.
Result<bool> use_cuda(std::string_view device);

// kResourceExhausted, with both figures, when `bytes` are more than the card has free.
Status check_device_memory(std::string_view what, double bytes, std::string_view advice);

}  // namespace streamvec::cuda
