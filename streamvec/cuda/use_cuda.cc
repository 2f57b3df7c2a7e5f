#include "streamvec/cuda/device.h"

namespace streamvec::cuda {

Result<bool> use_cuda(std::string_view device) {
  if (device == "cpu") return false;
  if (device == "auto") return find_device().ok();
  if (device != "cuda")
    return error(Code::kInvalidArgument, "no device is called '", device, "'; try cpu, cuda or auto");
  const Result<Device> found = find_device();
  if (!found.ok()) return Status(found.status().code(), "--device cuda: " + found.status().message());
  return true;
}

}  // namespace streamvec::cuda
