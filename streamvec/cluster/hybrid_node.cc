#include "streamvec/cluster/hybrid_node.h"

#include <utility>

namespace streamvec {
namespace {

constexpr uint32_t kRowsChannel = 1, kRingChannel = 2;

}  // namespace

Result<std::unique_ptr<HybridNode>> HybridNode::start(const ClusterOptions& rows, std::vector<Matrix*> tables,
                                                      const RingOptions& ring, std::unique_ptr<Transport> transport) {
  std::unique_ptr<HybridNode> node(new HybridNode(std::move(transport)));
  STREAMVEC_ASSIGN_OR_RETURN(node->rows_,
                             ClusterNode::start(rows, node->channels_.open(kRowsChannel), std::move(tables)));
  STREAMVEC_ASSIGN_OR_RETURN(node->ring_, RingNode::start(ring, node->channels_.open(kRingChannel)));
  return node;
}

Result<bool> HybridNode::await_start(const std::atomic<bool>* stop) {
  STREAMVEC_ASSIGN_OR_RETURN(const bool rows, rows_->await_start(stop));
  if (!rows) return false;
  return ring_->await_start(stop);
}

Status HybridNode::trained(int64_t words, double lr) {
  STREAMVEC_RETURN_IF_ERROR(rows_->trained(words, lr));
  return ring_->trained(words, lr);
}

// Both are brought to their end, also when one has failed: the other still has something to say.
Result<TrainedTotals> HybridNode::finish(const TrainedTotals& own) {
  Result<TrainedTotals> rows = rows_->finish(own);
  const Result<TrainedTotals> ring = ring_->finish(own);
  if (!ring.ok()) return ring.status();
  return rows;
}

ClusterStats HybridNode::stats() const {
  ClusterStats stats = rows_->stats();
  const ClusterStats ring = ring_->stats();
  stats.pushes += ring.pushes;
  stats.waiting_s += ring.waiting_s;
  stats.talking_s += ring.talking_s;
  stats.finishing_s += ring.finishing_s;
  const TransportTotals all = transport_->totals();
  stats.bytes_sent = all.bytes_sent;
  stats.bytes_received = all.bytes_received;
  return stats;
}

}  // namespace streamvec
