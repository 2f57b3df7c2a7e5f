// Memory on the card and beside it, and CUDA's errors as values. Of sources that are compiled with CUDA only.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "streamvec/core/status.h"
#include "streamvec/cuda/copies.h"
#include "streamvec/cuda/device.h"

namespace streamvec::cuda {

inline Status status_of(cudaError_t code, std::string_view doing) {
  if (code == cudaSuccess) return {};
  return error(code == cudaErrorMemoryAllocation ? Code::kResourceExhausted : Code::kInternal,
               "the CUDA device failed (", doing, "): ", cudaGetErrorString(code), "; try --device cpu");
}

#define STREAMVEC_CUDA_RETURN_IF_ERROR(call) STREAMVEC_RETURN_IF_ERROR(::streamvec::cuda::status_of((call), #call))

// `size` values of T on the card, or in host memory that the card can copy from at full speed. Not initialised.
template <typename T, bool kOnCard>
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer() { release(); }

  Status allocate(size_t size) {
    if (size <= size_ && data_ != nullptr) return {};
    release();
    void* memory = nullptr;
    const size_t bytes = (size > 0 ? size : 1) * sizeof(T);
    const cudaError_t code = kOnCard ? cudaMalloc(&memory, bytes) : cudaMallocHost(&memory, bytes);
    if (code == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      if (kOnCard)
        STREAMVEC_RETURN_IF_ERROR(check_device_memory("a buffer", static_cast<double>(bytes), "--device cpu"));
    }
    STREAMVEC_CUDA_RETURN_IF_ERROR(code);
    data_ = static_cast<T*>(memory);
    size_ = size;
    return {};
  }
  T* data() const { return data_; }
  size_t size() const { return size_; }
  T& operator[](size_t i) const { return data_[i]; }

 private:
  void release() {
    if (data_ == nullptr) return;
    kOnCard ? cudaFree(data_) : cudaFreeHost(data_);
    data_ = nullptr;
    size_ = 0;
  }
  T* data_ = nullptr;
  size_t size_ = 0;
};
template <typename T>
using CardBuffer = Buffer<T, true>;
template <typename T>
using PinnedBuffer = Buffer<T, false>;

// All copies between the host and the card are made by these, and counted (copies.h).
enum class Way { kFromCard, kToCard };
inline void count_copy(Way way, size_t bytes) {
  count_copy(way == Way::kToCard, static_cast<int64_t>(bytes));
}
// In the order of the stream.
inline cudaError_t copy_later(Way way, void* to, const void* from, size_t bytes, cudaStream_t stream) {
  count_copy(way, bytes);
  return cudaMemcpyAsync(to, from, bytes, way == Way::kToCard ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost,
                         stream);
}
// Waits, also for what the default stream has to do before.
inline cudaError_t copy_now(Way way, void* to, const void* from, size_t bytes) {
  count_copy(way, bytes);
  const cudaError_t code =
      cudaMemcpy(to, from, bytes, way == Way::kToCard ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost);
  return code == cudaSuccess ? cudaStreamSynchronize(nullptr) : code;  // it may be on its way yet
}
// Likewise, `rows` rows of `width` bytes each; a pitch is what lies from one to the next.
inline cudaError_t copy_rows_now(Way way, void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                 size_t rows) {
  count_copy(way, width * rows);
  const cudaError_t code = cudaMemcpy2D(to, to_pitch, from, from_pitch, width, rows,
                                        way == Way::kToCard ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost);
  return code == cudaSuccess ? cudaStreamSynchronize(nullptr) : code;
}

// Waits until the values have left host memory.
template <typename T>
Status upload(std::span<const T> values, CardBuffer<T>& to, cudaStream_t stream) {
  STREAMVEC_RETURN_IF_ERROR(to.allocate(values.size()));
  STREAMVEC_CUDA_RETURN_IF_ERROR(copy_later(Way::kToCard, to.data(), values.data(), values.size_bytes(), stream));
  STREAMVEC_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream));
  return {};
}

}  // namespace streamvec::cuda
