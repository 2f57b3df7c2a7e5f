// Skip-gram in minibatches with Adam on the card, as the program of 2018 had it (reproduce/sgns_2018.h): every pair
// with negatives of its own, the summed loss, a slope for all rows of both tables, and a step of Adam for all of them,
// also for rows that had no slope. Two kernels a batch; pairs and tables stay on the card.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "streamvec/core/status.h"
#include "streamvec/vocab/sampling.h"

namespace streamvec::cuda {

struct WordPair {
  Slot centre, context;
};

struct PairAdamOptions {
  int64_t rows = 0;  // of each table
  int64_t dim = 200;
  int32_t negatives = 10;  // at most 31
  float lr = 1e-4f;
};

// Not thread-safe. Errors of the card come late, with whatever call comes next.
class PairAdam {
 public:
  virtual ~PairAdam() = default;
  // Both tables, the input's rows first, `dim` values a row: as Sgns2018::values().
  virtual Status put(std::span<const float> values) = 0;
  virtual Status get(std::span<float> values) = 0;
  virtual Status set_pairs(std::span<const WordPair> pairs) = 0;
  virtual Status set_negatives(const AliasTable& table) = 0;
  // Trains on all pairs once, in order, `batch` at a time. Negative k of pair i is drawn with negative_draw(draw, i, k)
  // (draws.h). Returns the summed loss, each batch's taken before its step.
  virtual Result<double> run_epoch(int64_t batch, uint64_t draw) = 0;
};

// The errors of find_device(), kInvalidArgument for more than 512 dimensions or 31 negatives, kResourceExhausted.
Result<std::unique_ptr<PairAdam>> make_pair_adam(const PairAdamOptions& options);

}  // namespace streamvec::cuda
