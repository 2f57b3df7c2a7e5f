// A node of a cluster: keeps its tables in step with the others' while its threads train on them. A thread of its own
// does all the talking, so that training goes on while changes travel: a new push begins as soon as the last one is
// answered and enough was trained, so that a fast network syncs often and a slow one rarely, by itself, or as soon as
// others wait for it. A node whose text comes slowly pushes now and then all the same: no scheme waits for its words.
// One that has failed is silent.
//
// One node leads, at first the one with the lowest id: it waits for all, says who takes part, leaves out nodes that are
// silent, and knows when everybody has finished. Where there is a registry another takes its place when it is silent
// (node_succession.cc); elsewhere a node that loses the leader ends with an error.
//
// A node that joins later says so to the leader, with its address. The leader sends it the rows as it knows them and
// takes it into the next membership, in which owners tell it what has changed.
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
#include <utility>
#include <vector>

#include "streamvec/cluster/codec_finder.h"
#include "streamvec/cluster/control.h"
#include "streamvec/cluster/leader.h"
#include "streamvec/cluster/node_options.h"
#include "streamvec/cluster/piece_board.h"
#include "streamvec/cluster/piece_queue.h"
#include "streamvec/cluster/push_pace.h"
#include "streamvec/cluster/registry.h"
#include "streamvec/cluster/slow_owner_finder.h"
#include "streamvec/cluster/staleness_finder.h"
#include "streamvec/cluster/stream_exchange.h"
#include "streamvec/cluster/synchronizer.h"
#include "streamvec/core/deadline.h"
#include "streamvec/core/status.h"
#include "streamvec/sync/replica.h"
#include "streamvec/sync/row_server.h"
#include "streamvec/transport/reliable_link.h"
#include "streamvec/transport/transport.h"

namespace streamvec {

class ClusterNode final : public StreamSynchronizer {
 public:
  // `tables` are borrowed and hold their initial values; none: it keeps no rows, only who takes part and who trains on
  // which text. The transport must know its peers.
  static Result<std::unique_ptr<ClusterNode>> start(const ClusterOptions& options, std::unique_ptr<Transport> transport,
                                                    std::vector<Matrix*> tables);
  ~ClusterNode() override;  // parts at once, as a crash would for the others

  Result<bool> await_start(const std::atomic<bool>* stop = nullptr) override;
  Status trained(int64_t words, double lr = 1) override;
  // At the end every node's tables are equal, but for what the codec has left out.
  using StreamSynchronizer::finish;
  Result<TrainedTotals> finish(const TrainedTotals& own, Deadline deadline) override;
  void stop_text() override;
  bool leads() const override;
  bool holds_lead() const override;
  bool failed() const override { return failed_; }
  void saved() override;
  Status await_saved() override;
  ClusterStats stats() const override;
  PieceQueue* pieces() override { return pieces_.get(); }

 private:
  enum class Phase { kStarting, kTraining, kFinished, kFlushing, kFlushed, kSettling, kSettled, kEnded };

  ClusterNode(const ClusterOptions& options, std::unique_ptr<Transport> transport);
  Status make_parts(const std::vector<Matrix*>& tables);
  bool has_begun() const;
  void run();
  void step(double now_s);
  void forgive_pause(double now_s);
  void receive_message(NodeId from, const std::string& bytes);
  void misread(NodeId from, const Status& why);
  Status receive_rows(NodeId from, const std::string& bytes);
  Status take_rows(NodeId from, const Message& message);
  Status exchange_words(double now_s);
  Status restart_rows(const std::vector<Slot>& slots);
  void receive_control(NodeId from, const Control& control);
  void receive_from_follower(NodeId from, const Control& control);
  void refuse(NodeId node, const std::string& why);
  std::string differences_of(NodeId node, const Control& hello) const;
  void receive_hello(NodeId from, const Control& hello);
  void welcome();
  bool takes_nobody_in() const;
  void know(NodeId node, const std::string& address);
  void forget_gone(double now_s);
  void receive_from_leader(const Control& control);
  void take_view(const View& view);
  void add_to_known(const View& view);
  void lead(double now_s);
  void decide_orders(double now_s);
  bool may_tell_orders(double now_s);
  void tell_orders();
  void publish(const View& view);
  bool any_silent(double now_s) const;
  void hand_out();
  void end_text();
  Control hello() const;
  Control as_greeting(Control hello) const;
  void seek_leader(double now_s);
  Status not_begun(double silent_s) const;
  void receive_lead(NodeId from, const Control& lead);
  void follow(NodeId leader, uint32_t epoch);
  void greet();
  void receive_greeting(NodeId from, const Control& greeting);
  void look_if_leading(double now_s);
  void begin_to_lead(const Registry::Written& written, double now_s);
  void end_all();
  void resume_text();
  void resume_words();
  bool awaits_greetings() const;
  void take_postponed();
  void tell(NodeId node, const Control& control);
  void receive_ask(NodeId from, const Control& ask);
  void leave_text(NodeId node);
  int64_t workers_now() const { return static_cast<int64_t>(view_.workers.size()); }
  int64_t owners_beside_this() const { return std::ssize(view_.servers) - (is_among(view_.servers, self_) ? 1 : 0); }
  void tell_all(const Control& control, const std::set<NodeId>& nodes);
  void keep_in_touch(double now_s);
  void push_if_due(double now_s);
  double push_due_in(double now_s) const;
  PushPace::Done done_by(double now_s) const;
  bool is_dry(const PushPace::Done& done);
  void begin_push(const PushPace::Done& done, Outbox& out);
  void take_due();
  void find_staleness(double now_s);
  void find_codec(double now_s);
  Status look_at_companion();
  void begin_stage(Phase phase);
  void end_stage();
  bool stage_is_over() const;
  bool has_rows() const { return replica_ != nullptr || server_ != nullptr; }
  void tell_leader(Control control);
  Control alive() const;
  NodeFigures own_figures() const;
  int64_t staleness_at(int64_t clock) const;
  void send(NodeId to, std::string bytes);
  void send_out(Outbox& out);
  void note_clocks();
  void await_hearing(std::unique_lock<std::mutex>& lock);
  void deliver_own();
  void fail(Status status);
  bool is_leader() const { return self_ == leader_; }

  const ClusterOptions options_;
  const std::unique_ptr<Transport> transport_;
  const NodeId self_;
  bool is_worker_ = false;
  std::atomic<int64_t> ahead_max_;  // clocks that a node may be ahead of the slowest and train (SSP)
  std::unique_ptr<Replica> replica_;
  std::unique_ptr<RowServer> server_;
  std::unique_ptr<PieceQueue> pieces_;  // of a worker, where the text is handed out
  std::map<NodeId, ReliableLink> links_;
  std::map<NodeId, std::string> addresses_;  // of the nodes that links are to, where nodes may join
  std::map<NodeId, double> gone_s_;          // since when nodes take no part any more, until their links are forgotten
  std::set<NodeId> forgotten_;
  View known_;                    // all that have ever taken part
  std::vector<std::string> own_;  // messages to ourselves

  mutable std::mutex mutex_;  // of all above but the transport, and of what follows
  std::condition_variable changed_;
  Phase phase_ = Phase::kStarting;
  Status status_;
  View view_;
  NodeId leader_ = 0;
  uint32_t led_since_ = 0;    // when it took another's place; 0: it did not
  bool sought_ = false;       // this node has asked for its place, and may get it
  bool model_saved_ = false;  // by the leader
  TrainedTotals own_totals_;  // of one that has finished
  std::map<NodeId, double> heard_s_;
  std::map<NodeId, std::pair<NodeFigures, int64_t>> told_;  // of the leader: by the others, and how stale they were
  std::optional<Leader> leading_;                           // when this node leads
  std::optional<PieceBoard> board_;                         // likewise, where the text is handed out
  struct Orders {
    std::vector<Control> controls;
    uint32_t epoch = 0;       // of the membership among them; 0: there is none
    std::set<NodeId> before;  // who took part until then
    double since_s = 0;
  };
  std::optional<Orders> orders_;            // likewise: decided, until the registry has their membership
  std::map<NodeId, KnownText> greetings_;   // in place of another: as long as they are awaited
  std::map<NodeId, uint64_t> heard_words_;  // likewise, of a stream: changes of hands that they have heard of
  std::vector<std::pair<NodeId, Control>> before_greetings_;  // about the text, while nothing is known of it
  std::vector<std::pair<NodeId, Control>> before_leading_;    // by those that know before we do that we lead
  std::set<NodeId> welcome_;                                  // that want to join, and may
  std::map<NodeId, int64_t> wanted_;                          // pieces, by nodes that have asked
  bool text_over_ = false;                                    // and told
  int64_t settle_clock_ = 0;
  int32_t stage_pushes_ = 0;  // begun since flushing or settling began
  PushPace pace_;
  std::vector<RowKey> due_;  // rows of the push that begins
  EarlyMessages early_;      // of a stream
  int64_t seen_words_ = 0;   // trained when it was last looked, and since when
  double seen_s_ = 0;
  double alive_sent_s_ = 0, refreshed_s_ = 0;
  double pushed_s_ = 0;          // when the last push began
  double stepped_s_ = 0;         // when this node was last seen to run
  StalenessFinder finder_;       // of an adaptive scheme
  CodecFinder codec_finder_;     // of a scheme that finds its codec
  SlowOwnerFinder slow_owners_;  // of a scheme that retires them
  int64_t pushed_rows_ = 0;      // by the last push, to the owner of most of them
  double held_since_s_ = -1;     // a push that is due waits for the slowest; -1: none does
  bool companion_over_ = true;
  std::string refused_;            // of the leader, before the beginning: why a node cannot take part
  std::vector<std::string> lost_;  // notes: who was left out, and who owns rows no more
  std::string unwritten_;          // a note: why the registry had a membership late
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
