// How the factors of a level's product lie in shared memory, and how tensor cores take them from there: in tf32 or in
// bf16, sums in fp32. Rows (states, slopes) lie there in fp32, weights in the precision of the product. Lane l of a
// warp has g = l / 4, t = l % 4, as in mma.cuh. Of lstm_kernels.cu only.
#pragma once

#include <cstdint>

#include "streamvec/cuda/mma.cuh"

namespace streamvec::cuda {
namespace {

// Rows are some values longer than they need to be, so that those that a warp reads at once lie in different banks.
struct Tf32 {
  using Weight = float;
  static constexpr int kDepth = 8;  // of one instruction
  static constexpr int kRowRoom = 4, kAcrossRoom = 8, kAlongRoom = 4;

  // a[m]: rows first + 16 m and on, columns k and on.
  template <int kPieces>
  static __device__ void load_rows(const float* tile, int pitch, int first, int k, uint32_t (&a)[kPieces][4]) {
    const int lane = static_cast<int>(threadIdx.x % 32), g = lane / 4, t = lane % 4;
#pragma unroll
    for (int m = 0; m < kPieces; ++m) {
      const float* at = tile + (first + 16 * m + g) * pitch + k + t;
      a[m][0] = to_tf32(at[0]);
      a[m][1] = to_tf32(at[8 * pitch]);
      a[m][2] = to_tf32(at[4]);
      a[m][3] = to_tf32(at[8 * pitch + 4]);
    }
  }
  // b[n]: depths k and on, columns first + n apart and on, of weights that lie [depth][column].
  template <int kPieces>
  static __device__ void load_across(const float* tile, int pitch, int k, int first, int apart,
                                     uint32_t (&b)[kPieces][2]) {
    const int lane = static_cast<int>(threadIdx.x % 32), g = lane / 4, t = lane % 4;
#pragma unroll
    for (int n = 0; n < kPieces; ++n) {
      const float* at = tile + (k + t) * pitch + first + n * apart + g;
      b[n][0] = to_tf32(at[0]);
      b[n][1] = to_tf32(at[4 * pitch]);
    }
  }
  // The same of weights that lie [column][depth].
  template <int kPieces>
  static __device__ void load_along(const float* tile, int pitch, int k, int first, int apart,
                                    uint32_t (&b)[kPieces][2]) {
    const int lane = static_cast<int>(threadIdx.x % 32), g = lane / 4, t = lane % 4;
#pragma unroll
    for (int n = 0; n < kPieces; ++n) {
      const float* at = tile + (first + n * apart + g) * pitch + k + t;
      b[n][0] = to_tf32(at[0]);
      b[n][1] = to_tf32(at[4]);
    }
  }
  static __device__ void add_product(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    multiply_add_tf32(c, a, b[0], b[1]);
  }
};

struct Bf16 {
  using Weight = __nv_bfloat16;
  static constexpr int kDepth = 16;
  static constexpr int kRowRoom = 8, kAcrossRoom = 8, kAlongRoom = 8;

  template <int kPieces>
  static __device__ void load_rows(const float* tile, int pitch, int first, int k, uint32_t (&a)[kPieces][4]) {
    const int lane = static_cast<int>(threadIdx.x % 32), g = lane / 4, t = lane % 4;
#pragma unroll
    for (int m = 0; m < kPieces; ++m) {
      const float* at = tile + (first + 16 * m + g) * pitch + k + 2 * t;
      a[m][0] = pair_at(at);
      a[m][1] = pair_at(at + 8 * pitch);
      a[m][2] = pair_at(at + 8);
      a[m][3] = pair_at(at + 8 * pitch + 8);
    }
  }
  template <int kPieces>
  static __device__ void load_across(const __nv_bfloat16* tile, int pitch, int k, int first, int apart,
                                     uint32_t (&b)[kPieces][2]) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    load_pairs(b, [&](int n, uint32_t(&four)[4]) {
      load_transposed(four, tile + (k + lane % 16) * pitch + first + n * apart);
    });
  }
  template <int kPieces>
  static __device__ void load_along(const __nv_bfloat16* tile, int pitch, int k, int first, int apart,
                                    uint32_t (&b)[kPieces][2]) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    load_pairs(b, [&](int n, uint32_t(&four)[4]) {
      load_matrices(four, tile + (first + n * apart + lane % 8) * pitch + k + lane / 8 % 2 * 8);
    });
  }
  static __device__ void add_product(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    multiply_add(c, a, b[0], b[1]);
  }

 private:
  static __device__ uint32_t pair_at(const float* at) {
    const float2 two = *reinterpret_cast<const float2*>(at);
    const __nv_bfloat162 pair = __floats2bfloat162_rn(two.x, two.y);
    return reinterpret_cast<const uint32_t&>(pair);
  }
  // Pieces by twos: lanes 0 .. 15 name the first one's matrices, the others the second one's; the last of an odd number
  // comes twice.
  template <int kPieces, typename Load>
  static __device__ void load_pairs(uint32_t (&b)[kPieces][2], const Load& load) {
    const int second = static_cast<int>(threadIdx.x % 32) / 16;
#pragma unroll
    for (int n = 0; n < kPieces; n += 2) {
      uint32_t four[4];
      load(min(n + second, kPieces - 1), four);
      b[n][0] = four[0];
      b[n][1] = four[1];
      if (n + 1 == kPieces) continue;
      b[n + 1][0] = four[2];
      b[n + 1][1] = four[3];
    }
  }
};

}  // namespace
}  // namespace streamvec::cuda
