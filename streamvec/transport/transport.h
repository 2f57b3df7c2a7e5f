// Frames of bytes between the nodes of a cluster: in one process (tests, simulation), by gRPC (nodes that come and go)
// or by MPI (a fixed set). A frame may be lost when its connection breaks; ReliableLink makes sure of what matters.
#pragma once

#include <cstdint>
#include <string>

#include "streamvec/core/deadline.h"
#include "streamvec/core/status.h"

namespace streamvec {

// A node that was restarted is another node: ids are never used twice.
using NodeId = uint32_t;

struct TransportTotals {
  int64_t bytes_sent = 0, bytes_received = 0, frames_sent = 0, frames_received = 0, frames_dropped = 0;
};

// Thread-safe.
class Transport {
 public:
  virtual ~Transport() = default;  // ends what is under way within a second
  virtual NodeId self() const = 0;
  // Where a node can be reached ("host:port"; ranks and names elsewhere). Connections are made when they are needed.
  virtual void add_peer(NodeId node, const std::string& address) = 0;
  // Closes the connection and drops what was queued for it.
  virtual void remove_peer(NodeId node) = 0;
  // Queues a frame; never waits for the network. Frames to nodes that cannot be reached, or past the queue's limit, are
  // dropped and counted. A node may send to itself.
  virtual void send(NodeId to, std::string frame) = 0;
  // The next frame of anybody, in the order in which one peer sent them. kDeadlineExceeded when none came,
  // kUnavailable when the transport is closed.
  virtual Status receive(Deadline deadline, NodeId& from, std::string& frame) = 0;
  // Bytes queued for a peer: whoever sends faster than the network should wait.
  virtual int64_t queued_bytes(NodeId to) const = 0;
  // Why the peer cannot be reached at the moment; ok when it can, when nothing was sent to it, or where nobody knows.
  virtual Status peer_status(NodeId) const { return {}; }
  virtual TransportTotals totals() const = 0;
};

}  // namespace streamvec
