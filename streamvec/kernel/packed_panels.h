// The form in which the AVX-512 and AMX products (packed_gemm.h) read their factors: 32-bit words, each one float or
// two neighbouring values of bf16, the earlier one in the lower bits.
//   a  by row: the words of its depth, padded with zeros to whole sixteens
//   b  by panel of 32 columns: for each word of the depth those of the 32 columns; columns that are not there are zero
#pragma once

#include <cstdint>

namespace streamvec {

constexpr int64_t kPanelColumns = 32;

struct PanelGemm {
  const char* name;
  bool pairs;            // words of two bf16 values, not of one float
  int64_t row_multiple;  // so many rows of `a` may be read, whole ones, beyond those asked for
  // c (rows x 32) = a b, or +=, over `words` (a multiple of 16) of the depth.
  void (*multiply)(const uint32_t* a, int64_t a_stride, int64_t rows, const uint32_t* b, int64_t words, bool add,
                   float* c, int64_t c_stride);
};

bool cpu_has_avx512();
const PanelGemm& panel_gemm_f32();   // REQUIRES to run: cpu_has_avx512()
const PanelGemm& panel_gemm_bf16();  // cpu_has_avx512_bf16()
const PanelGemm& panel_gemm_amx();   // cpu_has_amx_bf16()

// Packing a rows x cols matrix of floats, on the CPUs of the products. `words` is its depth, padded.
// Rows are the depth: a left factor as it stands.
void pack_rows(const float* values, int64_t stride, int64_t rows, int64_t cols, bool pairs, int64_t words,
               uint32_t* to);
// Columns are the depth: a left factor from its transpose.
void pack_columns(const float* values, int64_t stride, int64_t rows, int64_t cols, bool pairs, int64_t words,
                  uint32_t* to);
// Likewise for a right factor: as it stands, and from its transpose.
void pack_panels(const float* values, int64_t stride, int64_t rows, int64_t cols, bool pairs, int64_t words,
                 uint32_t* to);
void pack_panels_transposed(const float* values, int64_t stride, int64_t rows, int64_t cols, bool pairs, int64_t words,
                            uint32_t* to);

}  // namespace streamvec
