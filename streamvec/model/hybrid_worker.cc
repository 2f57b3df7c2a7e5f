// The hybrid model's worker: skip-gram on the tables, and after each chunk a share of distilling, which gives rare
// words' rows something back (hybrid.h).
#include "streamvec/model/hybrid.h"
#include "streamvec/model/workers.h"

namespace streamvec {
namespace {

class HybridWorker final : public ModelWorker {
 public:
  HybridWorker(std::unique_ptr<ModelWorker> tables, Parameters& parameters)
      : tables_(std::move(tables)), parameters_(parameters) {}

  StepStats step(const Chunk& chunk, const SamplingTables& tables, float lr, Random& random) override {
    const StepStats stats = tables_->step(chunk, tables, lr, random);
    parameters_.hybrid->learn(chunk, parameters_);
    return stats;
  }

  StepStats step_noted(const Chunk& chunk, const SamplingTables& tables, float lr, Random& random,
                       const ChunkNote& note) override {
    const StepStats stats = tables_->step_noted(chunk, tables, lr, random, note);
    parameters_.hybrid->learn(chunk, parameters_);
    return stats;
  }

  std::vector<ChunkStats> told() override { return tables_->told(); }

  bool failed() const override { return tables_->failed(); }
  Result<StepStats> settle() override { return tables_->settle(); }

  std::string kernel_name() const override { return tables_->kernel_name(); }

 private:
  std::unique_ptr<ModelWorker> tables_;
  Parameters& parameters_;
};

}  // namespace

std::unique_ptr<ModelWorker> make_hybrid_worker(Parameters& parameters, std::unique_ptr<ModelWorker> tables) {
  if (parameters.hybrid == nullptr) return tables;
  return std::make_unique<HybridWorker>(std::move(tables), parameters);
}

}  // namespace streamvec
