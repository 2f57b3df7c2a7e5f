// Finds negatives that are also centres of their block: word2vec does not push a word away from its own context.
#pragma once

#include <bitset>
#include <span>

#include "streamvec/model/window_plan.h"

namespace streamvec {

// A small filter: most negatives are told apart from all centres by one bit, so that the few others can be compared
// one by one.
class CentreSet {
 public:
  void fill(const WindowPlan& plan) {
    bits_.reset();
    for (const WindowPlan::Window& window : plan.windows) bits_.set(bit(plan.columns[window.centre]));
  }
  bool may_hold(Slot slot) const { return bits_.test(bit(slot)); }

 private:
  static size_t bit(Slot slot) { return static_cast<size_t>(slot) % 1024; }
  std::bitset<1024> bits_;
};

}  // namespace streamvec
