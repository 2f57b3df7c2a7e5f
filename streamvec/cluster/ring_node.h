// The part of a node that keeps values in step by a ring: in rounds, all values of all nodes at once (BSP by
// all-reduce). A thread of its own does the talking while training goes on. A round begins when every node has trained
// enough, or a while has passed; it costs the same whatever has changed, so it suits parameters that every step changes
// all of (the character model's encoders), and is the yardstick for rows that owners keep. Where training steps all
// values at once it may take turns with the ring (core/turns.h): then a round follows every step, and where all nodes
// make one step together (sync/shared_step.h) the next batch waits for it.
//
// Who takes part it is told (companion.h): a ring begins with the first membership, and with every later one it is
// formed anew by those that are left, and those that have joined (ring_standing.h). A node that hears nothing of the
// one before it, which others hear, leaves.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "streamvec/cluster/companion.h"
#include "streamvec/cluster/ring_standing.h"
#include "streamvec/cluster/synchronizer.h"
#include "streamvec/core/status.h"
#include "streamvec/core/thread_team.h"
#include "streamvec/core/turns.h"
#include "streamvec/optim/shared_slopes.h"
#include "streamvec/sync/dense_replica.h"
#include "streamvec/sync/round_values.h"
#include "streamvec/transport/collective.h"
#include "streamvec/transport/reliable_transport.h"
#include "streamvec/transport/transport.h"

namespace streamvec {

struct RingOptions {
  std::vector<DenseTable> tables;  // borrowed, the same shapes and, of those who begin, initial values everywhere
  // Borrowed, in place of tables: all nodes make one step of their slopes, after every batch (sync/shared_step.h).
  // `turns` always wait then, and there is a team.
  SharedSlopes* slopes = nullptr;
  // Calls what it is given when tables may be read and changed, as far as they are not trained on without locks.
  // Training threads are held between two pieces of text while it waits. None: threads train on them meanwhile.
  std::function<void(const std::function<void()>&)> with_tables;
  std::shared_ptr<Turns> turns;  // of training; it is closed when the ring has ended or failed
  // Borrowed: it works for the ring when it is the ring's turn (DenseReplica::Options), of slopes for whole rounds.
  ThreadTeam* team = nullptr;
  // Of what travels (transport/value_form.h); few bits are four of changes and steps, eight of sums of slopes.
  enum class Form { kWhole, kBf16, kFewBits };
  Form form = Form::kWhole;
  int64_t words_min = 10'000;   // trained here between two rounds at least; less: closer to one node, and more to send
  int64_t words_max = 450'000;  // at most: then training waits
  double idle_max_s = 0.01;     // a node at no step of `turns` for so long joins rounds that others have begun
  std::set<NodeId> outside;     // of the membership, nodes that have no part in the ring
  double dead_after_s = 10;     // of the membership
  double unheard_after_s = 20;  // one node that hears nothing of another for as long leaves
  int32_t threads = 1;          // that train here
  double talking_share = 0.2;   // of their time, at most, goes into talking
  bool joins = false;           // others have begun: this node trains when they have told it what they agree on
  bool keeps_nothing() const { return tables.empty() && slopes == nullptr; }
};

// Thread-safe. Destroying it parts at once, also from those whose ring is not over: the cluster has to have ended.
class RingNode final : public Companion {
 public:
  // Over any transport that knows its peers. Waits for the first membership before it says anything.
  static Result<std::unique_ptr<RingNode>> start(const RingOptions& options, std::unique_ptr<Transport> transport);
  ~RingNode() override;

  void take_view(const View& view) override;
  void fail(const Status& status) override;
  Result<bool> over() const override;
  int64_t clock() const override;

  // As those of Synchronizer.
  Result<bool> await_start(const std::atomic<bool>* stop = nullptr);
  Status trained(int64_t words, double lr = 1);
  // This node's text is over; rounds go on until everybody's is, and then over() comes true.
  void finish();
  // Adds what this ring has done.
  void add_to(ClusterStats& stats) const;

 private:
  enum class Phase { kStarting, kTraining, kFinished, kEnded };

  explicit RingNode(const RingOptions& options) : options_(options) {}
  Status begin();
  void make_room();
  void run();
  bool await_due();
  bool is_due(double now_s);
  bool follows_steps() const { return options_.turns && options_.words_min == 0; }
  bool is_idle() const { return options_.turns->idle_s() > options_.idle_max_s; }
  bool has_to_regroup() const { return told_ > formed_; }
  Status regroup();
  Status bring_up(const RingAgreement& agreement, const RingStanding& furthest);
  Status round();
  Status reduce();
  Status rest_round();
  void stand_at(const RingStanding& standing);
  bool begin_exchange(const std::function<void()>& use);
  void end_exchange(const std::function<void()>& use);
  void use_tables(const std::function<void()>& use);
  bool interrupted() const { return stopping_ || failed_ || has_to_regroup(); }

  const RingOptions options_;
  std::unique_ptr<ReliableTransport> transport_;
  std::unique_ptr<RoundValues> replica_;
  std::unique_ptr<RingCollective> collective_;
  RingStanding standing_;
  std::vector<float> values_;    // of a round, and whether this node still has text
  std::vector<float> left_out_;  // of values_, by four bits
  std::vector<float> second_;

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  Phase phase_ = Phase::kStarting;
  Status status_;
  View view_;  // as told last
  int64_t rounds_begun_ = 0;
  bool wants_round_ = false;  // this node's text is over, and others may not know
  double waiting_s_ = 0, talking_s_ = 0;
  double begun_s_ = 0, begun_talking_s_ = 0;  // when the last round began, and the time used by then

  std::atomic<uint32_t> told_{0}, formed_{0};  // epochs of the membership told last, and of the one that the ring has
  std::atomic<int64_t> words_{0};
  std::atomic<double> steps_{0};         // words times rate
  std::atomic<int64_t> begun_words_{0};  // trained when the last round began
  std::atomic<bool> failed_{false};
  std::atomic<bool> wants_tables_{false};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace streamvec
