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
// with one thread, but for rounding; a run that was stopped goes on where it was.
Result<TrainProgress> train_columns(TrainingStart start, const TrainOptions& options,
                                    std::optional<CheckpointWriter> writer, const std::string& out,
                                    const TrainHooks& hooks);

// The columns of node `rank` of `nodes`: from .. to.
struct ColumnRange {
  int64_t from = 0, to = 0;
  int64_t size() const { return to - from; }
};
ColumnRange columns_of(int64_t dim, int32_t rank, int32_t nodes);

}  // namespace streamvec
