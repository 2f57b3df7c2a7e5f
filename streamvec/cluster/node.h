// A node of a cluster: keeps its tables in step with the others' while its threads train on them. A thread of its own
// does all the talking, so that training goes on while changes travel: a new push begins as soon as the last one is
// answered and enough was trained, so that a fast network syncs often and a slow one rarely, by itself. A node whose
// text comes slowly pushes now and then all the same: no scheme waits for its words. One that has failed is silent.
//
// The node with the lowest id leads: it waits for all, says who takes part, leaves out nodes that are silent, and knows
// when everybody has finished. A node that loses the leader ends with an error; what it has learnt can be saved.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "streamvec/cluster/control.h"
#include "streamvec/cluster/leader.h"
#include "streamvec/cluster/push_pace.h"
#include "streamvec/core/deadline.h"
#include "streamvec/core/row_marks.h"
#include "streamvec/core/status.h"
#include "streamvec/sync/replica.h"
#include "streamvec/sync/row_server.h"
#include "streamvec/transport/reliable_link.h"
#include "streamvec/transport/transport.h"

namespace streamvec {

struct ClusterOptions {
  std::vector<NodeId> workers, servers;  // at first; rising
  SyncOptions sync;                      // without `self` and `initial`
  int64_t words_min = 10'000;   // trained here between two pushes at least; less: closer to one node, and more to send
  int64_t words_max = 100'000;  // at most: then training waits
  double dead_after_s = 10;     // a node that is silent for longer takes no further part
  double start_within_s = 60;   // all nodes have to be there by then
  int32_t threads = 1;          // that train here
  double talking_share = 0.2;   // of their time, at most, goes into talking; less: fewer pushes where cores are few
  RowMarks* changed = nullptr;  // by key, borrowed: rows trained on; none: any row may have been
  uint64_t fingerprint = 0;     // of what must be equal everywhere (vocabulary, options)
  std::string fingerprint_of;   // the same in words
};

// A node as this one sees it.
struct ClusterMember {
  NodeId node = 0;
  bool worker = false, server = false, leader = false, taking_part = false;
  double silent_s = 0;  // since something came from it; 0 for this node
  int64_t clock = -1;   // of its pushes; known of this node only
};

struct ClusterStats {
  int64_t pushes = 0;
  double waiting_s = 0;    // training threads waited, summed
  double talking_s = 0;    // of processors, that the talking thread and those that help it have used
  double finishing_s = 0;  // from the end of this node's text to the end of all
  int64_t rows_pushed = 0;
  int64_t staleness_most = 0;  // clocks ahead of the slowest, while anything was trained
  int64_t bytes_sent = 0, bytes_received = 0;
  uint32_t epoch = 0;
  int32_t nodes = 0;
  std::vector<ClusterMember> members;
};

class ClusterNode {
 public:
  // `tables` are borrowed and hold their initial values. The transport must know its peers.
  static Result<std::unique_ptr<ClusterNode>> start(const ClusterOptions& options, std::unique_ptr<Transport> transport,
                                                    std::vector<Matrix*> tables);
  ~ClusterNode();  // parts at once, as a crash would for the others

  // Waits until all nodes are there: true then; false when `stop` was set before.
  Result<bool> await_start(const std::atomic<bool>* stop = nullptr);
  // Training threads tell what they have trained, and at which rate; waits when the node is too far ahead, or the
  // scheme says so (SSP). An error when the cluster has failed: training is to stop.
  Status trained(int64_t words, double lr = 1);
  // This node's text is over, of which it trained `own`: goes on talking until everybody's is and all have what the
  // others learnt. Then every node's tables are equal, but for what the codec has left out. The leader returns what all
  // have trained, the others what they have.
  Result<TrainedTotals> finish(const TrainedTotals& own);
  ClusterStats stats() const;

 private:
  enum class Phase { kStarting, kTraining, kFinished, kFlushing, kFlushed, kSettling, kSettled, kEnded };

  ClusterNode(const ClusterOptions& options, std::unique_ptr<Transport> transport);
  Status make_parts(const std::vector<Matrix*>& tables);
  void run();
  void step(double now_s);
  void receive_message(NodeId from, const std::string& bytes);
  Status receive_rows(NodeId from, const std::string& bytes);
  void receive_control(NodeId from, const Control& control);
  void receive_from_follower(NodeId from, const Control& control);
  void refuse(NodeId node, const Control& hello);
  void receive_from_leader(const Control& control);
  void take_view(const View& view);
  void lead(double now_s);
  void tell_all(const Control& control, const std::set<NodeId>& nodes);
  void keep_in_touch(double now_s);
  void push_if_due(double now_s);
  void begin_push(const PushPace::Done& done, Outbox& out);
  void take_due();
  void begin_stage(Phase phase);
  void end_stage();
  bool stage_is_over() const;
  void tell_leader(const Control& control);
  void send(NodeId to, std::string bytes);
  void send_out(Outbox& out);
  void note_clocks();
  void deliver_own();
  void fail(Status status);
  bool leads() const { return self_ == leader_; }

  const ClusterOptions options_;
  const std::unique_ptr<Transport> transport_;
  const NodeId self_;
  NodeId leader_ = 0;
  bool is_worker_ = false;
  const int64_t ahead_max_;  // clocks that a node may be ahead of the slowest and train (SSP)
  Crew crew_;
  std::unique_ptr<Replica> replica_;
  std::unique_ptr<RowServer> server_;
  std::map<NodeId, ReliableLink> links_;
  std::vector<std::string> own_;  // messages to ourselves

  mutable std::mutex mutex_;  // of all above but the transport, and of what follows
  std::condition_variable changed_;
  Phase phase_ = Phase::kStarting;
  Status status_;
  View view_;
  std::map<NodeId, double> heard_s_;
  std::optional<Leader> leading_;  // when this node leads
  int64_t settle_clock_ = 0;
  int32_t stage_pushes_ = 0;  // begun since flushing or settling began
  PushPace pace_;
  std::vector<RowKey> due_;  // rows of the push that begins
  double alive_sent_s_ = 0, refreshed_s_ = 0;
  ClusterStats stats_;

  std::atomic<int64_t> words_{0};
  std::atomic<double> steps_{0};         // words times rate
  std::atomic<int64_t> begun_words_{0};  // trained when the last push began
  std::atomic<int64_t> ahead_{0}, staleness_most_{0};
  std::atomic<bool> failed_{false};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace streamvec
