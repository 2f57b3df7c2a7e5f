#include "streamvec/model/window_plan.h"

#include <algorithm>

namespace streamvec {

WindowOptions settled(WindowOptions options) {
  // Kernels work on inputs and outputs in sixteens: centres + 2 * window, and centres + negatives_shared, fill them.
  if (options.centres == 0) options.centres = (2 * options.window + 16 + 15) / 16 * 16 - 2 * options.window;
  if (options.negatives_shared == 0 && options.negatives > 0) {
    // A word stands in (window + 1) windows on average; if each drew its own negatives it would meet `wanted` of
    // them. It stands in (centres + 2 * window) / centres blocks.
    const int64_t wanted = int64_t{options.negatives} * (options.window + 1);
    const int64_t inputs = options.centres + 2 * options.window;
    const int64_t shared = (wanted * options.centres + inputs - 1) / inputs;
    const int64_t outputs = (shared + options.centres + 7) / 8 * 8;
    options.negatives_shared = static_cast<int32_t>(std::max<int64_t>(outputs - options.centres, 1));
  }
  return options;
}

void WindowPlanner::begin(const Chunk& chunk, const SamplingTables& tables, Random& random) {
  tables_ = &tables;
  random_ = &random;
  kept_.resize(chunk.slots.size());
  sentence_ends_.clear();
  size_t kept = 0;
  int32_t begin = 0;
  for (int32_t end : chunk.sentence_ends) {
    for (int32_t i = begin; i < end; ++i) {  // no branch: which words are kept cannot be foreseen
      kept_[kept] = chunk.slots[i];
      kept += tables.subsampling.keep(chunk.slots[i], random.next_u32());
    }
    sentence_ends_.push_back(static_cast<int32_t>(kept));
    begin = end;
  }
  kept_.resize(kept);
  sentence_ = 0;
  next_centre_ = 0;
}

bool WindowPlanner::next(WindowPlan& plan) {
  const int32_t size = static_cast<int32_t>(kept_.size());
  while (next_centre_ < size) {
    const int32_t first = next_centre_;
    const int32_t last = std::min(size, first + options_.centres);
    const int32_t column0 = std::max(0, first - options_.window);
    const int32_t column1 = std::min(size, last + options_.window);
    plan.columns.assign(kept_.begin() + column0, kept_.begin() + column1);
    plan.windows.clear();
    for (int32_t i = first; i < last; ++i) plan.windows.push_back({i - column0, 0, 0});
    plan_windows(plan);
    if (plan.pairs == 0) continue;
    plan.negatives.resize(options_.negatives_shared);
    tables_->negatives.sample(*random_, plan.negatives);
    return true;
  }
  return false;
}

void WindowPlanner::plan_windows(WindowPlan& plan) {
  plan.pairs = 0;
  const int32_t column0 = next_centre_ - plan.windows.front().centre;
  for (WindowPlan::Window& window : plan.windows) {
    while (sentence_ends_[sentence_] <= next_centre_) ++sentence_;
    const int32_t sentence_begin = sentence_ == 0 ? 0 : sentence_ends_[sentence_ - 1];
    const int32_t reach = 1 + static_cast<int32_t>(random_->below(static_cast<uint32_t>(options_.window)));
    window.begin = std::max(next_centre_ - reach, sentence_begin) - column0;
    window.end = std::min(next_centre_ + reach + 1, sentence_ends_[sentence_]) - column0;
    plan.pairs += window.end - window.begin - 1;
    ++next_centre_;
  }
}

}  // namespace streamvec
