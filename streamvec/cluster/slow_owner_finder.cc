#include "streamvec/cluster/slow_owner_finder.h"

#include <algorithm>

namespace streamvec {

void SlowOwnerFinder::pushed(double now_s, int64_t owners) {
  count_push();
  if (looked_s_ < 0) looked_s_ = now_s;
  if (now_s - looked_s_ >= options_.look_s && pushes_ >= options_.look_pushes) look(now_s);
  took_.clear();
  asked_ = owners;
  pushed_s_ = now_s;
}

void SlowOwnerFinder::answered(NodeId owner, double now_s) {
  if (pushed_s_ >= 0) took_.try_emplace(owner, now_s - pushed_s_);
}

// Of an even number of others the later one in the middle: where half of them are near and half are far, those that are
// far are not slow.
void SlowOwnerFinder::count_push() {
  if (std::ssize(took_) < std::max<int64_t>(asked_, 2)) return;  // there is none to compare with, or not all have
  ++pushes_;
  std::vector<double> others;
  for (const auto& [owner, took_s] : took_) {
    others.clear();
    for (const auto& [other, other_s] : took_)
      if (other != owner) others.push_back(other_s);
    const auto middle = others.begin() + std::ssize(others) / 2;
    std::nth_element(others.begin(), middle, others.end());
    Owner& counted = owners_[owner];
    counted.took_s += took_s;
    counted.others_s += *middle;
    if (took_s <= options_.times * *middle || took_s <= *middle + options_.late_min_s) continue;
    ++counted.late;
    counted.late_s += took_s - *middle;
  }
}

void SlowOwnerFinder::look(double now_s) {
  const auto pushes = static_cast<double>(pushes_);
  for (auto& [node, owner] : owners_) {
    const bool is_slow = owner.late >= options_.late_min && owner.late_s > options_.held_most * (now_s - looked_s_);
    owner = {0,
             0,
             0,
             0,
             {node, owner.took_s / pushes, owner.others_s / pushes},
             std::clamp(owner.looks + (is_slow ? 1 : -1), 0, options_.looks)};
  }
  looked_s_ = now_s;
  pushes_ = 0;
}

void SlowOwnerFinder::begin_anew() {
  owners_.clear();
  took_.clear();
  pushed_s_ = looked_s_ = -1;
  pushes_ = 0;
}

std::vector<SlowOwner> SlowOwnerFinder::slow() const {
  std::vector<SlowOwner> slow;
  for (const auto& [node, owner] : owners_)
    if (owner.looks >= options_.looks) slow.push_back(owner.last);
  return slow;
}

}  // namespace streamvec
