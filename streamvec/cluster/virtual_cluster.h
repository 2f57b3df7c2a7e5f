// A cluster of any size in one process, under virtual clocks: every node has tables of its own, trains on its share of
// the text with the real kernels, and talks through the real owners and replicas (sync/). What is made up is time
// alone: what training a word, moving a row and sending a byte take is told, so that a run of 256 nodes on networks
// that nobody here has says how fast it would be and what it would learn.
//
// When a node pushes, how far it may be ahead and in how many bits it sends are decided as in ClusterNode
// (push_pace.h, staleness_finder.h, codec_finder.h). Not simulated: loss, death, and cores that several nodes share
// (costs can be scaled for that).
//
// Nothing that a node does reaches another sooner than a message takes, so nodes run beside each other for that long,
// on as many threads as there are, then what they have sent is given out (a conservative parallel simulation, Chandy
// and Misra 1979). What comes out does not depend on the threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/core/thread_team.h"
#include "streamvec/model/model.h"
#include "streamvec/sync/replica.h"
#include "streamvec/sync/row_server.h"

namespace streamvec {

// What things take, in seconds, on one node.
struct VirtualCosts {
  double word_s = 2e-6;         // to train on a word
  double row_s = 5e-7;          // to encode, decode, combine or apply a row
  double bytes_per_s = 1.25e8;  // of a node's network, each way
  double latency_s = 50e-6;     // from one node to another
  double answer_s = 5e-4;       // until a thread that sleeps takes what has come
};

struct VirtualOptions {
  int32_t nodes = 4;  // all train and own rows
  Scheme scheme;
  ModelOptions model;  // one thread a node
  Parameters::Options parameters;
  std::vector<float> pull;     // SyncOptions::pull
  int64_t words_min = 10'000;  // as in ClusterOptions
  int64_t words_max = 450'000;
  float lr = 0.05f;  // falls to nothing
  int32_t epochs = 1;
  uint64_t seed = 1;
  VirtualCosts costs;
  int32_t threads = 1;  // of this process, that run the nodes
};

// What the tables of all nodes of such a cluster take, in bytes.
double virtual_cluster_bytes(const VirtualOptions& options);

struct VirtualReport {
  double seconds = 0;  // until all nodes have all
  int64_t words = 0, pairs = 0;
  double loss = 0;                      // mean a pair over the last tenth of the text
  int64_t pushes = 0;                   // of all nodes
  int64_t rows_moved = 0;               // encoded, decoded, combined or applied, by all nodes
  int64_t bytes = 0;                    // sent by all nodes to others
  double talking_s = 0, waiting_s = 0;  // mean of a node: moving rows; training threads stood still
  int64_t staleness_most = 0;
};

class VirtualCluster {
 public:
  // The chunks are borrowed: those of node i are i, i + nodes, i + 2 nodes, ... kResourceExhausted when the tables of
  // all nodes do not fit.
  static Result<std::unique_ptr<VirtualCluster>> make(const VirtualOptions& options, std::span<const Chunk> chunks,
                                                      const SamplingTables& tables);
  ~VirtualCluster();

  // To the end. kCancelled when `stop` says so between two events.
  Result<VirtualReport> run(const std::function<bool()>& stop = {});
  // As the first node has them.
  const Parameters& parameters() const;

 private:
  enum class Kind { kTrained, kArrived, kLook };
  struct Event;
  struct Sent;
  struct Node;

  VirtualCluster(const VirtualOptions& options, std::span<const Chunk> chunks, const SamplingTables& tables);
  Status add_nodes();
  Status add_node(NodeId id);
  double next_event_s() const;
  Status run_window(double begin_s);
  Status handle(Node& node, Event event);
  void give_out();
  void begin_training(Node& node);
  void train(Node& node);
  Status receive(Node& node, NodeId from, const Message& message);
  void push_if_due(Node& node);
  void begin_push(Node& node);
  void find_bounds(Node& node);
  void send_out(Node& node, Outbox& out);
  // The talking thread works on so many rows; training is late by as much.
  void talk(Node& node, size_t rows);
  void end_if_over();
  VirtualReport sum_up() const;
  bool has_pushed_last(const Node& node) const;
  bool all(const std::function<bool(const Node&)>& is) const;

  const VirtualOptions options_;
  const std::span<const Chunk> chunks_;
  const SamplingTables& tables_;
  ThreadTeam team_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<Node*> busy_;  // nodes with events in this window
  double now_s_ = 0;         // as far as any node has come
  bool flushing_ = false, over_ = false;
  int64_t last_clock_ = 0;  // at which all end
};

}  // namespace streamvec
