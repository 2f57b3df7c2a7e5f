// Training by Sandblaster (cluster/sandblaster_node.h): the text is one batch, read once and kept as slots; every epoch
// is a step of L-BFGS over all of it.
#pragma once

#include <optional>

#include "streamvec/train/checkpoint.h"
#include "streamvec/train/trainer.h"
#include "streamvec/train/training_start.h"

namespace streamvec {

// kInvalidArgument for options that do not fit.
Status check_sandblaster(const TrainOptions& options);

// Trains what prepare() has begun. The first node has a writer. A run that was stopped goes on from its point; what
// L-BFGS remembered of the way there is not saved.
Result<TrainProgress> train_sandblaster(TrainingStart start, const TrainOptions& options,
                                        std::optional<CheckpointWriter> writer, const TrainHooks& hooks);

}  // namespace streamvec
