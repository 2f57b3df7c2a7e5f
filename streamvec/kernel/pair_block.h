// The arithmetic that every word model here trains with: one block of input rows against one block of output rows.
//
// n inputs x_j and m outputs y_i; the first `positives` outputs are words that did occur (label 1), the others
// negatives (label 0). With weights w_ij >= 0 the block's loss is
//   sum_ij w_ij * softplus(label_i ? -y_i.x_j : y_i.x_j)        softplus(z) = log(1 + e^z) = -log sigma(-z)
// and one step goes down its slope, every derivative taken at the old values:
//   c_ij = scale * w_ij * (label_i - sigma(y_i.x_j)),   dx_j = a_j sum_i c_ij y_i,   dy_i = b_i sum_j c_ij x_j.
// a_j and b_i are the rows' paces (1 where none are given) unless the summed step is too long to trust a slope taken at
// one point: a_j is cut so that a_j sum_i |c_ij| <= step_max, or the row's own, and b_i likewise.
// Skip-gram fills w with the windows of some neighbouring centres; CBOW with a diagonal.
//
// The same function stands here as a readable reference, as portable SIMD, and twice in bf16 with fp32 sums
// (AVX-512 dot products, AMX tiles); pair_block_test.cc holds them against each other.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"

namespace streamvec {

// One block. Rows are `dim` floats long, start on 64-byte boundaries and are followed by zeros up to a multiple of
// 16 floats. Weight rows have n floats followed by zeros up to a multiple of 16, and start on 64-byte boundaries too.
struct PairBlock {
  int32_t inputs = 0;     // n
  int32_t positives = 0;  // outputs [0, positives) have label 1
  int32_t outputs = 0;    // m
  int32_t dim = 0;
  const float* const* x = nullptr;       // n rows
  const float* const* y = nullptr;       // m rows
  const float* const* weight = nullptr;  // m rows; negatives may share one
  // `positives` values each: w_ij = 0 for j outside [begin, end). Both rise with i, and no band begins after the one
  // before it has ended: rows between bands are visited without a look at whether they are finite.
  const int32_t* band_begin = nullptr;
  const int32_t* band_end = nullptr;
  float scale = 1;                     // the learning rate, or 1 where an optimiser follows
  float step_max = 0;                  // 0: steps are not cut
  const float* input_max = nullptr;    // n values above 0, each row's own in the place of step_max; none: all have that
  const float* output_max = nullptr;   // m values, likewise
  const float* input_pace = nullptr;   // n values above 0: how much longer than others' a row's step is; none: 1
  const float* output_pace = nullptr;  // m values, likewise

  const float* const* upcoming = nullptr;  // rows that the next block will need, to be fetched meanwhile
  int32_t upcoming_count = 0;

  float* const* dx = nullptr;  // n rows to which dx_j is added; may be x itself, with a row named twice
  float* const* dy = nullptr;  // m rows to which dy_i is added; may be y itself, likewise
};

struct PairBlockResult {
  double loss = 0;
  double slope = 0;    // sum_ij w_ij |label_i - sigma(y_i.x_j)|: the gradient at the products, in the 1-norm
  bool finite = true;  // false: a row held NaN or Inf (or a product overflowed), and nothing was changed
};

// A kernel with the scratch memory it needs. One per thread. Equal blocks give equal bits.
class PairKernel {
 public:
  virtual ~PairKernel() = default;
  virtual PairBlockResult step(const PairBlock& block) = 0;
  // What ran, for reports: "reference", "simd AVX3", "bf16 AVX-512", "bf16 AMX".
  virtual std::string name() const = 0;
};

// kind: reference, simd, bf16 (AVX-512 BF16 dot products), amx (tiles), or auto, the fastest that this machine has.
// kInvalidArgument for a kind nobody knows, kFailedPrecondition when this machine lacks its instructions.
Result<std::unique_ptr<PairKernel>> make_pair_kernel(std::string_view kind);

// The kinds this machine can run.
std::vector<std::string> pair_kernels_available();
// What "auto" stands for here.
std::string fastest_pair_kernel();

std::unique_ptr<PairKernel> make_reference_pair_kernel();
std::unique_ptr<PairKernel> make_simd_pair_kernel();
std::unique_ptr<PairKernel> make_bf16_pair_kernel();  // REQUIRES: cpu_has_avx512_bf16()
std::unique_ptr<PairKernel> make_amx_pair_kernel();   // REQUIRES: cpu_has_amx_bf16()

}  // namespace streamvec
