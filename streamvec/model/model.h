// A model in training: what one thread does with one chunk of text. Models differ in how a centre and its window become
// rows of a pair block (kernel/pair_block.h); parameters, sampling and kernels are shared.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/core/status.h"
#include "streamvec/model/parameters.h"
#include "streamvec/model/window_plan.h"

namespace streamvec {

struct StepStats {
  int64_t pairs = 0;        // (centre, context) pairs trained
  double loss = 0;          // their summed loss: -log sigma(pair) - sum over `negatives` of log sigma(-negative)
  double slope = 0;         // their summed slope (kernel/pair_block.h), a gradient's size: what replay may go by
  int64_t refused = 0;      // blocks left out because a row or a product was not finite
  int64_t fresh_pairs = 0;  // of these, those of fresh chunks (ChunkNote)
  double fresh_loss = 0;
};

// What replay has to say of a chunk.
struct ChunkNote {
  bool fresh = false;            // it is trained on for the first time
  std::optional<uint64_t> name;  // what it is like is asked for; told() says it under this name
};

struct ChunkStats {
  uint64_t name = 0;
  int64_t pairs = 0;
  double loss = 0, slope = 0;  // summed up, as in StepStats
};

struct ModelOptions {
  std::string model = "sgns";  // one of model_names(); what it has beyond tables must be in the parameters
  WindowOptions windows;
  std::string kernel = "auto";
  int32_t batch = 0;         // what is taken at one point: centre words, pairs for rbsg; 0: its own best
  int32_t threads = 1;       // that train in all
  bool cuda = false;         // on the card (cuda/device.h); sgns, hybrid and rbsg
  bool bf16_tables = false;  // there, rows are kept in bf16
  bool stream = false;       // text may come slowly: none waits for more
  int64_t words = 0;         // that will be trained on in all, about; 0: not known
  int32_t nodes = 1;         // that train on the text together, each on a part of it
};

// One per thread; holds scratch memory and borrows the parameters. Trains in place.
class ModelWorker {
 public:
  virtual ~ModelWorker() = default;
  // Every slot of the chunk must have its row. One thread and equal arguments give equal bits.
  virtual StepStats step(const Chunk& chunk, const SamplingTables& tables, float lr, Random& random) = 0;
  virtual std::string kernel_name() const = 0;
  // step(), with a note.
  virtual StepStats step_noted(const Chunk& chunk, const SamplingTables& tables, float lr, Random& random,
                               const ChunkNote& note) {
    StepStats stats = step(chunk, tables, lr, random);
    if (note.fresh) stats.fresh_pairs = stats.pairs;
    if (note.fresh) stats.fresh_loss = stats.loss;
    if (note.name) told_.push_back({*note.name, stats.pairs, stats.loss, stats.slope});
    return stats;
  }
  // What chunks with a name were like, each once: after its step, or some steps later where training is elsewhere.
  virtual std::vector<ChunkStats> told() { return std::exchange(told_, {}); }

  // For workers that train elsewhere, and later; the others need none of it but settle().
  // step(), with a chunk that comes again under the same key in a later epoch: it may be kept where it is trained on.
  virtual StepStats step_and_keep(const Chunk& chunk, const SamplingTables& tables, float lr, Random& random,
                                  uint64_t /*key*/) {
    return step(chunk, tables, lr, random);
  }
  // step() with a chunk that was kept; nothing is done when it was not.
  virtual std::optional<StepStats> step_again(uint64_t /*key*/, float /*lr*/, Random& /*random*/) { return {}; }
  // Whether all chunks of step_and_keep() were kept so far.
  virtual bool keeps_all() const { return false; }
  // A step has failed: those that follow change nothing, and settle() says why. It may be known some steps later only.
  virtual bool failed() const { return false; }
  // Waits for what was begun, and brings to the tables what the worker has kept to itself (model/hot_rows.h). Returns
  // what no step() has told of. An error when a step has failed. REQUIRES: no step() meanwhile.
  virtual Result<StepStats> settle() { return StepStats(); }

 private:
  std::vector<ChunkStats> told_;
};

// What --model may be.
std::span<const std::string_view> model_names();
// kInvalidArgument for any other name.
Status check_model(std::string_view model);

// How many workers make use of options.threads, each on a thread of its own.
int32_t worker_count(const ModelOptions& options);

// The learning rate to start with when none is given; docs/BENCHMARKS.md says how they were found.
double default_learning_rate(std::string_view model, OptimizerKind optimizer);

// kInvalidArgument for a model or kernel nobody knows, kFailedPrecondition for a kernel this machine cannot run.
Result<std::unique_ptr<ModelWorker>> make_model_worker(const ModelOptions& options, Parameters& parameters);

}  // namespace streamvec
