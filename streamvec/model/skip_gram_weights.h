// The weights of a skip-gram block: every word of a centre's window against the centre, and all against the block's
// shared negatives.
#pragma once

#include <vector>

#include "streamvec/model/block_step.h"
#include "streamvec/model/centre_set.h"
#include "streamvec/model/window_plan.h"

namespace streamvec {

// Keeps scratch memory: one per thread.
class SkipGramWeights {
 public:
  // REQUIRES: settled options.
  explicit SkipGramWeights(const WindowOptions& windows);

  // Begins a block with the plan's columns as inputs and adds its outputs with their weights.
  void fill(const WindowPlan& plan, BlockStep& block);

 private:
  void write_window(int32_t begin, int32_t end, size_t columns, float* weights) const;
  void weigh_positives(const WindowPlan& plan, BlockStep& block);
  void weigh_negatives(const WindowPlan& plan, BlockStep& block);
  static void excuse(const WindowPlan& plan, Slot negative, float share, BlockStep& block);

  const WindowOptions windows_;
  CentreSet centres_;
  std::vector<float> cover_;
  // For each length of a window so many ones, with pad_ zeros before and after: rows of weights are copied from there.
  size_t pad_ = 0;
  std::vector<float> patterns_;
};

}  // namespace streamvec
