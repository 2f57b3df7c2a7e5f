// Tables of bf16, in a source of its own: kernels take long to compile.
#include "streamvec/cuda/sgns_block.cuh"

namespace streamvec::cuda {

SgnsKernel bf16_kernel(const SgnsShape& shape) {
  return kernel_for<Bf16Rows, false>(shape);
}

}  // namespace streamvec::cuda
