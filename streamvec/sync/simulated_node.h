// A node of SimulatedCluster. Part of it.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "streamvec/sync/simulated_cluster.h"

namespace streamvec {

// Worker and server in one, with its links.
struct SimulatedCluster::Node {
  NodeId id = 0;
  Matrix tables[kTables];
  std::unique_ptr<Generations> generations;
  EarlyMessages early;
  std::unique_ptr<Replica> replica;
  std::unique_ptr<RowServer> server;
  std::map<NodeId, ReliableLink> links;
  std::vector<int64_t> trained;  // by key: the whole of what this worker added
  // Its pushes in order, each with all that the worker had added by then; certain once a server that lives has
  // acknowledged it.
  struct Push {
    NodeId server = 0;
    int64_t clock = 0;
    uint64_t stamp = 0;
    bool acknowledged = false;
    std::map<RowKey, int64_t> totals;
  };
  std::vector<Push> pushes;
  std::vector<std::set<RowKey>> marks;  // by push: the rows that it left a 1 in (Options::marks)
  int32_t settling = 0;
  double stopped_since = 0, stopped_until = 0;  // it does nothing in between
  bool left_out = false;                        // of the membership
  int64_t staleness = 0;                        // its bound (SSP)

  ReliableLink& link(NodeId other) {
    return links.try_emplace(other, ReliableLink::Options{.resend_after_s = 0.5}).first->second;
  }
};

}  // namespace streamvec
