// The character model (rbsg.h) in the loop: the pairs of a chunk become batches of about equal size.
#include <algorithm>
#include <cmath>

#include "streamvec/model/model.h"
#include "streamvec/model/rbsg.h"
#include "streamvec/model/workers.h"

namespace streamvec {
namespace {

constexpr int64_t kPool = 256, kPoolMost = 1'024;  // negatives that a batch shares, one of more than kBatchPairs more
constexpr double kWarmUpSteps = 100;               // of all nodes, in which the rate rises to what it should be

WindowOptions whole_chunk(WindowOptions windows) {
  windows.centres = 1 << 30;
  windows.negatives_shared = 1;  // each batch draws its own
  return windows;
}

class RbsgWorker final : public ModelWorker {
 public:
  RbsgWorker(const ModelOptions& options, Rbsg& rbsg)
      : batch_size_(options.batch), nodes_(options.nodes), planner_(whole_chunk(options.windows)), rbsg_(rbsg) {
    batch_.told_at_once = options.stream;  // a chunk of a stream has its own figures
  }

  StepStats step(const Chunk& chunk, const SamplingTables& tables, float lr, Random& random) override {
    StepStats stats;
    planner_.begin(chunk, tables, random);
    while (planner_.next(plan_)) {
      collect_pairs();
      const auto pairs = static_cast<int64_t>(centres_.size()), size = batch_size();
      const int64_t batches = std::max<int64_t>(1, (pairs + size / 2) / size);
      for (int64_t b = 0; b < batches; ++b)
        train(pairs * b / batches, pairs * (b + 1) / batches, tables, lr, random, stats);
    }
    return stats;
  }

  bool failed() const override { return rbsg_.failed(); }

  Result<StepStats> settle() override {
    STREAMVEC_ASSIGN_OR_RETURN(const Rbsg::BatchStats done, rbsg_.settle());
    StepStats stats;
    add(done, stats);
    return stats;
  }

  std::string kernel_name() const override { return rbsg_.kernel_name(); }

 private:
  void collect_pairs() {
    centres_.clear();
    contexts_.clear();
    for (const WindowPlan::Window& window : plan_.windows)
      for (int32_t column = window.begin; column < window.end; ++column) {
        if (column == window.centre) continue;
        centres_.push_back(plan_.columns[static_cast<size_t>(window.centre)]);
        contexts_.push_back(plan_.columns[static_cast<size_t>(column)]);
      }
  }

  void train(int64_t begin, int64_t end, const SamplingTables& tables, float lr, Random& random, StepStats& stats) {
    batch_.centres.assign(centres_.begin() + begin, centres_.begin() + end);
    batch_.contexts.assign(contexts_.begin() + begin, contexts_.begin() + end);
    batch_.negatives.resize(static_cast<size_t>(negatives_for(end - begin)));
    tables.negatives.sample(random, batch_.negatives);
    const double warmth = std::min(1.0, nodes_ * (rbsg_.steps() + 1) / kWarmUpSteps);
    add(rbsg_.train_batch(batch_, static_cast<float>(lr * rate_of_nodes() * warmth)), stats);
  }

  static int64_t negatives_for(int64_t pairs) {
    return std::min(kPoolMost, kPool * std::max(pairs, Rbsg::kBatchPairs) / Rbsg::kBatchPairs);
  }

  int64_t batch_size() const {
    if (batch_size_ > 0) return batch_size_;
    return rbsg_.leaves_steps() ? Rbsg::kSharedBatchPairs : Rbsg::kBatchPairs;
  }

  // Nodes that tell each other their steps are as one with a batch of all of theirs, whose slope is that much surer:
  // the rate goes with the root. Where they make one step of all slopes, that step's does (sync/shared_step.h).
  double rate_of_nodes() const { return rbsg_.leaves_steps() ? 1 : std::sqrt(nodes_); }

  static void add(const Rbsg::BatchStats& done, StepStats& stats) {
    stats.refused += done.refused ? 1 : 0;
    if (done.refused) return;
    stats.pairs += done.pairs;
    stats.loss += done.loss;
    stats.slope += done.loss;  // the slopes of single pairs are never there: their loss stands for them
  }

  const int64_t batch_size_;  // asked for; 0: as usual
  const double nodes_;
  WindowPlanner planner_;
  Rbsg& rbsg_;
  WindowPlan plan_;
  std::vector<Slot> centres_, contexts_;
  RbsgBatch batch_;
};

}  // namespace

std::unique_ptr<ModelWorker> make_rbsg_worker(const ModelOptions& options, Parameters& parameters) {
  return std::make_unique<RbsgWorker>(options, *parameters.rbsg);
}

}  // namespace streamvec
