// Skip-gram with batches of more centres than fill a block: the blocks of a batch are computed from the values that
// rows had when it began, each with negatives of its own, and every row then takes one step, the sum of what they say.
// That is minibatch SGD; what a batch costs is that frequent words, which a batch names again and again, move as if
// once. Batches of several threads are under way at once, so that each goes less far the more there are.
#include <algorithm>
#include <vector>

#include "streamvec/model/block_step.h"
#include "streamvec/model/model.h"
#include "streamvec/model/skip_gram_weights.h"
#include "streamvec/model/step_sums.h"
#include "streamvec/model/workers.h"

namespace streamvec {
namespace {

class SgnsBatchWorker final : public ModelWorker {
 public:
  SgnsBatchWorker(const WindowOptions& blocks, int32_t centres, Parameters& parameters,
                  std::unique_ptr<PairKernel> kernel, int32_t threads)
      : threads_(threads),
        planner_(blocks),
        weights_(blocks),
        block_(parameters, std::move(kernel)),
        plans_(static_cast<size_t>((centres + blocks.centres - 1) / blocks.centres)) {}

  StepStats step(const Chunk& chunk, const SamplingTables& tables, float lr, Random& random) override {
    StepStats stats;
    planner_.begin(chunk, tables, random);
    block_.set_pace(tables.pace);
    while (plan_batch()) run_batch(lr, stats);
    return stats;
  }

  Result<StepStats> settle() override {
    block_.settle();
    return StepStats();
  }

  std::string kernel_name() const override { return block_.kernel_name(); }

 private:
  bool plan_batch() {
    planned_ = 0;
    while (planned_ < plans_.size() && planner_.next(plans_[planned_])) ++planned_;
    return planned_ > 0;
  }

  void run_batch(float lr, StepStats& stats) {
    const std::span<const WindowPlan> plans(plans_.data(), planned_);
    block_.begin_batch(plans, threads_);
    for (const WindowPlan& plan : plans) {
      weights_.fill(plan, block_);
      count_block(block_.add_to_batch(plan.columns, lr), plan.pairs, stats);
    }
    block_.end_batch(lr);
  }

  const int32_t threads_;
  WindowPlanner planner_;
  SkipGramWeights weights_;
  BlockStep block_;
  std::vector<WindowPlan> plans_;
  size_t planned_ = 0;  // of them, in this batch
};

}  // namespace

std::unique_ptr<ModelWorker> make_sgns_batch_worker(const WindowOptions& blocks, int32_t centres,
                                                    Parameters& parameters, std::unique_ptr<PairKernel> kernel,
                                                    int32_t threads) {
  return std::make_unique<SgnsBatchWorker>(blocks, centres, parameters, std::move(kernel), threads);
}

}  // namespace streamvec
