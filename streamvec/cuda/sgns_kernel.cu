// Which kernel trains, and what moves rows to and from tables.
#include "streamvec/cuda/sgns_block.cuh"

namespace streamvec::cuda {
namespace {

SgnsKernel kernel_of(const SgnsShape& shape) {
  if (shape.kind.adagrad) return adagrad_kernel(shape);
  return shape.kind.bf16 ? bf16_kernel(shape) : kernel_for<Fp32Rows, false>(shape);
}

template <typename Value>
__global__ void put_rows(const SgnsArguments a, const RowUpdate* updates, const float* values) {
  const RowUpdate update = updates[blockIdx.x];
  const int32_t stride = a.shape.stride;
  for (int32_t d = threadIdx.x; d < stride; d += blockDim.x) {
    static_cast<Value*>(a.input)[update.row * stride + d] = values[update.at + d];
    static_cast<Value*>(a.output)[update.row * stride + d] = values[update.at + stride + d];
  }
  if (a.shape.kind.adagrad && threadIdx.x < 2) a.sums[threadIdx.x][update.row] = 0;
}

template <typename From, typename To>
__global__ void convert(const From* from, To* to, int64_t count) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) to[i] = from[i];
}
constexpr int kConvertBlocks = 512, kConvertThreads = 256;

}  // namespace

int64_t sgns_block_memory(const SgnsShape& shape) {
  Shared s;
  return static_cast<int64_t>(lay_out(shape, shape.inputs(), shape.outputs(), shape.segment_negatives(), nullptr, s));
}

cudaError_t prepare_sgns_kernel(const SgnsShape& shape) {
  return cudaFuncSetAttribute(kernel_of(shape), cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(sgns_block_memory(shape)));
}

cudaError_t launch_sgns_kernel(const SgnsArguments& arguments, int32_t blocks, cudaStream_t stream) {
  const SgnsKernel kernel = kernel_of(arguments.shape);
  kernel<<<blocks, kThreads, sgns_block_memory(arguments.shape), stream>>>(arguments);
  return cudaGetLastError();
}

cudaError_t launch_put_rows(const SgnsArguments& tables, const RowUpdate* updates, int32_t count, const float* values,
                            cudaStream_t stream) {
  const auto put = tables.shape.kind.bf16 ? put_rows<__nv_bfloat16> : put_rows<float>;
  put<<<count, 128, 0, stream>>>(tables, updates, values);
  return cudaGetLastError();
}

cudaError_t launch_to_bf16(const float* from, void* to, int64_t count, cudaStream_t stream) {
  convert<<<kConvertBlocks, kConvertThreads, 0, stream>>>(from, static_cast<__nv_bfloat16*>(to), count);
  return cudaGetLastError();
}

cudaError_t launch_from_bf16(const void* from, float* to, int64_t count, cudaStream_t stream) {
  convert<<<kConvertBlocks, kConvertThreads, 0, stream>>>(static_cast<const __nv_bfloat16*>(from), to, count);
  return cudaGetLastError();
}

}  // namespace streamvec::cuda
