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

// tf32 numbers: fp32 of which products do not look at the last 13 bits. To the nearest, as cvt.rna has it, but cheaper;
// NaN may become something else.
__device__ inline uint32_t to_tf32(float x) {
  return __float_as_uint(x) + 0x1000u;
}
// c += a b in tf32: a 16 x 8, b 8 x 8. Lane l gives a at [g][t], [g + 8][t], [g][t + 4], [g + 8][t + 4], b at [t][g],
// [t + 4][g]; c as above.
__device__ inline void multiply_add_tf32(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// 16 bytes of global memory to shared memory, later; zeros where they are not `there`, and `from` is not read.
__device__ inline void copy_later(void* to, const void* from, bool there) {
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(at), "l"(from), "r"(there ? 16 : 0) : "memory");
}
// Copies are counted in groups, one for each call of the first.
__device__ inline void end_copy_group() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int kGroupsLeft>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" : : "n"(kGroupsLeft) : "memory");
}

// Adds four values to memory at a 16-byte boundary, each by itself without loss, and does not wait.
__device__ inline void add_to(float* at, float x, float y, float z, float w) {
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1,%2,%3,%4};"
               :
               : "l"(at), "f"(x), "f"(y), "f"(z), "f"(w)
               : "memory");
}

// Likewise four values of bf16 at an 8-byte boundary, as pairs.
__device__ inline void add_to(__nv_bfloat16* at, uint32_t xy, uint32_t zw) {
  asm volatile("red.relaxed.gpu.global.add.noftz.v2.bf16x2 [%0], {%1,%2};" : : "l"(at), "r"(xy), "r"(zw) : "memory");
}

}  // namespace streamvec::cuda
