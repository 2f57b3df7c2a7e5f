// Joins a training run to its cluster.
#pragma once

#include <memory>

#include "streamvec/cluster/synchronizer.h"
#include "streamvec/core/status.h"
#include "streamvec/sync/scheme.h"
#include "streamvec/train/trainer.h"
#include "streamvec/train/training_start.h"

namespace streamvec {

// kInvalidArgument for settings that do not fit together, kUnimplemented for models that are not trained by clusters.
Status check_cluster(const TrainOptions& options);
// Starts this node, which then looks for the others. The parameters are borrowed.
Result<std::unique_ptr<Synchronizer>> join_cluster(const TrainOptions& options, TrainingStart& start);

// What the above go by: the scheme that the settings name, how much a node may train on between two pushes, and how
// strongly training draws each row to where it rests (SyncOptions::pull).
Result<Scheme> scheme_of(const ClusterSettings& cluster);
int64_t words_max_of(const ClusterSettings& cluster);
std::vector<float> row_pulls(const TrainOptions& options, const std::string& model, const Vocabulary& vocabulary);

}  // namespace streamvec
