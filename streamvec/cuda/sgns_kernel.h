// What the host and the kernels of skip-gram (sgns_block.cuh, sgns_kernel.cu) say to each other.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace streamvec::cuda {

// A word of text: its slot in the lower bits; above, the number of its sentence, of which neighbours' differ.
constexpr int kSlotBits = 27;
constexpr uint32_t kSlotMask = (1u << kSlotBits) - 1;

// Words are worked on in segments of this size at most, with so many on either side looked at.
constexpr int kSegmentWordsMax = 1024;
constexpr int kHaloWords = 128;

struct Segment {
  const uint32_t* words;  // of the whole chunk
  int32_t words_count;    // likewise
  int32_t begin, end;     // the centres
  float lr;
  uint64_t draw;  // seed of the chunk
  int32_t fresh;  // 1: its totals are also counted apart
  int32_t told;   // where in SgnsArguments::told its totals go as well; -1: nowhere
};

struct KernelTotals {
  double loss, slope, fresh_loss;
  unsigned long long pairs, refused, fresh_pairs;
};

struct ToldTotals {
  double loss, slope;
  unsigned long long pairs;
};

// How rows are kept, and how gradients become steps.
struct SgnsKind {
  bool bf16, adagrad;
};

struct SgnsShape {
  int32_t stride;                      // values from row to row, a multiple of 16; those past dim are zero
  int32_t window, centres, negatives;  // of a block, its own negatives
  float share;                         // the weight of a negative for each pair
  int32_t segment_words;               // at most
  SgnsKind kind;
  int32_t inputs() const { return (centres + 2 * window + 15) / 16 * 16; }
  int32_t outputs() const { return (centres + negatives + 15) / 16 * 16; }
  // The negatives of all blocks of a segment are drawn before the first.
  int32_t segment_negatives() const { return (segment_words + centres - 1) / centres * negatives; }
};

struct SgnsArguments {
  SgnsShape shape;
  int32_t inputs, outputs, segment_negatives;  // of the shape
  void* input;                                 // both tables, of fp32 or bf16
  void* output;
  float* sums[2];              // of AdaGrad, by slot: those of input and output
  float per_value;             // 1 / dim
  const uint32_t* thresholds;  // of Subsampling
  int32_t thresholds_count;
  const uint64_t* ends;  // of StratifiedSampler
  const int32_t* guide;
  int32_t shift;
  uint64_t stratum;      // of a block's negatives
  const float2* crowds;  // by slot: how much the steps of a block weigh in a row of input, of output
  const float2* paces;   // by slot: the paces of a row of input, of output (vocab/row_pace.h)
  int32_t crowds_count;  // of both
  float2 pace_longest;   // of the other slots
  float step_max, crowd_max;
  float crowd_scale;  // how many blocks are in work
  const Segment* segments;
  int32_t segments_count;
  int32_t lanes;  // segments that are neighbours in text are this many turns apart
  int32_t* next_segment;
  KernelTotals* totals;
  ToldTotals* told;
};

// Those of sgns_block.cuh.
using SgnsKernel = void (*)(SgnsArguments);
SgnsKernel bf16_kernel(const SgnsShape& shape);
SgnsKernel adagrad_kernel(const SgnsShape& shape);

// Bytes of shared memory that a block needs.
int64_t sgns_block_memory(const SgnsShape& shape);
// Lets kernels of this shape have it. Once.
cudaError_t prepare_sgns_kernel(const SgnsShape& shape);
// All segments, `blocks` of them at once.
cudaError_t launch_sgns_kernel(const SgnsArguments& arguments, int32_t blocks, cudaStream_t stream);

struct RowUpdate {
  int64_t row;
  int64_t at;  // where its values of both tables are, one after the other, `stride` each
};
// Rows of both tables from `values`; AdaGrad's sums begin anew with them.
cudaError_t launch_put_rows(const SgnsArguments& tables, const RowUpdate* updates, int32_t count, const float* values,
                            cudaStream_t stream);
// Values of tables that are kept in bf16, from and to fp32; to the nearest.
cudaError_t launch_to_bf16(const float* from, void* to, int64_t count, cudaStream_t stream);
cudaError_t launch_from_bf16(const void* from, float* to, int64_t count, cudaStream_t stream);

}  // namespace streamvec::cuda
