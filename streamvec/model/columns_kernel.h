// A pair kernel for tables of which every node has some columns of all rows: products are sums over all columns, so
// each node computes its part of them, the parts are added up everywhere, and the steps are the node's own columns'.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/kernel/pair_block.h"

namespace streamvec {

// Leaves in `values` their sum over all nodes, the same bits everywhere. Every node calls it as often.
using SumOverNodes = std::function<Status(std::span<float> values)>;

// Blocks have this node's columns; all nodes step the same blocks, with the same weights, in the same order. After an
// error of `sum` nothing is changed any more, and blocks are told to be not finite; status() has the error.
class ColumnsPairKernel final : public PairKernel {
 public:
  explicit ColumnsPairKernel(SumOverNodes sum) : sum_(std::move(sum)) {}
  PairBlockResult step(const PairBlock& block) override;
  std::string name() const override { return "simd by columns"; }
  const Status& status() const { return status_; }

 private:
  void multiply_rows(const PairBlock& block);
  // Products become coefficients (pair_block.h).
  PairBlockResult weigh(const PairBlock& block);
  void descend(const PairBlock& block);

  const SumOverNodes sum_;
  Status status_;
  std::vector<float> products_;  // outputs x inputs
  std::vector<float> cuts_x_, cuts_y_;
  std::vector<float> dx_, dy_;
};

}  // namespace streamvec
