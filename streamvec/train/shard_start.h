// Training on tables that are shared out among the nodes (cluster/shard_node.h).
#pragma once

#include <memory>
#include <string>

#include "streamvec/cluster/shard_node.h"
#include "streamvec/core/status.h"
#include "streamvec/model/sharded_sgns.h"
#include "streamvec/train/table_in_file.h"
#include "streamvec/train/trainer.h"
#include "streamvec/train/training_start.h"

namespace streamvec {

bool is_sharded(const TrainOptions& options);
// kInvalidArgument or kUnimplemented for options that do not fit.
Status check_shards(const TrainOptions& options);

// Starts this node with its share of the rows: those of `start`, whose tables are given up then, or new ones.
Result<std::unique_ptr<ShardNode>> join_shards(const TrainOptions& options, TrainingStart& start);
// How its workers are to be. Borrows `start`.
ShardedOptions sharded_options(const TrainOptions& options, const ModelOptions& model, const TrainingStart& start);

// Both tables whole, for a checkpoint beside which their files lie, so that no node needs memory for them.
Result<TablesInFiles> gather_tables(ShardNode& node, int64_t rows, int64_t dim, const std::string& dir);

}  // namespace streamvec
