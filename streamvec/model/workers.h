// The kinds of ModelWorker; make_model_worker() (model.h) chooses among them by name.
#pragma once

#include <memory>

#include "streamvec/kernel/pair_block.h"
#include "streamvec/model/model.h"

namespace streamvec {

// Counts a block of `pairs` pairs among what a step came to, or among what was refused. False: it was not finite, and
// nothing was changed.
inline bool count_block(const PairBlockResult& result, int64_t pairs, StepStats& stats) {
  if (!result.finite) {
    ++stats.refused;
    return false;
  }
  stats.loss += result.loss;
  stats.slope += result.slope;
  stats.pairs += pairs;
  return true;
}

// `batch`: centres that take one step together; 0: as many as a block has. More than that are a batch of several whole
// blocks (make_sgns_batch_worker), fewer are smaller blocks. `threads`: that train at once.
std::unique_ptr<ModelWorker> make_sgns_worker(const WindowOptions& windows, int32_t batch, Parameters& parameters,
                                              std::unique_ptr<PairKernel> kernel, int32_t threads = 1);
// REQUIRES: settled blocks, of fewer centres.
std::unique_ptr<ModelWorker> make_sgns_batch_worker(const WindowOptions& blocks, int32_t centres,
                                                    Parameters& parameters, std::unique_ptr<PairKernel> kernel,
                                                    int32_t threads);
std::unique_ptr<ModelWorker> make_cbow_worker(const WindowOptions& windows, Parameters& parameters,
                                              std::unique_ptr<PairKernel> kernel);
// REQUIRES: parameters.subwords.
std::unique_ptr<ModelWorker> make_subword_worker(const WindowOptions& windows, Parameters& parameters,
                                                 std::unique_ptr<PairKernel> kernel);
// On the card, where the tables are put when the first worker is made; the others share it.
Result<std::unique_ptr<ModelWorker>> make_sgns_card_worker(const ModelOptions& options, Parameters& parameters);
// Skip-gram that teaches parameters.hybrid on the way; plain where there is none.
std::unique_ptr<ModelWorker> make_hybrid_worker(Parameters& parameters, std::unique_ptr<ModelWorker> tables);
// REQUIRES: parameters.glove with cells.
std::unique_ptr<ModelWorker> make_glove_worker(Parameters& parameters, GloveKernel kernel);
// REQUIRES: parameters.rbsg.
std::unique_ptr<ModelWorker> make_rbsg_worker(const ModelOptions& options, Parameters& parameters);

}  // namespace streamvec
