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
// How much a node trains on between two pushes: at least, if nobody waits for one, and at most, for then it waits.
struct PushInterval {
  int64_t words_min = 0, words_max = 0;
};
// `words`: that a node trains on in the whole run, all epochs; 0: nobody knows.
PushInterval push_interval(const ClusterSettings& cluster, int64_t words);

}  // namespace streamvec
