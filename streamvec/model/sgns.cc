// Skip-gram with negative sampling (Mikolov et al. 2013): the words around a centre each predict it. As in word2vec.c
// the surrounding words' vectors come from the input table, the centre's and the negatives' from the output table.
#include <algorithm>

#include "streamvec/model/block_step.h"
#include "streamvec/model/model.h"
#include "streamvec/model/skip_gram_weights.h"
#include "streamvec/model/workers.h"

namespace streamvec {
namespace {

class SgnsWorker final : public ModelWorker {
 public:
  SgnsWorker(const WindowOptions& windows, Parameters& parameters, std::unique_ptr<PairKernel> kernel)
      : windows_(windows), planner_(windows), weights_(windows), block_(parameters, std::move(kernel)) {}

  StepStats step(const Chunk& chunk, const SamplingTables& tables, float lr, Random& random) override {
    StepStats stats;
    planner_.begin(chunk, tables, random);
    block_.set_pace(tables.pace);
    // The next block is planned before this one is run, so that its rows are on their way meanwhile.
    bool more = planner_.next(plan_);
    while (more) {
      more = planner_.next(next_plan_);
      run(more, lr, stats);
      std::swap(plan_, next_plan_);
    }
    return stats;
  }

  Result<StepStats> settle() override {
    block_.settle();
    return StepStats();
  }

  std::string kernel_name() const override { return block_.kernel_name(); }

 private:
  // Runs plan_, with an eye on next_plan_ if there is one.
  void run(bool more, float lr, StepStats& stats) {
    weights_.fill(plan_, block_);
    if (more) {
      block_.expect({}, next_plan_.negatives);
      // The first columns of the next block are the last of this one.
      const size_t known = std::min<size_t>(next_plan_.columns.size(), 2 * static_cast<size_t>(windows_.window));
      const std::span<const Slot> columns = std::span(next_plan_.columns).subspan(known);
      block_.expect(columns, columns);
    }
    count_block(block_.run(plan_.columns, lr), plan_.pairs, stats);
  }

  const WindowOptions windows_;
  WindowPlanner planner_;
  SkipGramWeights weights_;
  BlockStep block_;
  WindowPlan plan_, next_plan_;
};

}  // namespace

std::unique_ptr<ModelWorker> make_sgns_worker(const WindowOptions& windows, int32_t batch, Parameters& parameters,
                                              std::unique_ptr<PairKernel> kernel, int32_t threads) {
  WindowOptions blocks = settled(windows);
  if (batch > blocks.centres) return make_sgns_batch_worker(blocks, batch, parameters, std::move(kernel), threads);
  if (batch > 0) {
    blocks = windows;
    blocks.centres = batch;
  }
  return std::make_unique<SgnsWorker>(settled(blocks), parameters, std::move(kernel));
}

}  // namespace streamvec
