// Small matrix products of bf16 operands with fp32 sums, by AVX-512 dot products; they read packed operands
// (pair_block_bf16.cc packs them):
//   a  row-major, `depth` values a row, pairs of neighbouring depth values in one 32-bit word;
//   b  depth / 2 rows of `columns` such words: word [k][j] holds the values (2k, j) and (2k + 1, j).
#pragma once

#include <cstdint>

#include "streamvec/kernel/pair_block_bands.h"
#include "streamvec/kernel/row_prefetch.h"

namespace streamvec {

using Bf16Pair = uint32_t;  // the lower half is the earlier value

struct Bf16Gemm {
  const char* name;
  // c[i * columns + j] = sum_k a(i, k) b(k, j) for the first block.dim of `depth` values k: for every j of a negative
  // i, and of a positive too, or with visits_bands_alone(block) at least at its visited_inputs(); elsewhere its row of
  // c holds 0 or that sum. a is padded with zeros to whole sixteens of rows, and so is what is written of c. REQUIRES:
  // columns a multiple of 16, depth of 32, zeros in a and b from block.dim on.
  void (*products)(const PairBlock& block, const Bf16Pair* a, const Bf16Pair* b, int32_t columns, int32_t depth,
                   float* c);
  // out[i][j] += cut[i] * sum_k a(i, k) b(k, j) for i < rows, j < dim; a is padded with zeros to 16 rows, b has
  // `columns` (dim rounded up to 32). near[i / 4] holds the only k for which rows i .. i + 3 have values other than 0.
  // Two rows are asked of `prefetch` for each row.
  void (*multiply_add)(const Bf16Pair* a, const Bf16Pair* b, int32_t rows, int32_t dim, int32_t columns, int32_t depth,
                       const RangePair* near, const float* cut, RowPrefetch& prefetch, float* const* out);
};

bool cpu_has_avx512_bf16();
// True when the CPU has AMX bf16 tiles and the kernel has let this process use them (asked for on the first call).
bool cpu_has_amx_bf16();
const Bf16Gemm& bf16_gemm_avx512();

}  // namespace streamvec
