// Frames that came for a node and wait to be received: the half that every Transport shares.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <limits>
#include <mutex>
#include <string>
#include <unordered_map>

#include "streamvec/transport/transport.h"

namespace streamvec {

// Thread-safe. It sets no limit by itself: whoever fills it drops or waits, by what bytes() and push() say.
class Inbox {
 public:
  // False when the inbox is closed or holds more than `bytes_max` of this sender already: the frame is gone.
  bool push(NodeId from, std::string frame, int64_t bytes_max = std::numeric_limits<int64_t>::max());
  // As Transport::receive().
  Status receive(Deadline deadline, NodeId& from, std::string& frame);
  // Wakes every waiter; receive() gives `reason` from now on, what waited is dropped.
  void close(Status reason = Status(Code::kUnavailable, "the transport is closed"));
  // Drops what came from a node; returns how many frames.
  int64_t drop(NodeId from);

  int64_t bytes() const;
  int64_t bytes_from(NodeId node) const;
  // Fills in what was received.
  void add_to(TransportTotals& totals) const;

 private:
  struct Frame {
    NodeId from = 0;
    std::string bytes;
  };
  void forget(const Frame& frame);

  mutable std::mutex mutex_;
  std::condition_variable came_;
  std::deque<Frame> frames_;
  std::unordered_map<NodeId, int64_t> bytes_from_;
  int64_t bytes_ = 0, frames_received_ = 0, bytes_received_ = 0;
  Status closed_;
};

}  // namespace streamvec
