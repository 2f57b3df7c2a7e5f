// The node that leads a Sandblaster run: tells owners what to do with their vectors, hands out portions, and steps by
// L-BFGS. It sees sums and losses only. When a worker falls silent its portions go to others; when an owner does, its
// rows go to those that have second copies, and L-BFGS begins anew from the last point: what it remembered is gone.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "streamvec/cluster/portion_board.h"
#include "streamvec/cluster/sandblaster_message.h"
#include "streamvec/core/status.h"
#include "streamvec/optim/lbfgs.h"
#include "streamvec/optim/portioned_objective.h"

namespace streamvec {

// How a run has gone so far, over all beginnings.
struct SandblasterProgress {
  int64_t iterations = 0, evaluations = 0;
  double value = 0;      // at the point
  double weight = 0;     // of all portions
  int32_t restarts = 0;  // owners were lost
  int64_t copies = 0;    // portions that were handed out twice
};

// Thread-safe: one thread runs it, another brings what comes.
class SandblasterCoordinator final : private VectorSpace {
 public:
  struct Options {
    NodeId self = 0;
    std::vector<NodeId> workers, owners;
    RowKey row_end = 0;
    int64_t dim = 0;
    int64_t portions = 0;
    int32_t portions_at_once = 2;  // that a worker has; more: it waits less, and ends less evenly
    double dead_after_s = 10, start_within_s = 60;
    uint64_t fingerprint = 0;
    std::string fingerprint_of;
    LbfgsOptions lbfgs;
  };
  using AfterStep = std::function<Result<bool>(const SandblasterProgress&)>;

  SandblasterCoordinator(const Options& options, SandblasterPost post);

  // Everything that other nodes, and parts of this one, say to the coordinator.
  void receive(NodeId from, const SandblasterMessage& message);

  // Waits for all nodes; false when `stop` was set before.
  Result<bool> await_start(const std::atomic<bool>* stop);
  // Minimises; returns in words why it ended. `after_step` may call read_point(), and says whether to go on; `stop`, or
  // a node that asks for it, ends it earlier. kUnavailable when no owner is left, kDataLoss when rows are lost.
  Result<std::string> run(const std::atomic<bool>* stop, const AfterStep& after_step);
  // Every row of the point, in no order. kAborted when an owner is gone: run() begins anew if `after_step` returns
  // that.
  Status read_point(const std::function<void(RowKey, std::span<const float>)>& row);
  // The same after run(), whoever dies meanwhile.
  Status read_last_point(const std::function<void(RowKey, std::span<const float>)>& row);
  // Tells everybody that all is done.
  void end();

  bool wants_stop() const { return stop_asked_ || (stop_ != nullptr && stop_->load()); }  // somebody does
  SandblasterProgress progress() const;
  std::vector<NodeId> members() const;
  std::vector<std::string> notes() const;  // who was lost, and what became of it
  // Nothing can go on: every wait ends with this.
  void fail(const Status& status);

 private:
  Status apply(std::span<const VectorOp> ops, std::vector<double>& told) override;
  Result<double> evaluate() override;
  Result<std::string> minimise(const AfterStep& after_step);
  Status begin_evaluation();
  // Tells everybody who owns rows now, and waits until they have them, twice.
  Status take_view();
  Status tell_view();
  Status keep();
  Status fetch_part(std::span<const RowKey> rows, NodeId owner, std::vector<float>& values);
  // Asks every owner, and waits for all their answers of that kind.
  Status ask_owners(SandblasterMessage question, SandblasterKind answer);
  void hand_out();
  void finish_portion(NodeId from, const SandblasterMessage& message);
  void receive_hello(NodeId from, const SandblasterMessage& hello);
  // kAborted when an owner is gone: all that is under way has to begin anew.
  Status await(std::unique_lock<std::mutex>& lock, const std::function<bool()>& done);
  Status leave_out_silent();

  const Options options_;
  const SandblasterPost post_;
  const std::atomic<bool>* stop_ = nullptr;
  std::atomic<bool> stop_asked_{false};

  mutable std::mutex mutex_;  // of all that follows
  std::condition_variable changed_;
  Status status_;
  std::map<NodeId, double> heard_s_;
  double looked_s_ = 0;       // for silent nodes, the last time
  std::set<NodeId> present_;  // before the beginning
  std::vector<NodeId> workers_, owners_;
  bool owner_lost_ = false, have_copies_ = false;
  uint32_t epoch_ = 0;
  uint64_t questions_ = 0, question_ = 0;            // the one that is open
  SandblasterKind answer_ = SandblasterKind::kTold;  // that it waits for
  std::map<NodeId, SandblasterMessage> answers_;
  std::optional<PortionBoard> board_;
  uint64_t evaluation_ = 0;
  std::vector<PortionValue> parts_;  // by portion
  SandblasterProgress progress_;
  std::vector<std::string> notes_;
};

}  // namespace streamvec
