// A network inside one process, for tests and for nodes that are threads. It can be cut and made to lose frames.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "streamvec/transport/transport.h"

namespace streamvec {

class InprocTransport;

// Thread-safe. REQUIRES: it outlives its transports.
class InprocNetwork {
 public:
  struct Options {
    int64_t queue_bytes_max = int64_t{256} << 20;  // of one sender at one receiver; past it frames are dropped
  };
  InprocNetwork() : InprocNetwork(Options{}) {}
  explicit InprocNetwork(Options options) : options_(options) {}

  // The node's end of the network; destroying it is the node's death. Addresses of add_peer() are not looked at, but
  // as elsewhere only nodes that were added are reached. REQUIRES: a node joins once.
  std::unique_ptr<Transport> join(NodeId node);

  // Frames between the two are dropped, both ways, until mend(). What arrived before stays.
  void cut(NodeId a, NodeId b);
  void mend(NodeId a, NodeId b);
  // The next `count` frames of one to the other are dropped.
  void drop_next(NodeId from, NodeId to, int64_t count);

 private:
  friend class InprocTransport;
  bool deliver(NodeId from, NodeId to, std::string frame);
  int64_t queued_bytes(NodeId from, NodeId to) const;
  // Takes back what `from` sent and `to` has not received; returns how many frames.
  int64_t withdraw(NodeId from, NodeId to);
  void leave(NodeId node);

  const Options options_;
  mutable std::mutex mutex_;
  std::map<NodeId, InprocTransport*> nodes_;
  std::set<NodeId> joined_;
  std::set<std::pair<NodeId, NodeId>> cut_;  // the smaller first
  std::map<std::pair<NodeId, NodeId>, int64_t> to_drop_;
};

}  // namespace streamvec
