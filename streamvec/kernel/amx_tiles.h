// The tile registers of AMX as all products here use them: one instruction multiplies a 16 x 32 by a 32 x 16 tile of
// bf16 and adds into 16 x 16 fp32 sums, or tiles twice as deep of 8 bits into sums of whole numbers.
#pragma once

namespace streamvec {

// Makes all eight tiles 16 rows of 64 bytes, on the calling thread; quick when they are already. REQUIRES:
// cpu_has_amx_bf16() (bf16_gemm.h).
void configure_amx_tiles();

}  // namespace streamvec
