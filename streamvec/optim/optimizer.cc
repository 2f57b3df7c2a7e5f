#include "streamvec/optim/optimizer.h"

#include <cmath>

#include "streamvec/kernel/row_ops.h"

namespace streamvec {
namespace {

class Sgd final : public Optimizer {
 public:
  explicit Sgd(int64_t dim) : dim_(static_cast<int32_t>(dim)) {}
  void step(int64_t, const float* gradient, float lr, float* row) override { add_scaled(gradient, lr, dim_, row); }
  void grow(int64_t) override {}
  std::vector<State> states() override { return {}; }

 private:
  int32_t dim_;
};

// One sum of mean squared gradients a row (as DLRM and others keep it for embeddings): a word that was stepped often
// steps less. A row of state is a cache line of its own, so that threads do not share lines.
class RowAdagrad final : public Optimizer {
 public:
  RowAdagrad(int64_t dim, Matrix sums) : dim_(static_cast<int32_t>(dim)), sums_(std::move(sums)) {}

  void step(int64_t index, const float* gradient, float lr, float* row) override {
    float& sum = *sums_.row(index);
    sum += mean_square(gradient, dim_);
    add_scaled(gradient, lr / std::sqrt(sum + kEpsilon), dim_, row);
  }
  void grow(int64_t rows) override { sums_.grow(rows); }
  std::vector<State> states() override { return {{"adagrad", &sums_}}; }

 private:
  static constexpr float kEpsilon = 1e-10f;
  int32_t dim_;
  Matrix sums_;
};

// Adam with its moments advanced only when a row has a gradient, each row counting its own steps for the correction of
// the first ones ("sparse" or "lazy" Adam): rare words are not decayed while nobody speaks of them.
class Adam final : public Optimizer {
 public:
  Adam(Matrix mean, Matrix variance, Matrix steps)
      : mean_(std::move(mean)), variance_(std::move(variance)), steps_(std::move(steps)) {}

  void step(int64_t index, const float* gradient, float lr, float* row) override {
    if (mean_square(gradient, static_cast<int32_t>(mean_.cols())) == 0) return;  // in a block, but with no part in it
    float& steps = *steps_.row(index);
    steps = std::min(steps + 1, 1e6f);  // far past the point where the correction is 1
    adam_step(gradient, lr, static_cast<int64_t>(steps), AdamRates{}, static_cast<int32_t>(mean_.cols()),
              mean_.row(index), variance_.row(index), row);
  }
  void grow(int64_t rows) override {
    mean_.grow(rows);
    variance_.grow(rows);
    steps_.grow(rows);
  }
  std::vector<State> states() override {
    return {{"adam.mean", &mean_}, {"adam.variance", &variance_}, {"adam.steps", &steps_}};
  }

 private:
  Matrix mean_, variance_, steps_;
};

}  // namespace

Result<OptimizerKind> parse_optimizer(std::string_view name) {
  if (name == "sgd") return OptimizerKind::kSgd;
  if (name == "adagrad") return OptimizerKind::kAdagrad;
  if (name == "adam") return OptimizerKind::kAdam;
  if (name == "muon") return OptimizerKind::kMuon;
  return error(Code::kInvalidArgument, "no optimizer is called '", name, "'; try sgd, adagrad, adam or muon");
}

std::string_view optimizer_name(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kAdagrad:
      return "adagrad";
    case OptimizerKind::kAdam:
      return "adam";
    case OptimizerKind::kMuon:
      return "muon";
    default:
      return "sgd";
  }
}

Result<std::unique_ptr<Optimizer>> make_optimizer(OptimizerKind kind, int64_t rows, int64_t dim, int64_t rows_max) {
  if (kind == OptimizerKind::kSgd) return std::unique_ptr<Optimizer>(std::make_unique<Sgd>(dim));
  if (kind == OptimizerKind::kMuon)
    return error(Code::kInvalidArgument, "muon steps matrices of weights, not rows of a table");
  STREAMVEC_ASSIGN_OR_RETURN(Matrix single, Matrix::make(rows, 1, rows_max));
  if (kind == OptimizerKind::kAdagrad)
    return std::unique_ptr<Optimizer>(std::make_unique<RowAdagrad>(dim, std::move(single)));
  STREAMVEC_ASSIGN_OR_RETURN(Matrix mean, Matrix::make(rows, dim, rows_max));
  STREAMVEC_ASSIGN_OR_RETURN(Matrix variance, Matrix::make(rows, dim, rows_max));
  return std::unique_ptr<Optimizer>(std::make_unique<Adam>(std::move(mean), std::move(variance), std::move(single)));
}

}  // namespace streamvec
