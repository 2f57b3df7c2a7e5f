#include <algorithm>
#include <cmath>
#include <utility>

#include "streamvec/cuda/muon.h"

namespace streamvec::cuda {
namespace {

constexpr int kMuonThreads = 256;

uint32_t muon_blocks(int64_t items) {
  return static_cast<uint32_t>((items + kMuonThreads - 1) / kMuonThreads);
}

__device__ int64_t muon_thread() {
  return blockIdx.x * int64_t{kMuonThreads} + threadIdx.x;
}

// Nesterov's: the mean as it is, once more drawn towards it. *square += the sum of squares of x.
__global__ void gather_momentum(MuonPart part, float momentum, FiniteChecks checks, float* x, double* square) {
  __shared__ double sums[kMuonThreads / 32];
  const int64_t i = muon_thread();
  float value = 0;
  if (i < part.values.rows * part.values.cols) {
    if (isfinite(*checks.square) && isfinite(*checks.loss)) {
      const float slope = part.slopes.data[i];
      const float mean = part.momentum.data[i] + (1 - momentum) * (slope - part.momentum.data[i]);
      part.momentum.data[i] = mean;
      value = slope + momentum * (mean - slope);
    }
    part.slopes.data[i] = 0;
    x[i] = value;
  }
  double sum = static_cast<double>(value) * value;
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  sum = 0;
  for (double each : sums) sum += each;
  atomicAdd(square, sum);
}

__global__ void bring_to_length_one(int64_t size, const double* square, float* x) {
  const int64_t i = muon_thread();
  if (i < size) x[i] *= static_cast<float>(rsqrt(fmax(*square, kMuonSquareMin)));
}

// to = a x + b to
__global__ void add_multiples(int64_t size, float a, const float* x, float b, float* to) {
  const int64_t i = muon_thread();
  if (i < size) to[i] = a * x[i] + (b == 0 ? 0 : b * to[i]);
}

}  // namespace

Status CardMuon::reserve_for(const CardMatrix& shape) {
  const auto height = static_cast<size_t>(std::min(shape.rows, shape.cols));
  const auto size = static_cast<size_t>(shape.size());
  for (CardBuffer<float>* buffer : {&x_, &next_}) STREAMVEC_RETURN_IF_ERROR(buffer->allocate(size));
  for (CardBuffer<float>* buffer : {&gram_, &factor_}) STREAMVEC_RETURN_IF_ERROR(buffer->allocate(height * height));
  return square_.allocate(1);
}

// A matrix that is higher than wide has its products turned round in place of itself.
Status CardMuon::step(const Blas& blas, cudaStream_t stream, float lr, const MuonPart& part, const FiniteChecks& checks,
                      const MuonRates& rates) {
  const int64_t rows = part.values.rows, cols = part.values.cols, size = rows * cols;
  const int64_t height = std::min(rows, cols);
  const bool high = rows > cols;
  CardMatrix x{x_.data(), rows, cols}, next{next_.data(), rows, cols};
  const CardMatrix gram{gram_.data(), height, height}, factor{factor_.data(), height, height};
  STREAMVEC_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(square_.data(), 0, sizeof(double), stream));
  const uint32_t all = muon_blocks(size), square = muon_blocks(height * height);
  gather_momentum<<<all, kMuonThreads, 0, stream>>>(part, rates.momentum, checks, x.data, square_.data());
  bring_to_length_one<<<all, kMuonThreads, 0, stream>>>(size, square_.data(), x.data);
  for (int32_t k = 0; k < rates.iterations; ++k) {
    STREAMVEC_RETURN_IF_ERROR(blas.multiply(x, high, x, !high, false, gram));
    STREAMVEC_RETURN_IF_ERROR(blas.multiply(gram, false, gram, false, false, factor));
    add_multiples<<<square, kMuonThreads, 0, stream>>>(gram.size(), kMuonCubic, gram.data, kMuonQuintic, factor.data);
    add_multiples<<<all, kMuonThreads, 0, stream>>>(size, kMuonLinear, x.data, 0, next.data);
    STREAMVEC_RETURN_IF_ERROR(high ? blas.multiply(x, false, factor, false, true, next)
                                   : blas.multiply(factor, false, x, false, true, next));
    std::swap(x, next);
  }
  const float length = lr * rates.length * std::sqrt(static_cast<float>(std::max(rows, cols)));
  add_multiples<<<all, kMuonThreads, 0, stream>>>(size, length, x.data, 1, part.values.data);
  STREAMVEC_CUDA_RETURN_IF_ERROR(cudaGetLastError());
  return {};
}

}  // namespace streamvec::cuda
