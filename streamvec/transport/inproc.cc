#include "streamvec/transport/inproc.h"

#include <algorithm>
#include <string>

#include "streamvec/transport/inbox.h"

namespace streamvec {

class InprocTransport final : public Transport {
 public:
  InprocTransport(InprocNetwork& network, NodeId self) : network_(network), self_(self) {}
  ~InprocTransport() override { network_.leave(self_); }

  NodeId self() const override { return self_; }

  void add_peer(NodeId node, const std::string&) override {
    const std::lock_guard lock(mutex_);
    peers_.insert(node);
  }

  void remove_peer(NodeId node) override {
    const int64_t dropped = network_.withdraw(self_, node);
    const std::lock_guard lock(mutex_);
    peers_.erase(node);
    totals_.frames_dropped += dropped;
  }

  void send(NodeId to, std::string frame) override {
    const auto size = static_cast<int64_t>(frame.size());
    const bool sent = knows(to) && network_.deliver(self_, to, std::move(frame));
    const std::lock_guard lock(mutex_);
    totals_.frames_sent += sent;
    totals_.bytes_sent += sent ? size : 0;
    totals_.frames_dropped += !sent;
  }

  Status receive(Deadline deadline, NodeId& from, std::string& frame) override {
    return inbox_.receive(deadline, from, frame);
  }

  int64_t queued_bytes(NodeId to) const override { return network_.queued_bytes(self_, to); }

  TransportTotals totals() const override {
    TransportTotals totals;
    inbox_.add_to(totals);
    const std::lock_guard lock(mutex_);
    totals.bytes_sent = totals_.bytes_sent;
    totals.frames_sent = totals_.frames_sent;
    totals.frames_dropped = totals_.frames_dropped;
    return totals;
  }

  Inbox& inbox() { return inbox_; }

 private:
  bool knows(NodeId node) const {
    const std::lock_guard lock(mutex_);
    return node == self_ || peers_.contains(node);
  }

  InprocNetwork& network_;
  const NodeId self_;
  Inbox inbox_;
  mutable std::mutex mutex_;
  std::set<NodeId> peers_;
  TransportTotals totals_;
};

std::unique_ptr<Transport> InprocNetwork::join(NodeId node) {
  auto transport = std::make_unique<InprocTransport>(*this, node);
  const std::lock_guard lock(mutex_);
  STREAMVEC_CHECK(joined_.insert(node).second);
  nodes_[node] = transport.get();
  return transport;
}

void InprocNetwork::cut(NodeId a, NodeId b) {
  const std::lock_guard lock(mutex_);
  cut_.insert(std::minmax(a, b));
}

void InprocNetwork::mend(NodeId a, NodeId b) {
  const std::lock_guard lock(mutex_);
  cut_.erase(std::minmax(a, b));
}

void InprocNetwork::drop_next(NodeId from, NodeId to, int64_t count) {
  const std::lock_guard lock(mutex_);
  to_drop_[{from, to}] = count;
}

bool InprocNetwork::deliver(NodeId from, NodeId to, std::string frame) {
  const std::lock_guard lock(mutex_);
  const auto node = nodes_.find(to);
  if (node == nodes_.end() || cut_.contains(std::minmax(from, to))) return false;
  if (const auto drop = to_drop_.find({from, to}); drop != to_drop_.end() && drop->second > 0) {
    --drop->second;
    return false;
  }
  return node->second->inbox().push(from, std::move(frame), options_.queue_bytes_max);
}

int64_t InprocNetwork::queued_bytes(NodeId from, NodeId to) const {
  const std::lock_guard lock(mutex_);
  const auto node = nodes_.find(to);
  return node == nodes_.end() ? 0 : node->second->inbox().bytes_from(from);
}

int64_t InprocNetwork::withdraw(NodeId from, NodeId to) {
  const std::lock_guard lock(mutex_);
  const auto node = nodes_.find(to);
  return node == nodes_.end() ? 0 : node->second->inbox().drop(from);
}

void InprocNetwork::leave(NodeId node) {
  const std::lock_guard lock(mutex_);
  nodes_.erase(node);
}

}  // namespace streamvec
