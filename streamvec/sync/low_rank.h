// A matrix that several nodes have changed, as a product of two thin ones (PowerSGD: Vogels et al. 2019): one step of
// power iteration on the mean of the changes, begun from what the last round found. Rows + columns values times the
// rank travel instead of rows times columns. What a node's change has outside the space found is its own to keep.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace streamvec {

// Every node has its own, made with equal arguments; all see the same means, so that all find the same space.
// Matrices are row by row, without padding.
class LowRank {
 public:
  // REQUIRES: all above 0. A rank that is more than rows or columns is cut to that.
  LowRank(int64_t rows, int64_t cols, int64_t rank, uint64_t seed);

  int64_t left_size() const { return rows_ * rank_; }
  int64_t right_size() const { return cols_ * rank_; }
  // left = change * the space of the last round.
  void project(std::span<const float> change, std::span<float> left) const;
  // The space of this round: an orthonormal basis of what the mean of all nodes' `left` spans.
  void span_space(std::span<const float> left);
  // right = change^T * basis.
  void project_back(std::span<const float> change, std::span<float> right) const;
  // What a `right` stands for: basis * right^T. Of a node's own, what it has said of its change; of the mean, the mean
  // of all that was said.
  void expand(std::span<const float> right, std::span<float> change) const;
  // The mean of all nodes' `right`, which the next round begins from; columns in which nothing was said stay.
  void keep(std::span<const float> right);
  // That, as it is: all that a round leaves behind for the next.
  std::span<float> kept() { return right_; }

 private:
  const int64_t rows_, cols_, rank_;
  std::vector<float> right_;  // cols x rank
  std::vector<float> basis_;  // rows x rank
};

}  // namespace streamvec
