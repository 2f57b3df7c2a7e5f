// AdaGrad on tables of both kinds, in a source of its own: kernels take long to compile.
#include "streamvec/cuda/sgns_block.cuh"

namespace streamvec::cuda {

SgnsKernel adagrad_kernel(const SgnsShape& shape) {
  return shape.kind.bf16 ? kernel_for<Bf16Rows, true>(shape) : kernel_for<Fp32Rows, true>(shape);
}

}  // namespace streamvec::cuda
