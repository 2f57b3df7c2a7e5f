#include <algorithm>

#include "streamvec/cuda/memory.cuh"

namespace streamvec::cuda {
namespace {

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Status check_driver() {
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  if (driver == 0) return error(Code::kUnavailable, "no NVIDIA driver was found; try --device cpu");
  if (driver < runtime)
    return error(Code::kFailedPrecondition, "the NVIDIA driver is for CUDA ", version_text(driver),
                 ", this build needs ", version_text(runtime), "; try a newer driver, or --device cpu");
  return {};
}

}  // namespace

Result<Device> find_device() {
  STREAMVEC_RETURN_IF_ERROR(check_driver());
  int count = 0;
  const cudaError_t found = cudaGetDeviceCount(&count);
  if (found != cudaSuccess || count == 0)
    return error(Code::kUnavailable, "no CUDA device was found",
                 found == cudaSuccess ? "" : std::string(" (") + cudaGetErrorString(found) + ")", "; try --device cpu");
  cudaDeviceProp properties{};
  STREAMVEC_CUDA_RETURN_IF_ERROR(cudaGetDeviceProperties(&properties, 0));
  const int capability = 10 * properties.major + properties.minor;
  if (capability < STREAMVEC_CUDA_CAPABILITY_MIN)
    return error(Code::kFailedPrecondition, properties.name, " has compute capability ", properties.major, ".",
                 properties.minor, ", kernels here need ", STREAMVEC_CUDA_CAPABILITY_MIN / 10, ".",
                 STREAMVEC_CUDA_CAPABILITY_MIN % 10, "; try --device cpu");
  size_t free = 0, total = 0;
  STREAMVEC_CUDA_RETURN_IF_ERROR(cudaMemGetInfo(&free, &total));
  Device device;
  device.name = properties.name;
  device.multiprocessors = properties.multiProcessorCount;
  device.memory = static_cast<int64_t>(total);
  device.free = static_cast<int64_t>(free);
  device.block_memory = static_cast<int64_t>(properties.sharedMemPerBlockOptin);
  return device;
}

Status check_device_memory(std::string_view what, double bytes, std::string_view advice) {
  STREAMVEC_ASSIGN_OR_RETURN(const Device device, find_device());
  if (bytes <= static_cast<double>(device.free)) return {};
  const auto megabytes = [](double value) { return static_cast<int64_t>(value / (1 << 20) + 0.5); };
  return error(Code::kResourceExhausted, device.name, " has no memory for ", what, ": ", megabytes(bytes),
               " MB are needed, ", megabytes(static_cast<double>(device.free)), " MB are free; try ", advice);
}

}  // namespace streamvec::cuda
