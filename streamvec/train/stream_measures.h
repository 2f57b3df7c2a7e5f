// What is measured of a stream on the way, by the options of a run.
#pragma once

#include <cstdint>

#include "streamvec/core/status.h"
#include "streamvec/train/stream_evaluator.h"
#include "streamvec/train/trainer.h"

namespace streamvec {

// For vectors of `dim` numbers, without what is the run's own: directory, model, steps and who is told. An error when a
// set of word pairs or analogies cannot be read.
Result<StreamEvaluator::Options> evaluator_options(const TrainOptions& options, int64_t dim);

}  // namespace streamvec
