#include "streamvec/kernel/pair_block.h"

#include "streamvec/kernel/bf16_gemm.h"

namespace streamvec {

std::vector<std::string> pair_kernels_available() {
  std::vector<std::string> kinds{"reference", "simd"};
  if (cpu_has_avx512_bf16()) kinds.push_back("bf16");
  if (cpu_has_amx_bf16()) kinds.push_back("amx");
  return kinds;
}

std::string fastest_pair_kernel() {
  if (cpu_has_amx_bf16()) return "amx";
  // Zen 4 and 5 do as many bf16 dot products a cycle as fp32 FMAs, of twice the work each; Intel's cores do a quarter
  // as many, so that fp32 is faster there.
  return cpu_has_avx512_bf16() && __builtin_cpu_is("amd") ? "bf16" : "simd";
}

Result<std::unique_ptr<PairKernel>> make_pair_kernel(std::string_view kind) {
  if (kind == "auto") return make_pair_kernel(fastest_pair_kernel());
  if (kind == "reference") return make_reference_pair_kernel();
  if (kind == "simd") return make_simd_pair_kernel();
  const bool bf16 = kind == "bf16", amx = kind == "amx";
  if (!bf16 && !amx)
    return error(Code::kInvalidArgument, "no kernel is called '", kind, "'; try auto, reference, simd, bf16 or amx");
  if (bf16 && !cpu_has_avx512_bf16())
    return error(Code::kFailedPrecondition, "this CPU has no AVX-512 BF16 instructions; try --kernel auto");
  if (amx && !cpu_has_amx_bf16())
    return error(Code::kFailedPrecondition, "this CPU has no AMX bf16 tiles, or the kernel keeps them from us; try ",
                 "--kernel auto");
  return amx ? make_amx_pair_kernel() : make_bf16_pair_kernel();
}

}  // namespace streamvec
