#include "streamvec/cluster/hybrid_node.h"

#include <utility>

namespace streamvec {
namespace {

constexpr uint32_t kRowsChannel = 1, kRingChannel = 2;

}  // namespace

Result<std::unique_ptr<HybridNode>> HybridNode::start(ClusterOptions rows, std::vector<Matrix*> tables,
                                                      const RingOptions& ring, std::unique_ptr<Transport> transport) {
  std::unique_ptr<HybridNode> node(new HybridNode(std::move(transport)));
  if (!ring.keeps_nothing()) {
    STREAMVEC_ASSIGN_OR_RETURN(node->ring_, RingNode::start(ring, node->channels_.open(kRingChannel)));
    rows.companion = node->ring_.get();
  }
  STREAMVEC_ASSIGN_OR_RETURN(node->rows_,
                             ClusterNode::start(rows, node->channels_.open(kRowsChannel), std::move(tables)));
  return node;
}

Result<bool> HybridNode::await_start(const std::atomic<bool>* stop) {
  STREAMVEC_ASSIGN_OR_RETURN(const bool rows, rows_->await_start(stop));
  return rows && ring_ != nullptr ? ring_->await_start(stop) : Result<bool>(rows);
}

Status HybridNode::trained(int64_t words, double lr) {
  STREAMVEC_RETURN_IF_ERROR(rows_->trained(words, lr));
  return ring_ != nullptr ? ring_->trained(words, lr) : Status();
}

// The rows' end waits for the ring's, so that there is a membership as long as either needs one.
Result<TrainedTotals> HybridNode::finish(const TrainedTotals& own, Deadline deadline) {
  if (ring_ != nullptr) ring_->finish();
  return rows_->finish(own, deadline);
}

ClusterStats HybridNode::stats() const {
  ClusterStats stats = rows_->stats();
  if (ring_ != nullptr) ring_->add_to(stats);
  const TransportTotals all = transport_->totals();
  stats.bytes_sent = all.bytes_sent;
  stats.bytes_received = all.bytes_received;
  return stats;
}

}  // namespace streamvec
