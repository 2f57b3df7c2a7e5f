// What the statistics of all clusters have alike whose nodes are the same from the beginning to the end.
#pragma once

#include <cstdint>

#include "streamvec/cluster/synchronizer.h"
#include "streamvec/transport/transport.h"

namespace streamvec {

// `own` with what the transport has moved and how many nodes there are; its members are the caller's to add.
inline ClusterStats stats_of_fixed_nodes(ClusterStats own, const Transport& transport, size_t nodes) {
  const TransportTotals totals = transport.totals();
  own.bytes_sent = totals.bytes_sent;
  own.bytes_received = totals.bytes_received;
  own.epoch = 1;
  own.nodes = static_cast<int32_t>(nodes);
  return own;
}

}  // namespace streamvec
