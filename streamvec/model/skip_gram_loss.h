// Skip-gram with negative sampling over vectors that something else computes: loss and slopes at the vectors.
//   loss = sum over pairs of -log sigma(u . v) + sum over negatives of -weight * log sigma(-u . v)
// Slopes point upwards: they are those of -loss.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/kernel/row_buffer.h"

namespace streamvec {

struct VectorPair {
  int32_t centre;  // row of the centres
  int32_t output;  // row of the outputs
};

// Negatives that every pair of the batch meets.
struct NegativePool {
  std::vector<int32_t> outputs;  // rows of the outputs, each once
  std::vector<float> weights;    // by place in the pool: what one pair gives it
};

// Holds the memory of a batch; one per thread. Rows of centres and outputs start on 64-byte boundaries and are padded
// with zeros to whole vectors of 16 floats, those of the slopes padded likewise.
class SkipGramLoss {
 public:
  // Adds the slopes of pairs that belong together (attract) or do not, each of weight 1, and returns their loss.
  double climb_pairs(std::span<const VectorPair> pairs, bool attract, MatrixView<const float> centres,
                     MatrixView<const float> outputs, MatrixView<float> centre_slopes, MatrixView<float> output_slopes);
  // The same for the negatives of `pairs`: each pair's centre against the whole pool, as one matrix product. A pair
  // whose output is in the pool is excused from it.
  double climb_pool(std::span<const VectorPair> pairs, const NegativePool& pool, MatrixView<const float> centres,
                    MatrixView<const float> outputs, MatrixView<float> centre_slopes, MatrixView<float> output_slopes);

 private:
  void fill_weights(std::span<const VectorPair> pairs, const NegativePool& pool, int64_t centres, int64_t outputs);

  RowBuffer pooled_, pooled_slopes_, weights_, products_;
  std::vector<int32_t> counts_, places_;
};

}  // namespace streamvec
