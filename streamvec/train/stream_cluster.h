// A node's part in a cluster that trains on streams, beside reading and training: words are those that all share
// (cluster/stream_exchange.h), chunks go from nodes that only read to those that train, the first node hears where
// everybody's sources stand when it saves, and all stay until all have finished.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "streamvec/cluster/chunk_relay.h"
#include "streamvec/cluster/node.h"
#include "streamvec/cluster/stream_exchange.h"
#include "streamvec/core/status.h"
#include "streamvec/ingest/intake.h"
#include "streamvec/model/parameters.h"
#include "streamvec/replay/table.h"
#include "streamvec/train/checkpoint.h"
#include "streamvec/train/trainer.h"
#include "streamvec/vocab/sampling.h"
#include "streamvec/vocab/stream_vocabulary.h"

namespace streamvec {

// Who does what: the last workers may only read, for the others, and nodes behind the workers only own rows. A run
// without a cluster reads and trains.
bool only_reads(const ClusterSettings& cluster);
bool reads(const ClusterSettings& cluster);
bool only_serves(const ClusterSettings& cluster);

// Puts the sources of a node that does not lead where the checkpoint of the one that does says that they stood. Its
// replay begins anew.
Status restore_sources(const ClusterSettings& cluster, const Checkpoint& existing, Intake& intake);

// All but await_words(), await_slots() and trained() is called by the thread that watches the run.
class StreamCluster {
 public:
  // What the run has; all borrowed.
  struct Parts {
    StreamVocabulary& vocabulary;  // a follower
    SamplingTablesBuffer& tables;
    ReplayTable& replay;
    Parameters& parameters;
    Intake& intake;
    std::function<void(std::span<const Slot>)> start_rows;  // their words are new; under the vocabulary's lock
  };
  // Starts this node, which then looks for the others. `shared`: of the node that leads, and of it alone, the
  // vocabulary that all share. The options are borrowed.
  static Result<std::unique_ptr<StreamCluster>> join(const TrainOptions& options, const std::string& model,
                                                     int32_t threads, Parts parts,
                                                     std::optional<StreamVocabulary> shared);

  // False when it is to stop while other nodes are awaited.
  Result<bool> await_start(const std::atomic<bool>* stop) { return node_->await_start(stop); }
  // Of a node that only owns rows: until all have finished.
  Status serve() { return node_->finish({}).status(); }

  // Where some nodes only read: chunks are sent or taken by a thread, from start_relay() until stop_relay(), after
  // which none is sent any more; await_relay() once nobody waits for chunks. relayed(): all that was read is sent.
  void start_relay();
  void stop_relay();
  void await_relay();
  bool relayed() const { return relay_over_; }

  void await_words() { exchange_->await_words(); }  // by threads that read sources, as the next
  void await_slots() { exchange_->await_slots(); }
  bool trained(int64_t tokens, double lr) { return node_->trained(tokens, lr).ok(); }

  void ask_to_stop() { exchange_->ask_to_stop(); }
  bool asked_to_stop() const { return exchange_->asked_to_stop(); }
  // Of nodes that do not lead, again and again: tells where the sources stand when the first one saves, and the sources
  // what is safe.
  void help_to_save();
  // Of the node that leads, around a save: hears where the others' sources stand, holds the words, and lets them go.
  void gather_cursors();
  void hold() { exchange_->hold(); }
  void go_on(bool saved);
  // REQUIRES: hold(). The shared vocabulary, and the others' cursors beside this node's own.
  std::string save_vocabulary() const { return exchange_->save_vocabulary(); }
  void add_cursors(nlohmann::json& cursors) const;

  // Stays until everybody has finished, calling meanwhile() again and again, whose errors end it. When it is to stop,
  // the node that leads stops all; another one leaves the others alone when they go on, and says so in `note`.
  Status part(const TrainedTotals& own, const std::atomic<bool>* stop, const std::function<Status()>& meanwhile,
              std::string& note);
  // Of the node that leads, after part(): of all nodes.
  const std::optional<TrainedTotals>& all() const { return all_; }
  ClusterStats stats() const { return node_->stats(); }

 private:
  StreamCluster(const TrainOptions& options, const std::string& model, Parts parts, bool leads);
  void set_row_pulls();
  void renew_tables();
  void send_chunks();
  void take_chunks();

  const TrainOptions& options_;
  const std::string model_;
  const Parts parts_;
  const bool leads_;
  std::vector<float> row_pulls_;
  std::optional<TrainedTotals> all_;
  ChunkSender sender_;
  ChunkReceiver receiver_;
  std::thread relay_;
  std::atomic<bool> relay_stop_{false}, relay_over_{false};
  std::unique_ptr<StreamExchange> exchange_;
  std::unique_ptr<ClusterNode> node_;  // goes before what it borrows
};

}  // namespace streamvec
