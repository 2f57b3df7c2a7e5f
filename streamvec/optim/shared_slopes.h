// What a model that steps all its values at once shows of a batch where several nodes make one step of all their
// batches (sync/shared_step.h): its slopes, and what they step.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/kernel/packed_gemm.h"

namespace streamvec {

// Read and changed between two batches, by one side at a time (core/turns.h).
struct SharedSlopes {
  struct Table {
    Matrix* values;    // borrowed, as all of them, and of equal shape
    Matrix* slopes;    // summed over the pairs, divided by kUnit; zero where there was no batch
    Matrix* mean;      // Muon's momentum of those that are evened out, else Adam's
    Matrix* variance;  // Adam's
    bool evened_out;   // by Muon (optim/muon.h)
  };
  // Slopes are sums, so that a node counts by its pairs, and of about the size of a batch's mean.
  static constexpr double kUnit = 8'192;

  std::vector<Table> tables;
  std::shared_ptr<const PackedGemm> products;  // Muon's
  Matrix* steps = nullptr;                     // one value: steps so far
  float adam_share = 1;                        // Adam's rate to Muon's
  double batch = kUnit;                        // pairs of the batch that `rate` is for
  double pairs = 0;                            // whose slopes are there; 0: none, or the last ones have been taken
  float rate = 0;                              // of a step of one such batch
};

}  // namespace streamvec
