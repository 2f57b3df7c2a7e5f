#include "streamvec/model/skip_gram_weights.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace streamvec {

SkipGramWeights::SkipGramWeights(const WindowOptions& windows)
    : windows_(windows),
      pad_(static_cast<size_t>(round_up(windows.centres + 2 * windows.window, 16))),
      patterns_((2 * static_cast<size_t>(windows.window) + 2) * 3 * pad_) {
  for (size_t size = 0; size <= 2 * static_cast<size_t>(windows.window) + 1; ++size)
    std::fill_n(patterns_.begin() + static_cast<std::ptrdiff_t>((3 * size + 1) * pad_), size, 1.0f);
}

// 1 in [begin, end), 0 in the other columns.
void SkipGramWeights::write_window(int32_t begin, int32_t end, size_t columns, float* weights) const {
  const float* pattern = patterns_.data() + (3 * static_cast<size_t>(end - begin) + 1) * pad_ - begin;
  for (size_t j = 0; j < columns; j += 16) std::memcpy(weights + j, pattern + j, 16 * sizeof(float));
}

void SkipGramWeights::fill(const WindowPlan& plan, BlockStep& block) {
  block.begin(plan.columns.size(), plan.windows.size() + plan.negatives.size());
  weigh_positives(plan, block);
  weigh_negatives(plan, block);
}

// Weight 1 for each word of a centre's window. What a column is covered by is what negatives will be weighed with: the
// running sum of where windows begin and end, each with a hole at its centre.
void SkipGramWeights::weigh_positives(const WindowPlan& plan, BlockStep& block) {
  cover_.assign(plan.columns.size() + 1, 0);
  const int32_t columns = static_cast<int32_t>(plan.columns.size());
  for (const WindowPlan::Window& window : plan.windows) {
    float* weights = block.add_positive(plan.columns[window.centre], std::max(0, window.centre - windows_.window),
                                        std::min(columns, window.centre + windows_.window + 1));
    write_window(window.begin, window.end, plan.columns.size(), weights);
    weights[window.centre] = 0;
    cover_[window.begin] += 1;
    cover_[window.centre] -= 1;
    cover_[window.centre + 1] += 1;
    cover_[window.end] -= 1;
  }
  cover_.pop_back();
  std::partial_sum(cover_.begin(), cover_.end(), cover_.begin());
}

// Every pair is weighed against `negatives` negatives: each of the shared ones stands for negatives / shared.
void SkipGramWeights::weigh_negatives(const WindowPlan& plan, BlockStep& block) {
  const float share = static_cast<float>(windows_.negatives) / static_cast<float>(windows_.negatives_shared);
  float* common = block.common_weights();
  for (size_t j = 0; j < cover_.size(); ++j) common[j] = share * cover_[j];
  centres_.fill(plan);
  for (Slot negative : plan.negatives) {
    if (centres_.may_hold(negative))
      excuse(plan, negative, share, block);
    else
      block.add_negative(negative);
  }
}

// A negative that is a centre of the block has no weight against that centre's own window.
void SkipGramWeights::excuse(const WindowPlan& plan, Slot negative, float share, BlockStep& block) {
  float* weights = block.add_negative_with_weights(negative);
  std::copy_n(block.common_weights(), plan.columns.size(), weights);
  for (const WindowPlan::Window& window : plan.windows) {
    if (plan.columns[window.centre] != negative) continue;
    for (int32_t j = window.begin; j < window.end; ++j)
      if (j != window.centre) weights[j] = std::max(0.0f, weights[j] - share);
  }
}

}  // namespace streamvec
