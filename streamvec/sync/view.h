// Who takes part at a moment, and which node owns a row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/sync/message.h"

namespace streamvec {

// A node may be worker and server at once. Every change has a new epoch; views of equal epochs are equal everywhere.
struct View {
  uint32_t epoch = 0;
  std::vector<NodeId> workers, servers;  // rising
  // Workers that owned rows in an earlier membership and own none now, since they answer too slowly. What they give up
  // is waited for, so that of what they had acknowledged nothing is lost.
  std::vector<NodeId> retired = {};
};

inline bool is_among(const std::vector<NodeId>& nodes, NodeId node) {  // REQUIRES: rising
  return std::binary_search(nodes.begin(), nodes.end(), node);
}

// Rendezvous hashing (Thaler, Ravishankar 1998): when a server comes or goes, only its own rows move, and they spread
// evenly over the others. REQUIRES: servers is not empty.
inline NodeId owner_of(RowKey key, std::span<const NodeId> servers) {
  NodeId best = servers.front();
  uint64_t most = 0;
  for (const NodeId server : servers) {
    const uint64_t weight = mix(key, server);
    if (weight >= most) most = weight, best = server;
  }
  return best;
}

}  // namespace streamvec
