// How a table's rows go up the slope their gradients show. Plain SGD has no state and is done by the kernels in place;
// the others keep state beside each row, which is saved in checkpoints under "<table>.<state>".
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"

namespace streamvec {

enum class OptimizerKind { kSgd, kAdagrad, kAdam, kMuon };

Result<OptimizerKind> parse_optimizer(std::string_view name);  // sgd, adagrad, adam, muon
std::string_view optimizer_name(OptimizerKind kind);

// The state of one table. Threads may step different rows at once, and the same row with the races that lock-free
// training accepts; grow() needs the table to itself.
class Optimizer {
 public:
  struct State {
    std::string name;
    Matrix* values;
  };
  virtual ~Optimizer() = default;
  // Moves `row` (row `index` of the table) up the slope `gradient`.
  virtual void step(int64_t index, const float* gradient, float lr, float* row) = 0;
  virtual void grow(int64_t rows) = 0;
  // What a checkpoint keeps. Empty for SGD.
  virtual std::vector<State> states() = 0;
};

// For a table of `rows` rows that may grow to rows_max. kSgd gives one that adds lr * gradient. kInvalidArgument for
// kMuon, which steps whole matrices (muon.h).
Result<std::unique_ptr<Optimizer>> make_optimizer(OptimizerKind kind, int64_t rows, int64_t dim, int64_t rows_max);

}  // namespace streamvec
