// A cluster in one thread under a seeded network: frames are lost, repeated, delayed and reordered, connections are cut
// and come back, nodes stop, die, are left out while they live, and new ones come; every node learns of a new
// membership at a moment of its own. "Training" adds whole numbers, each worker to a column of its own, so that at the
// end every change can be accounted for. For tests of the protocol.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/core/random.h"
#include "streamvec/sync/replica.h"
#include "streamvec/sync/row_server.h"
#include "streamvec/transport/reliable_link.h"

namespace streamvec {

class SimulatedCluster {
 public:
  struct Options {
    uint64_t seed = 1;
    Scheme scheme{Admission::kBsp, Combine::kSum, CodecKind::kFp32};
    int32_t nodes = 3;  // at first; each worker and server
    int32_t rows = 12;  // of all tables together; two tables
    // Of them, the last, which nobody changes before the end. Above 0: newcomers begin with other rows than all had at
    // first, and the first node tells them these. It leads and never dies: without it nobody would know them for sure.
    int32_t untrained = 0;
    int32_t nodes_ever = 16;  // as many columns as there will ever be nodes
    double loss = 0.05;       // of frames
    double repeat = 0.05;
    double other_codec = 0;  // of pushes that go by fp16 in place of the scheme's codec: the numbers here pass whole
    int32_t steps = 400;     // before everything is left to settle
    int32_t settling = 3;    // pushes of every worker then, twice; codecs that leave much out need more
    double crash = 0.004;    // in a step
    double join = 0.004;
    // In a step. A cut: no frame passes between some nodes and the others, or one way only, or between two alone. A
    // stop: a node does nothing, and what was sent to it comes all at once when it goes on. Both last up to away_max_s.
    // Who is away from the rest for longer than dead_after_s is left out of the membership, and trains and pushes on
    // until it hears of that, some time after it is back; then it ends.
    double cut = 0, stop = 0;
    double away_max_s = 3;  // 400 steps have 20 s
    double dead_after_s = 1.5;
    // (Softsync, backup) above 0: a worker's first so many pushes leave a 1 each in columns of their own, whose shares
    // are looked at in the end, in place of numbers that add up.
    int32_t marks = 0;
    // In a step: an owner of rows gives them up and trains on, or owns some again; one remains at least.
    double retire = 0;
    double turnover = 0;        // in a step: a slot's rows begin anew for another word, on each node in its own time
    double change_bound = 0;    // (SSP) in a step, of each node: another bound of its own, as --sync auto has them
    bool stamp_clocks = false;  // (SSP) "training" leaves a worker's clock in its column, and reads the others'
    // Planted faults, to see that they are found.
    bool skip_dedupe = false;        // messages are taken as often and in the order in which they come
    bool skip_broadcast = false;     // owners do not tell their rows to workers that are new
    bool drop_residual = false;      // what a codec leaves out of a push is forgotten
    bool ignore_epoch = false;       // messages of another membership are taken as of this one
    bool skip_base = false;          // newcomers keep the rows that they begin with, which are not the others'
    bool ignore_generation = false;  // what was said of a slot's last word is taken as of its present one
    bool readmit = false;            // who was left out takes part again as it is, in place of ending
    bool forget_retired = false;     // what owners give up that live is not waited for
    bool ignore_bound = false;       // (SSP) workers train on however far ahead they are
  };
  explicit SimulatedCluster(const Options& options);
  ~SimulatedCluster();

  // Runs, lets the network deliver everything, and returns what does not add up ("" when all does).
  std::string run();
  int64_t crashes() const { return crashes_; }
  int64_t pushes() const { return pushes_; }
  int64_t retirements() const { return retirements_; }
  int64_t left_out() const { return left_out_; }    // nodes that lived
  int64_t said_late() const { return said_late_; }  // messages of theirs since, to nodes that take part
  int64_t changes_of_hands() const { return std::ssize(changes_); }
  // Rows of marked pushes (Options::marks) that are not in the tables in the end, and those that are.
  int64_t dropped() const { return dropped_; }
  int64_t counted() const { return counted_; }
  // How far behind the reader's clock any value was that training has read, in clocks, and how many it has read
  // (Options::stamp_clocks): by what is in the rows, not by what the protocol believes of them.
  int64_t staleness_most() const { return staleness_most_; }
  int64_t reads() const { return reads_; }
  // Of them, values that were staler than the bound that their reader had at that time.
  int64_t too_stale() const { return too_stale_; }

 private:
  static constexpr int32_t kTables = 2;
  struct Node;
  struct Frame {
    double due = 0;
    NodeId from = 0, to = 0;
    std::string bytes;
  };
  struct Cut {
    double since = 0, until = 0;
    std::set<NodeId> from, to;
    bool both_ways = true;
    std::set<NodeId> away;  // who is left out if it lasts
  };

  bool first_leads() const { return options_.untrained > 0; }
  Node& add_node(float first_value = 0);
  void step();
  bool may_train(const Node& node) const;
  void change_bound(Node& node);
  void train(Node& node);
  void read_stamps(const Node& node);
  void stamp(Node& node);
  void mark(Node& node, std::span<const RowKey> due);
  void begin_push(Node& node, bool all);
  static void drop_residual(Node& node, const Message& push);
  void crash_one();
  void join_one();
  void retire_one();
  void change_view();
  std::vector<NodeId> members() const;
  void hear_of_view(NodeId id, const View& view);
  void cut_some();
  void stop_one();
  void leave_out_lost();
  void leave_out(const std::set<NodeId>& lost, double until);
  bool passes(NodeId from, NodeId to) const;
  bool is_stopped(const Node& node) const;
  bool is_away(NodeId id) const;
  bool is_left_out(NodeId id) const;
  void deliver(const Frame& frame);
  void post(NodeId from, NodeId to, std::vector<std::string>& frames);
  void send_out(Node& node, Outbox& out);
  void receive(Node& node, NodeId from, const std::string& bytes);
  void take(Node& node, NodeId from, const Message& message);
  void hear_of_changes(Node& node, size_t count);
  void begin_anew(Node& node, RowKey key);
  void forget_trained(Node& node, RowKey key) const;
  void plant(const Node& node, Message& message) const;
  void tick_all();
  bool quiet() const;
  bool settle();
  std::string check();
  std::string check_marks();

  const Options options_;
  Random random_;
  double now_ = 0;
  NodeId next_id_ = 1;
  View view_;
  std::set<NodeId> retired_;  // own no rows; gone ones, too
  std::map<NodeId, std::unique_ptr<Node>> nodes_, dead_;
  std::vector<Frame> network_;
  std::vector<std::pair<double, std::pair<NodeId, View>>> news_;  // when a node learns of a membership
  std::vector<int64_t> changes_;                                  // the slots that have changed hands, in order
  std::vector<Cut> cuts_;
  int64_t crashes_ = 0, pushes_ = 0, staleness_most_ = 0, reads_ = 0, too_stale_ = 0, dropped_ = 0, counted_ = 0;
  int64_t left_out_ = 0, said_late_ = 0, retirements_ = 0;
  std::string broken_;
};

}  // namespace streamvec
