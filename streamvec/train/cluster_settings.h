// The settings of a cluster, read: whether they fit together, who takes part, and which scheme they name.
#pragma once

#include <cstdint>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/sync/scheme.h"
#include "streamvec/train/trainer.h"
#include "streamvec/transport/transport.h"

namespace streamvec {

// kInvalidArgument for settings that are none or do not fit together, kUnimplemented for models that are not trained by
// clusters.
Status check_cluster(const TrainOptions& options);

// A rank of MPI is its own number; other nodes are numbered from 1, unless they came while others trained.
NodeId node_of(const ClusterSettings& cluster, int32_t rank);
// `count` nodes from that rank on.
std::vector<NodeId> cluster_nodes(const ClusterSettings& settings, int32_t first_rank, int32_t count);

// kInvalidArgument for names that are none.
Result<Scheme> scheme_of(const ClusterSettings& cluster, int64_t dim);
// How much a node may train on between two pushes.
int64_t words_max_of(const ClusterSettings& cluster);

}  // namespace streamvec
