#include "streamvec/replay/sum_tree.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "streamvec/core/status.h"

namespace streamvec {
namespace {

constexpr size_t kWidth = 16;
constexpr float kNone = std::numeric_limits<float>::infinity();

// Running sums of the parts; returns the sum of all.
template <typename T>
double add_up(const std::array<T, kWidth>& parts, std::array<T, kWidth>& before) {
  double sum = 0;
  for (size_t i = 0; i < kWidth; ++i) {
    before[i] = static_cast<T>(sum);
    sum += parts[i];
  }
  return sum;
}

// The last part whose running sum is not above `target`; what is left of the target is meant within that part. Counts
// instead of searching: the comparisons go side by side, and there is no branch to mispredict.
template <typename T, typename Int>
size_t descend(const std::array<T, kWidth>& before, double& target) {
  constexpr size_t kLanes = 16 / sizeof(T);
  using Sums [[gnu::vector_size(16)]] = T;
  using Counts [[gnu::vector_size(16)]] = Int;
  const Sums limit = static_cast<T>(target) - Sums{};
  Counts counts{};
  for (size_t i = 0; i < kWidth; i += kLanes) {
    Sums sums;
    std::memcpy(&sums, &before[i], sizeof(sums));
    counts -= sums <= limit;  // a true lane is -1
  }
  Int count = 0;
  for (size_t i = 0; i < kLanes; ++i) count += counts[i];
  const auto index = static_cast<size_t>(count - 1);
  target -= before[index];
  return index;
}

}  // namespace

SumTree::SumTree(size_t size) : size_(size), leaves_(std::max<size_t>(1, (size + kWidth - 1) / kWidth)) {
  for (size_t count = leaves_.size(); count > 1;) {
    count = (count + kWidth - 1) / kWidth;
    levels_.emplace_back(count);
  }
  build();
}

SumTree::Summary SumTree::sum_up(Leaves& leaves) {
  float least = kNone;
  for (const float weight : leaves.weight) least = std::min(least, weight > 0 ? weight : kNone);
  return {add_up(leaves.weight, leaves.before), least};
}

SumTree::Summary SumTree::sum_up(Node& node) {
  float least = kNone;
  for (const float one : node.least) least = std::min(least, one);
  return {add_up(node.sum, node.before), least};
}

void SumTree::set(size_t place, float weight) {
  size_t child = place / kWidth;
  leaves_[child].weight[place % kWidth] = weight;
  top_ = sum_up(leaves_[child]);
  for (std::vector<Node>& level : levels_) {
    Node& node = level[child / kWidth];
    node.sum[child % kWidth] = top_.sum;
    node.least[child % kWidth] = top_.least;
    top_ = sum_up(node);
    child /= kWidth;
  }
}

void SumTree::assign(std::span<const float> weights) {
  STREAMVEC_CHECK_EQ(weights.size(), size_);
  for (size_t i = 0; i < size_; ++i) leaves_[i / kWidth].weight[i % kWidth] = weights[i];
  build();
}

void SumTree::build() {
  std::vector<Summary> children(leaves_.size());
  std::transform(leaves_.begin(), leaves_.end(), children.begin(), [](Leaves& leaves) { return sum_up(leaves); });
  for (std::vector<Node>& level : levels_) {
    for (Node& node : level) node.least.fill(kNone);
    for (size_t i = 0; i < children.size(); ++i) {
      level[i / kWidth].sum[i % kWidth] = children[i].sum;
      level[i / kWidth].least[i % kWidth] = children[i].least;
    }
    children.resize(level.size());
    std::transform(level.begin(), level.end(), children.begin(), [](Node& node) { return sum_up(node); });
  }
  top_ = children.front();
}

void SumTree::find(std::span<double> targets, std::span<size_t> places) const {
  std::fill(places.begin(), places.end(), 0);
  for (size_t level = levels_.size(); level-- > 0;) {
    const size_t last = (level == 0 ? leaves_.size() : levels_[level - 1].size()) - 1;
    for (size_t i = 0; i < places.size(); ++i) {
      const size_t node = places[i];
      const size_t child = node * kWidth + descend<double, int64_t>(levels_[level][node].before, targets[i]);
      places[i] = std::min(child, last);
      prefetch(level, places[i]);
    }
  }
  for (size_t i = 0; i < places.size(); ++i) {
    size_t place = places[i] * kWidth + descend<float, int32_t>(leaves_[places[i]].before, targets[i]);
    // Rounding, or a target past the total, may lead past the last of the weights that were meant.
    while (get(place) == 0) --place;
    places[i] = place;
  }
}

// What a step below `level` reads.
void SumTree::prefetch(size_t level, size_t child) const {
  const auto* bytes = reinterpret_cast<const char*>(level == 0 ? static_cast<const void*>(&leaves_[child])
                                                               : static_cast<const void*>(&levels_[level - 1][child]));
  __builtin_prefetch(bytes);
  __builtin_prefetch(bytes + 64);
}

}  // namespace streamvec
