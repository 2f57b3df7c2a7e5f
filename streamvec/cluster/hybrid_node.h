// Rows by their owners, everything else by a ring (Parallax: Kim et al. 2019): what a step changes a few rows of goes
// as rows, what every step changes all of goes round. Two nodes in one, over one transport.
#pragma once

#include <functional>
#include <memory>

#include "streamvec/cluster/node.h"
#include "streamvec/cluster/ring_node.h"
#include "streamvec/cluster/synchronizer.h"
#include "streamvec/transport/channels.h"

namespace streamvec {

// The set of nodes is that of the ring: when one dies, all others end with an error.
class HybridNode final : public Synchronizer {
 public:
  // `tables` are those of the rows; ring.tables the others. REQUIRES: every node trains.
  static Result<std::unique_ptr<HybridNode>> start(const ClusterOptions& rows, std::vector<Matrix*> tables,
                                                   const RingOptions& ring, std::unique_ptr<Transport> transport);

  Result<bool> await_start(const std::atomic<bool>* stop = nullptr) override;
  Status trained(int64_t words, double lr = 1) override;
  Result<TrainedTotals> finish(const TrainedTotals& own) override;
  bool leads() const override { return rows_->leads(); }
  ClusterStats stats() const override;

 private:
  explicit HybridNode(std::unique_ptr<Transport> transport)
      : transport_(std::move(transport)), channels_(*transport_) {}

  const std::unique_ptr<Transport> transport_;
  Channels channels_;
  std::unique_ptr<ClusterNode> rows_;
  std::unique_ptr<RingNode> ring_;
};

}  // namespace streamvec
