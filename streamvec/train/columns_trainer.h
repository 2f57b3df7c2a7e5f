// Training on tables of which every node has some columns of all rows: all nodes go over the same text in step, and
// every block's products are summed up over the nodes (model/columns_kernel.h).
#pragma once

#include <optional>
#include <string>

#include "streamvec/train/checkpoint.h"
#include "streamvec/train/trainer.h"
#include "streamvec/train/training_start.h"

namespace streamvec {

// Trains what prepare() has begun into directory `out`. The first node has a writer. The result is that of one process
// with one thread, but for rounding; a run that was stopped goes on where it was. When the text fails, for all nodes at
// the same place, what was learnt is saved.
Result<TrainProgress> train_columns(TrainingStart start, const TrainOptions& options,
                                    std::optional<CheckpointWriter> writer, const std::string& out,
                                    const TrainHooks& hooks);

}  // namespace streamvec
