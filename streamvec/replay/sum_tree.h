// Weights by place, of which one is found in proportion to its weight: a tree of sums, 16 to a node.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace streamvec {

// Finding and setting take log16(size) steps over 16 neighbours in memory. Every sum is added up from its 16 parts
// when one of them changes, never corrected by a difference: sums do not drift, and are a function of the weights
// alone, so that a rebuilt tree finds the same places bit for bit. Not thread-safe.
class SumTree {
 public:
  explicit SumTree(size_t size);  // every weight 0

  size_t size() const { return size_; }
  float get(size_t place) const { return leaves_[place / kWidth].weight[place % kWidth]; }
  // REQUIRES: weight is finite and not negative.
  void set(size_t place, float weight);
  // All weights at once, in O(size). REQUIRES: as many as size().
  void assign(std::span<const float> weights);

  double total() const { return top_.sum; }
  float least() const { return top_.least; }  // of the weights that are not 0; infinity when all are
  // For each target the place at which the weights, added up from place 0, exceed it; never one of weight 0. A target
  // past the total finds the last. The targets are used up. Many at once are quicker: their ways down are walked
  // together. REQUIRES: total() > 0, targets >= 0, as many places as targets.
  void find(std::span<double> targets, std::span<size_t> places) const;

 private:
  static constexpr size_t kWidth = 16;
  struct alignas(64) Leaves {
    std::array<float, kWidth> before{};  // the sum of the weights before each
    std::array<float, kWidth> weight{};
  };
  struct alignas(64) Node {
    std::array<double, kWidth> before{};
    std::array<double, kWidth> sum{};
    std::array<float, kWidth> least{};
  };
  struct Summary {
    double sum = 0;
    float least = 0;
  };

  static Summary sum_up(Leaves& leaves);
  static Summary sum_up(Node& node);
  void build();
  void prefetch(size_t level, size_t child) const;

  size_t size_;
  std::vector<Leaves> leaves_;
  std::vector<std::vector<Node>> levels_;  // from above the leaves to the root; none when there is one Leaves
  Summary top_;
};

}  // namespace streamvec
