// Rows by their owners, everything else by a ring (Parallax: Kim et al. 2019): what a step changes a few rows of goes
// as rows, what every step changes all of goes round. Two nodes in one, over two channels of one transport; of a ring
// alone (no rows) the other one keeps who takes part and who trains on which text.
//
// Both have the same members: when one of them dies the ring is formed anew by those that are left.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "streamvec/cluster/node.h"
#include "streamvec/cluster/ring_node.h"
#include "streamvec/cluster/synchronizer.h"
#include "streamvec/transport/channels.h"

namespace streamvec {

class HybridNode final : public StreamSynchronizer {
 public:
  // `tables` are those of the rows, and may be none; ring.tables the others: none of a node that has no part in the
  // others' ring. REQUIRES: every node of the ring trains.
  static Result<std::unique_ptr<HybridNode>> start(ClusterOptions rows, std::vector<Matrix*> tables,
                                                   const RingOptions& ring, std::unique_ptr<Transport> transport);

  Result<bool> await_start(const std::atomic<bool>* stop = nullptr) override;
  Status trained(int64_t words, double lr = 1) override;
  // At the end every node's values are equal, to the last bits of their sums.
  using StreamSynchronizer::finish;
  Result<TrainedTotals> finish(const TrainedTotals& own, Deadline deadline) override;
  bool failed() const override { return rows_->failed(); }
  void stop_text() override { rows_->stop_text(); }
  bool leads() const override { return rows_->leads(); }
  bool holds_lead() const override { return rows_->holds_lead(); }
  void saved() override { rows_->saved(); }
  Status await_saved() override { return rows_->await_saved(); }
  ClusterStats stats() const override;
  PieceQueue* pieces() override { return rows_->pieces(); }

 private:
  explicit HybridNode(std::unique_ptr<Transport> transport)
      : transport_(std::move(transport)), channels_(*transport_) {}

  const std::unique_ptr<Transport> transport_;
  Channels channels_;
  std::unique_ptr<RingNode> ring_;     // nullptr: others have one
  std::unique_ptr<ClusterNode> rows_;  // before the ring goes, which it tells of memberships
};

}  // namespace streamvec
