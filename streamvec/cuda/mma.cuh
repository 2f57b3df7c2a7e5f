// The tensor cores' instructions that kernels here use, one function each. Lane l of a warp has g = l / 4, t = l % 4.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace streamvec::cuda {

// Four 8 x 8 matrices of bf16 from shared memory; lanes 8 i .. 8 i + 7 give the addresses of the rows of matrix i. Lane
// l gets [g][2 t], [g][2 t + 1] of each; of the transposed ones [2 t][g], [2 t + 1][g].
__device__ inline void load_matrices(uint32_t (&r)[4], const __nv_bfloat16* row) {
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at)
               : "memory");
}
__device__ inline void load_transposed(uint32_t (&r)[4], const __nv_bfloat16* row) {
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at)
               : "memory");
}

// c += a b: a 16 x 16, b 16 x 8, c 16 x 8. Lane l has c at [g][2 t], [g][2 t + 1], [g + 8][2 t], [g + 8][2 t + 1].
__device__ inline void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Adds four values to memory at a 16-byte boundary, each by itself without loss, and does not wait.
__device__ inline void add_to(float* at, float x, float y, float z, float w) {
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1,%2,%3,%4};"
               :
               : "l"(at), "f"(x), "f"(y), "f"(z), "f"(w)
               : "memory");
}

}  // namespace streamvec::cuda
