// Kernels that work for both encoders at once: the z of a block of threads is the encoder's.
#pragma once

namespace streamvec::cuda {

// What is of the block's encoder. Chosen, not indexed: arguments then stay where they are.
template <typename T>
__device__ const T& of_side(const T (&both)[2]) {
  return blockIdx.z == 0 ? both[0] : both[1];
}

}  // namespace streamvec::cuda
