// A node of a Sandblaster run (Dean et al. 2012): L-BFGS over all the text as one batch. The first node coordinates;
// owners keep the rows of all vectors, workers compute gradients of small portions, and nobody has a vector of the
// optimiser's history whole. A thread of its own does the talking.
//
// The set of nodes only shrinks: a worker that dies costs what it was working on, an owner L-BFGS's memory. When the
// first node dies the others end with an error.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "streamvec/cluster/sandblaster_coordinator.h"
#include "streamvec/cluster/sandblaster_owner.h"
#include "streamvec/cluster/sandblaster_worker.h"
#include "streamvec/optim/portioned_objective.h"
#include "streamvec/transport/reliable_transport.h"

namespace streamvec {

struct SandblasterOptions {
  std::vector<NodeId> workers, owners;  // the first worker coordinates
  RowKey row_end = 0;
  int64_t dim = 0;
  std::function<void(RowKey, std::span<float>)> initial;  // where rows begin, the same everywhere
  std::function<float(RowKey)> scale;                     // expected curvature along a row; none: all alike
  int32_t threads = 1;                                    // that work on portions here
  double dead_after_s = 10;                               // a node that is silent for longer takes no further part
  double start_within_s = 60;                             // all nodes have to be there by then
  uint64_t fingerprint = 0;                               // of what must be equal everywhere
  std::string fingerprint_of;                             // the same in words
  LbfgsOptions lbfgs;
};

class SandblasterNode {
 public:
  // `objective` is borrowed. The transport must know its peers.
  static Result<std::unique_ptr<SandblasterNode>> start(const SandblasterOptions& options,
                                                        const PortionedObjective& objective,
                                                        std::unique_ptr<Transport> transport);
  ~SandblasterNode();  // parts at once, as a crash would for the others

  // Waits until all nodes are there: true then; false when `stop` was set before.
  Result<bool> await_start(const std::atomic<bool>* stop = nullptr);
  // To be called by the first node: minimises and returns why it ended.
  Result<std::string> run(const std::atomic<bool>* stop, const SandblasterCoordinator::AfterStep& after_step) {
    return coordinator_->run(stop, after_step);
  }
  // Of the first node only.
  SandblasterCoordinator& coordinator() { return *coordinator_; }
  void end();  // tells everybody that all is done
  // To be called by the others: serves until the first one says that all is done. Passes a wish to stop on to it.
  Status serve(const std::atomic<bool>* stop = nullptr);

  bool coordinates() const { return coordinator_ != nullptr; }
  TransportTotals totals() const { return transport_->totals(); }

 private:
  explicit SandblasterNode(const SandblasterOptions& options) : options_(options) {}
  Status make_parts(const PortionedObjective& objective);
  void run_talking();
  void receive_frame(NodeId from, std::string_view frame);
  void receive(NodeId from, const SandblasterMessage& message);
  void receive_of_epoch(NodeId from, const SandblasterMessage& message);
  void keep_in_touch(double now_s);
  void fail(const Status& status);
  bool is_over() const;

  const SandblasterOptions options_;
  NodeId self_ = 0, first_ = 0;
  std::unique_ptr<ReliableTransport> transport_;
  std::unique_ptr<SandblasterCoordinator> coordinator_;
  std::unique_ptr<SandblasterOwner> owner_;  // of the talking thread
  std::unique_ptr<SandblasterWorker> worker_;
  uint32_t epoch_ = 0;                                          // likewise, and what follows
  std::deque<std::pair<NodeId, SandblasterMessage>> of_later_;  // messages of an epoch that is not known yet
  double started_s_ = 0, heard_s_ = 0, alive_sent_s_ = 0;

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  Status status_;
  bool begun_ = false, ended_ = false;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace streamvec
