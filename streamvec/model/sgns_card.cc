// Skip-gram whose blocks are planned and run on the card (cuda/sgns_trainer.h). A step hands over a chunk and returns
// what earlier ones came to: the card is a few batches behind.
#include <algorithm>

#include "streamvec/cuda/device.h"
#include "streamvec/cuda/sgns_trainer.h"
#include "streamvec/model/block_step.h"
#include "streamvec/model/model.h"
#include "streamvec/model/workers.h"

namespace streamvec {
namespace {

constexpr int64_t kKeptBytes = int64_t{8} << 30;  // of text on the card, 4 bytes a word

class SgnsCardWorker final : public ModelWorker {
 public:
  explicit SgnsCardWorker(std::shared_ptr<cuda::SgnsTrainer> trainer) : trainer_(std::move(trainer)) {}

  StepStats step(const Chunk& chunk, const SamplingTables& tables, float lr, Random& random) override {
    return step_noted(chunk, tables, lr, random, {});
  }

  StepStats step_noted(const Chunk& chunk, const SamplingTables& tables, float lr, Random& random,
                       const ChunkNote& chunk_note) override {
    note(trainer_->set_tables(tables));
    if (status_.ok()) note(trainer_->add(chunk, {lr, random.next(), chunk_note.fresh, chunk_note.name}));
    return done(false);
  }

  // Of all workers that share the card.
  std::vector<ChunkStats> told() override {
    std::vector<ChunkStats> chunks;
    for (const cuda::SgnsTold& told : trainer_->told())
      chunks.push_back({told.name, told.pairs, told.loss, told.slope});
    return chunks;
  }

  StepStats step_and_keep(const Chunk& chunk, const SamplingTables& tables, float lr, Random& random,
                          uint64_t key) override {
    note(trainer_->set_tables(tables));
    if (status_.ok()) note(trainer_->add(chunk, lr, random.next(), key));
    return done(false);
  }

  std::optional<StepStats> step_again(uint64_t key, float lr, Random& random) override {
    if (!status_.ok() || !trainer_->known(key)) return {};
    note(trainer_->add_known(key, lr, random.next()));
    return done(false);
  }

  bool keeps_all() const override { return trainer_->keeps_all(); }

  bool failed() const override { return !status_.ok(); }

  Result<StepStats> settle() override {
    const StepStats stats = done(true);
    STREAMVEC_RETURN_IF_ERROR(status_);
    return stats;
  }

  std::string kernel_name() const override { return trainer_->name(); }

 private:
  void note(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  StepStats done(bool all) {
    StepStats stats;
    if (!status_.ok()) return stats;
    const Result<cuda::SgnsTotals> totals = trainer_->totals(all);
    note(totals.status());
    if (!totals.ok()) return stats;
    stats.pairs = totals.value().pairs;
    stats.loss = totals.value().loss;
    stats.slope = totals.value().slope;
    stats.refused = totals.value().refused;
    stats.fresh_pairs = totals.value().fresh_pairs;
    stats.fresh_loss = totals.value().fresh_loss;
    return stats;
  }

  std::shared_ptr<cuda::SgnsTrainer> trainer_;
  Status status_;
};

Result<cuda::SgnsOptions> card_options(const ModelOptions& options, const Parameters& parameters) {
  STREAMVEC_ASSIGN_OR_RETURN(const cuda::Device device, cuda::find_device());
  WindowOptions windows = options.windows;
  if (options.batch > 0) windows.centres = options.batch;
  windows = settled(windows);
  cuda::SgnsOptions card;
  card.rows_max = std::max(parameters.options.rows_max, parameters.rows());
  card.dim = parameters.dim();
  card.window = windows.window;
  card.negatives = windows.negatives;
  card.centres = windows.centres;
  card.negatives_shared = windows.negatives_shared;
  card.step_max = kSgdStepMax;
  card.bf16 = options.bf16_tables;
  card.adagrad = parameters.options.optimizer == OptimizerKind::kAdagrad;
  card.words = options.words;
  card.at_once = options.stream;
  card.kept_bytes = std::min(kKeptBytes, device.free / 4);
  return card;
}

}  // namespace

Result<std::unique_ptr<ModelWorker>> make_sgns_card_worker(const ModelOptions& options, Parameters& parameters) {
  if (parameters.card == nullptr) {
    STREAMVEC_ASSIGN_OR_RETURN(const cuda::SgnsOptions card, card_options(options, parameters));
    STREAMVEC_ASSIGN_OR_RETURN(parameters.card, cuda::make_sgns_trainer(card));
    STREAMVEC_RETURN_IF_ERROR(parameters.put_rows());
  }
  return std::unique_ptr<ModelWorker>(std::make_unique<SgnsCardWorker>(parameters.card));
}

}  // namespace streamvec
