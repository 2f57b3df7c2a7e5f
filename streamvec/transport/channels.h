// Splits a Transport into numbered channels, each a Transport of its own, so that several kinds of traffic share the
// connections without mixing. A frame's channel is its last 4 bytes.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "streamvec/transport/transport.h"

namespace streamvec {

// Thread-safe, without a thread of its own: whoever receives on a channel brings in the others' frames, too. REQUIRES:
// it outlives its channels, `transport` outlives it, and nobody else receives from `transport`.
class Channels {
 public:
  struct Options {
    // Received and not yet taken, of all channels together; past it frames are dropped. What came for a channel
    // that nobody has opened yet waits for it, and counts.
    int64_t waiting_bytes_max = int64_t{256} << 20;
  };
  explicit Channels(Transport& transport) : Channels(transport, Options{}) {}
  Channels(Transport& transport, Options options) : transport_(transport), options_(options) {}

  // Peers, and the bytes queued for them, are those of the transport. REQUIRES: a number is opened once; after its
  // channel is destroyed, frames for it are dropped.
  std::unique_ptr<Transport> open(uint32_t number);

 private:
  class Channel;
  struct Frame {
    NodeId from = 0;
    std::string bytes;
  };
  struct Queue {
    std::deque<Frame> frames;
    TransportTotals totals;
  };
  void send(uint32_t number, NodeId to, std::string frame);
  Status receive(uint32_t number, Deadline deadline, NodeId& from, std::string& frame);
  // Brings in a frame of any channel; the lock is not held meanwhile.
  Status bring_in(std::unique_lock<std::mutex>& lock, Deadline deadline);
  void sort_in(NodeId from, std::string frame);
  void close(uint32_t number);

  Transport& transport_;
  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool receiving_ = false;  // somebody waits for the transport
  std::map<uint32_t, Queue> queues_;
  std::set<uint32_t> opened_, closed_;
  int64_t waiting_bytes_ = 0;
  Status broken_;
};

}  // namespace streamvec
