// Joins a training run to its cluster.
#pragma once

#include <memory>

#include "streamvec/cluster/synchronizer.h"
#include "streamvec/core/status.h"
#include "streamvec/train/trainer.h"
#include "streamvec/train/training_start.h"

namespace streamvec {

// kInvalidArgument for settings that do not fit together, kUnimplemented for models that are not trained by clusters.
Status check_cluster(const TrainOptions& options);
// Starts this node, which then looks for the others. The parameters are borrowed.
Result<std::unique_ptr<Synchronizer>> join_cluster(const TrainOptions& options, TrainingStart& start);

}  // namespace streamvec
