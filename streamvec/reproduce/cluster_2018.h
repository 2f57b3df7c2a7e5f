// The cluster of 2018 on threads of this process: replicas that exchange dense slopes after every batch.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/reproduce/pairs_2018.h"
#include "streamvec/reproduce/sgns_2018.h"
#include "streamvec/transport/inproc.h"

namespace streamvec {

struct ClusterOptions2018 {
  SgnsOptions2018 sgns;
  int64_t batch = 1024;        // pairs, of each node
  int32_t nodes = 1;           // 1: no cluster
  bool awaits = true;          // false: the fault of its asynchronous runs (careless_reducer.h)
  bool broadcasts = false;     // false, the fault: every node begins with rows of its own
  std::vector<int32_t> cores;  // node i's thread runs on the i-th; empty: where the system puts it
};

struct EpochStats2018 {
  double seconds = 0;  // negatives included, measuring not
  double loss = 0;     // mean a pair
  int64_t steps = 0;
  int64_t bytes_sent = 0;  // by all nodes
};

class Cluster2018 {
 public:
  // `pairs` are borrowed.
  Cluster2018(const ClusterOptions2018& options, const Vocabulary& vocabulary, std::span<const Pair2018> pairs);
  ~Cluster2018();

  // Every node goes over its share of the pairs, in a new order. When `stop` is set meanwhile, kCancelled.
  Result<EpochStats2018> train_epoch(const std::atomic<bool>* stop = nullptr);
  // What node `rank` has learnt; in 2018 the first was measured.
  const Sgns2018& node(int32_t rank) const;
  // Of one all-reduce: both tables.
  int64_t slope_bytes() const;

 private:
  struct Node;
  Status train_share(Node& node, const std::vector<uint32_t>& order, const std::atomic<bool>* stop);

  const ClusterOptions2018 options_;
  const std::span<const Pair2018> pairs_;
  const AliasTable negatives_;
  InprocNetwork network_;
  std::vector<std::unique_ptr<Node>> nodes_;
  int64_t epoch_ = 0;
};

}  // namespace streamvec
