// A node's part in a cluster that trains on streams, beside reading and training: words are those that all share
// (cluster/stream_exchange.h), chunks go from nodes that only read to those that train, the node that leads hears where
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
#include "streamvec/cluster/stream_exchange.h"
#include "streamvec/cluster/synchronizer.h"
#include "streamvec/core/status.h"
#include "streamvec/ingest/intake.h"
#include "streamvec/model/parameters.h"
#include "streamvec/replay/table.h"
#include "streamvec/train/checkpoint.h"
#include "streamvec/train/stream_cursors.h"
#include "streamvec/train/trainer.h"
#include "streamvec/vocab/sampling.h"
#include "streamvec/vocab/stream_vocabulary.h"

namespace streamvec {

// Who does what: the last workers may only read, for the others, and nodes behind the workers only own rows. A run
// without a cluster reads and trains.
bool only_reads(const ClusterSettings& cluster);
bool reads(const ClusterSettings& cluster);
bool only_serves(const ClusterSettings& cluster);

// Puts the sources of a node where the checkpoint of the one that led says that they stood; of a checkpoint of a run of
// files, where they stood in the stream before that. kDataLoss when it cannot be read.
Status restore_sources(const ClusterSettings& cluster, const Checkpoint& existing, Intake& intake);

// All but await_words(), await_slots(), withdrawn() and trained() is called by the thread that watches the run.
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
  // Starts this node, which then looks for the others. `shared`: of the node that leads at first, and of it alone, the
  // vocabulary that all share. The options are borrowed.
  static Result<std::unique_ptr<StreamCluster>> join(const TrainOptions& options, const std::string& model,
                                                     int32_t threads, Parts parts,
                                                     std::optional<StreamVocabulary> shared);

  // False when it is to stop while other nodes are awaited.
  Result<bool> await_start(const std::atomic<bool>* stop) { return node_->await_start(stop); }
  // This node leads: at first the first one, and where nodes are found by etcd whoever has taken its place. The second
  // is so beyond doubt, as one that writes has to know.
  bool leads() const { return node_->leads(); }
  const Synchronizer& node() const { return *node_; }
  // Where a checkpoint says that sources stood: of the run before this one; of one that takes another's place, what
  // that one has saved.
  void begin_cursors(const nlohmann::json& saved) { cursors_.begin(options_.cluster, saved); }
  void keep_cursors(const nlohmann::json& saved) { cursors_.keep(saved); }
  // Of a node that only owns rows: until all have finished.
  Status serve() { return node_->finish({}).status(); }

  // Where some nodes only read: chunks are sent or taken by a thread, from start_relay() until stop_relay(), after
  // which none is sent any more; await_relay() once the intake has stopped. relayed(): all that was read is sent,
  // and what was withdrawn is erased everywhere, or nobody takes it.
  void start_relay();
  void stop_relay();
  void await_relay();
  bool relayed() const { return relay_over_; }

  void await_words() { exchange_->await_words(); }  // by threads that read sources, as the next
  void await_slots() { exchange_->await_slots(); }
  void withdrawn(const std::shared_ptr<const ReplayItem>& item) { sender_.announce(item); }  // of one that only reads
  bool trained(int64_t tokens, double lr) { return node_->trained(tokens, lr).ok(); }

  void ask_to_stop() { exchange_->ask_to_stop(); }
  bool asked_to_stop() const { return exchange_->asked_to_stop(); }
  bool failed() const { return node_->failed(); }  // part() says why; threads that have nothing to train on do not hear
  // Of nodes that do not lead, again and again: tells where the sources stand when the leader saves, and the sources
  // what is safe.
  void help_to_save();
  // Of all, again and again: who reads what of the sources that nodes share, anew whenever others take part.
  void divide_sources();
  // Of the node that leads: it has the words of all. One that has taken another's place has yet to ask for them.
  bool may_save() const { return all_.has_value() || exchange_->has_words(); }
  // Of the same, around a save: hears where the others' sources stand, holds the words, and lets them go.
  void gather_cursors();
  void hold() { exchange_->hold(); }
  void go_on(bool saved);
  // REQUIRES: hold(). The shared vocabulary, and the others' cursors beside this node's own.
  std::string save_vocabulary() const { return exchange_->save_vocabulary(); }
  void add_cursors(nlohmann::json& cursors);

  // Stays until everybody has finished, calling meanwhile() again and again, whose errors end it, and where another may
  // take the leader's place until the model is saved: by itself, if it leads then. When it is to stop, the node that
  // leads stops all; another one leaves the others alone when they go on, and says so in `note`.
  Status part(const TrainedTotals& own, const std::atomic<bool>* stop, const std::function<Status()>& meanwhile,
              std::string& note);
  void saved() { node_->saved(); }  // of the node that leads: the others may go
  // Of the node that leads, after part(): of all nodes.
  const std::optional<TrainedTotals>& all() const { return all_; }
  ClusterStats stats() const { return node_->stats(); }

 private:
  StreamCluster(const TrainOptions& options, const std::string& model, Parts parts)
      : options_(options), model_(model), parts_(std::move(parts)) {}
  Status end(const TrainedTotals& own, const TrainedTotals& told);
  std::string own_cursors() const;
  std::string make_division();
  void read_share(const std::string& division);
  void set_row_pulls();
  void renew_tables();
  void send_chunks();
  void take_chunks();
  void take_chunk(const std::shared_ptr<const ReplayItem>& item);

  const TrainOptions& options_;
  const std::string model_;
  const Parts parts_;
  NodeCursors cursors_;
  std::vector<float> row_pulls_;
  std::optional<TrainedTotals> all_;
  ChunkSender sender_;
  ChunkReceiver receiver_;
  std::thread relay_;
  std::atomic<bool> relay_stop_{false}, relay_over_{false};
  std::unique_ptr<StreamExchange> exchange_;
  std::unique_ptr<StreamSynchronizer> node_;  // goes before what it borrows
};

}  // namespace streamvec
