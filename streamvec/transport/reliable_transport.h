// A transport that loses nothing on the way to a node that lives: a link (reliable_link.h) to every peer over another
// transport. For those who send each frame once, such as a ring, over connections that may not be there yet.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "streamvec/transport/inbox.h"
#include "streamvec/transport/reliable_link.h"
#include "streamvec/transport/transport.h"

namespace streamvec {

// Thread-safe. A thread of its own takes what comes at once and acknowledges it, however late it is received.
class ReliableTransport final : public Transport {
 public:
  struct Options {
    ReliableLink::Options link{.resend_after_s = 0.5, .ahead_max = 65'536};
    double farewell_s = 2;  // at the end, for the others to acknowledge what was sent last
  };
  explicit ReliableTransport(std::unique_ptr<Transport> inner) : ReliableTransport(std::move(inner), Options{}) {}
  ReliableTransport(std::unique_ptr<Transport> inner, Options options);
  ~ReliableTransport() override;

  NodeId self() const override { return inner_->self(); }
  void add_peer(NodeId node, const std::string& address) override { inner_->add_peer(node, address); }
  // What was not acknowledged is forgotten.
  void remove_peer(NodeId node) override;
  // The same, but for the inner transport, which others may still reach the node by. What comes from it is dropped.
  void forget(NodeId node);
  void send(NodeId to, std::string frame) override;
  Status receive(Deadline deadline, NodeId& from, std::string& frame) override {
    return inbox_.receive(deadline, from, frame);
  }
  int64_t queued_bytes(NodeId to) const override { return inner_->queued_bytes(to); }
  Status peer_status(NodeId node) const override { return inner_->peer_status(node); }
  // Bytes are those of the inner transport: what is sent again counts.
  TransportTotals totals() const override { return inner_->totals(); }
  // Wakes who waits to receive: nothing comes any more, and nothing is waited for at the end.
  void close();

 private:
  void run();
  // Takes in a frame, if one comes soon; false when the inner transport is closed.
  bool take_in();
  void send_again();
  bool is_idle() const;

  const Options options_;
  const std::unique_ptr<Transport> inner_;
  Inbox inbox_;
  mutable std::mutex mutex_;
  std::map<NodeId, ReliableLink> links_;
  std::set<NodeId> forgotten_;
  std::atomic<bool> stopping_{false}, closed_{false};
  std::thread thread_;
};

}  // namespace streamvec
