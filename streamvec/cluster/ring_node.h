// A node that keeps in step with the others by a ring: in rounds, all values of all nodes at once (BSP by all-reduce).
// A thread of its own does the talking while training goes on. A round begins when every node has trained enough, or a
// while has passed; it costs the same whatever has changed, so it suits parameters that every step changes all of (the
// character model's encoders), and is the yardstick for rows that owners keep.
//
// The set of nodes is fixed: when one dies, all others end with an error; what was learnt can be saved.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "streamvec/cluster/synchronizer.h"
#include "streamvec/core/status.h"
#include "streamvec/sync/dense_replica.h"
#include "streamvec/transport/collective.h"
#include "streamvec/transport/reliable_transport.h"
#include "streamvec/transport/transport.h"

namespace streamvec {

struct RingOptions {
  std::vector<NodeId> nodes;       // all of them, in the same order everywhere; the first leads
  std::vector<DenseTable> tables;  // borrowed, the same shapes and initial values everywhere
  // Calls what it is given when tables may be read and changed, as far as they are not trained on without locks.
  // Training threads are held between two pieces of text while it waits. None: threads train on them meanwhile.
  std::function<void(const std::function<void()>&)> with_tables;
  int64_t words_min = 10'000;   // trained here between two rounds at least; less: closer to one node, and more to send
  int64_t words_max = 300'000;  // at most: then training waits
  double dead_after_s = 10;     // nothing came from the one before for so long: it, or one before it, is dead
  double start_within_s = 60;   // all nodes have to be there by then
  int32_t threads = 1;          // that train here
  double talking_share = 0.2;   // of their time, at most, goes into talking
  uint64_t fingerprint = 0;     // of what must be equal everywhere
  std::string fingerprint_of;   // the same in words
};

class RingNode final : public Synchronizer {
 public:
  // Over any transport that knows its peers.
  static Result<std::unique_ptr<RingNode>> start(const RingOptions& options, std::unique_ptr<Transport> transport);
  ~RingNode() override;

  Result<bool> await_start(const std::atomic<bool>* stop = nullptr) override;
  Status trained(int64_t words, double lr = 1) override;
  // At the end every node's tables are equal, to the last bits of their sums.
  Result<TrainedTotals> finish(const TrainedTotals& own) override;
  bool leads() const override { return transport_->self() == options_.nodes.front(); }
  ClusterStats stats() const override;

 private:
  enum class Phase { kStarting, kTraining, kFinished, kEnded };

  explicit RingNode(const RingOptions& options) : options_(options) {}
  Status begin();
  void run();
  Status meet();
  bool await_due();
  bool is_due(double now_s) const;
  // One round; true when everybody's text was over before it began.
  Result<bool> round();
  void use_tables(const std::function<void()>& use);
  Status reduce(std::span<float> values);
  Status take_rest();
  Status gather_totals();
  void fail(Status status);

  const RingOptions options_;
  std::unique_ptr<ReliableTransport> transport_;
  std::unique_ptr<Collective> collective_;
  std::unique_ptr<DenseReplica> replica_;
  std::vector<float> values_;  // of a round, and whether this node's text is over
  std::vector<float> second_;

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  Phase phase_ = Phase::kStarting;
  Status status_;
  TrainedTotals own_, all_;
  ClusterStats stats_;
  double begun_s_ = 0, begun_talking_s_ = 0;  // when the last round began, and the time used by then

  std::atomic<int64_t> words_{0};
  std::atomic<double> steps_{0};         // words times rate
  std::atomic<int64_t> begun_words_{0};  // trained when the last round began
  std::atomic<bool> failed_{false};
  std::atomic<bool> wants_tables_{false};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace streamvec
