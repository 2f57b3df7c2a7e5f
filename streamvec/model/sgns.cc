// Skip-gram with negative sampling (Mikolov et al. 2013): the words around a centre each predict it. As in word2vec.c
// the surrounding words' vectors come from the input table, the centre's and the negatives' from the output table.
#include <algorithm>

#include "streamvec/model/block_step.h"
#include "streamvec/model/centre_set.h"
#include "streamvec/model/model.h"
#include "streamvec/model/workers.h"

namespace streamvec {
namespace {

class SgnsWorker final : public ModelWorker {
 public:
  SgnsWorker(const WindowOptions& windows, Parameters& parameters, std::unique_ptr<PairKernel> kernel)
      : windows_(windows), planner_(windows), block_(parameters, std::move(kernel)) {}

  StepStats step(const Chunk& chunk, const SamplingTables& tables, float lr, Random& random) override {
    StepStats stats;
    planner_.begin(chunk, tables, random);
    // The next block is planned before this one is run, so that its rows are on their way meanwhile.
    bool more = planner_.next(plan_);
    while (more) {
      more = planner_.next(next_plan_);
      run(more, lr, stats);
      std::swap(plan_, next_plan_);
    }
    return stats;
  }

  std::string kernel_name() const override { return block_.kernel_name(); }

 private:
  // Runs plan_, with an eye on next_plan_ if there is one.
  void run(bool more, float lr, StepStats& stats) {
    block_.begin(plan_.columns.size(), plan_.windows.size() + plan_.negatives.size());
    weigh_positives(plan_);
    weigh_negatives(plan_);
    if (more) {
      block_.expect({}, next_plan_.negatives);
      // The first columns of the next block are the last of this one.
      const size_t known = std::min<size_t>(next_plan_.columns.size(), 2 * static_cast<size_t>(windows_.window));
      const std::span<const Slot> columns = std::span(next_plan_.columns).subspan(known);
      block_.expect(columns, columns);
    }
    const PairBlockResult result = block_.run(plan_.columns, lr);
    if (!result.finite) {
      ++stats.refused;
      return;
    }
    stats.loss += result.loss;
    stats.slope += result.slope;
    stats.pairs += plan_.pairs;
  }

  // Weight 1 for each word of a centre's window. What a column is covered by is what negatives will be weighed with.
  void weigh_positives(const WindowPlan& plan) {
    cover_.assign(plan.columns.size(), 0);
    const int32_t columns = static_cast<int32_t>(plan.columns.size());
    for (const WindowPlan::Window& window : plan.windows) {
      float* weights = block_.add_positive(plan.columns[window.centre], std::max(0, window.centre - windows_.window),
                                           std::min(columns, window.centre + windows_.window + 1));
      for (int32_t j = window.begin; j < window.end; ++j) weights[j] = 1;
      weights[window.centre] = 0;
      for (int32_t j = window.begin; j < window.end; ++j) cover_[j] += weights[j];
    }
  }

  // Every pair is weighed against `negatives` negatives: each of the shared ones stands for negatives / shared.
  void weigh_negatives(const WindowPlan& plan) {
    const float share = static_cast<float>(windows_.negatives) / static_cast<float>(windows_.negatives_shared);
    float* common = block_.common_weights();
    for (size_t j = 0; j < cover_.size(); ++j) common[j] = share * cover_[j];
    centres_.fill(plan);
    for (Slot negative : plan.negatives) {
      if (centres_.may_hold(negative))
        excuse(plan, negative, share);
      else
        block_.add_negative(negative);
    }
  }

  // A negative that is a centre of the block has no weight against that centre's own window.
  void excuse(const WindowPlan& plan, Slot negative, float share) {
    float* weights = block_.add_negative_with_weights(negative);
    std::copy_n(block_.common_weights(), plan.columns.size(), weights);
    for (const WindowPlan::Window& window : plan.windows) {
      if (plan.columns[window.centre] != negative) continue;
      for (int32_t j = window.begin; j < window.end; ++j)
        if (j != window.centre) weights[j] = std::max(0.0f, weights[j] - share);
    }
  }

  const WindowOptions windows_;
  WindowPlanner planner_;
  BlockStep block_;
  WindowPlan plan_, next_plan_;
  CentreSet centres_;
  std::vector<float> cover_;
};

}  // namespace

std::unique_ptr<ModelWorker> make_sgns_worker(const WindowOptions& windows, Parameters& parameters,
                                              std::unique_ptr<PairKernel> kernel) {
  return std::make_unique<SgnsWorker>(windows, parameters, std::move(kernel));
}

}  // namespace streamvec
