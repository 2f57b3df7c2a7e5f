// The k best of scores that arrive one by one: a heap whose top is the worst kept.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "streamvec/kernel/top_k.h"

namespace streamvec {

class TopKSelection {
 public:
  // Borrows `excluded`. REQUIRES: k > 0.
  TopKSelection(int32_t k, std::span<const int32_t> excluded) : k_(static_cast<size_t>(k)), excluded_(excluded) {}

  // Only a score above this can enter. Rows must be offered in rising order: then of equal scores the lower row stays.
  float threshold() const { return threshold_; }

  void offer(int32_t row, float score) {
    if (!(score > threshold_) || std::find(excluded_.begin(), excluded_.end(), row) != excluded_.end()) return;
    if (heap_.size() == k_) {
      std::pop_heap(heap_.begin(), heap_.end(), better);
      heap_.pop_back();
    }
    heap_.push_back({row, score});
    std::push_heap(heap_.begin(), heap_.end(), better);
    if (heap_.size() == k_) threshold_ = heap_.front().score;
  }

  // Best first, then default Hits. Ends the selection.
  void write(std::span<Hit> hits) {
    std::sort(heap_.begin(), heap_.end(), better);
    std::copy(heap_.begin(), heap_.end(), hits.begin());
    std::fill(hits.begin() + static_cast<int64_t>(heap_.size()), hits.end(), Hit{});
  }

 private:
  static bool better(const Hit& a, const Hit& b) { return a.score != b.score ? a.score > b.score : a.row < b.row; }

  size_t k_;
  std::span<const int32_t> excluded_;
  std::vector<Hit> heap_;
  float threshold_ = -std::numeric_limits<float>::infinity();
};

}  // namespace streamvec
