// How rows reach their owner in a new membership: collects what the workers know of them, takes the newest, and writes
// what each worker has to be told. Part of RowServer.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/sync/message.h"
#include "streamvec/sync/row_clocks.h"
#include "streamvec/sync/row_server.h"
#include "streamvec/sync/shard.h"
#include "streamvec/sync/view.h"

namespace streamvec {

class Handover {
 public:
  explicit Handover(const SyncOptions& options) : options_(options) {}

  // Gives rows of `owned` that are another's now to their owners, at a version after `version`, and notes which are
  // ours now. Workers that took part before know the rows that stay; the others will be told all of them.
  void begin(const View& view, int64_t version, std::span<const WorkerClock> clocks, Shard& owned, Outbox& out);
  // Values that a worker knows or a former owner gives; a row that nobody names has its initial value. kInvalidArgument
  // as Codec::decode.
  Status receive(NodeId from, const Message& message);
  bool complete() const { return workers_.empty() && servers_.empty(); }
  // Rows that stayed and of which a worker does not know the latest.
  using MissedBy = std::function<std::vector<RowKey>(NodeId worker)>;
  // What workers are told of the row at a place of `owned` that stayed.
  using Told = std::function<const float*(int64_t place)>;
  // Fills the new rows and writes the answers, after which every worker knows the state of `version`. `clocks` are
  // those of pushes to us. To be called once, when complete().
  void finish(const Told& told, const MissedBy& missed_by, int64_t version, int64_t slowest,
              std::span<const WorkerClock> clocks, Shard& owned, Outbox& out);
  // The worker has what it was told. Once all have, former owners may forget the rows that they gave.
  void confirm(NodeId worker, Outbox& out);
  bool confirmed() const { return unconfirmed_.empty(); }
  // The row is another word's: what was to be given of the last one's is not.
  void forget(RowKey key) { given_.erase(key); }
  std::span<const RowKey> gained() const { return gained_; }
  bool is_newcomer(NodeId worker) const { return newcomers_.count(worker) > 0; }
  // Rows that stayed and that the worker was told all the same, since it said what it knows of them.
  const std::vector<RowKey>& returned(NodeId worker) const { return returned_.at(worker); }

 private:
  // A message of a worker: rows of one former owner, at its version.
  struct Report {
    NodeId from = 0;
    bool of_worker = true;
    int64_t version = 0;
    uint64_t stamp = 0;
    std::vector<WorkerClock> clocks;
    std::vector<RowKey> rows;
    Matrix values;
  };
  // A row that was ours, until its new owner has it.
  struct Given {
    NodeId to = 0;
    uint32_t epoch = 0;
    int64_t version = 0;
    std::vector<WorkerClock> clocks;
    std::vector<float> value;
  };
  struct Newest {
    size_t report = 0;
    int64_t row = 0;
  };

  void give_up(int64_t version, std::span<const WorkerClock> clocks, Shard& owned, Outbox& out);
  void tell_given(Outbox& out);
  void forget_given(NodeId taker, uint32_t epoch);
  void choose();
  void inherit();
  void fill(Shard& owned) const;
  void tell_gained(NodeId worker, Outbox& out) const;
  std::vector<RowKey> returned_by(NodeId worker) const;
  void tell_stayed(NodeId worker, std::span<const RowKey> keys, const Shard& owned, const Told& told, int64_t version,
                   std::span<const WorkerClock> clocks, Outbox& out) const;
  Message values_message(int64_t version, std::span<const WorkerClock> clocks) const;

  const SyncOptions& options_;
  View view_;
  std::set<NodeId> known_, newcomers_;
  std::set<NodeId> unconfirmed_;
  std::set<NodeId> workers_, servers_;  // whose values have not all come; those that were servers among the latter
  std::vector<RowKey> stayed_, gained_;
  std::map<NodeId, std::vector<RowKey>> returned_;  // by worker
  std::vector<Report> reports_;
  RowClocks inherited_;  // until no worker can ask any more
  std::map<RowKey, Given> given_;
  std::unordered_map<RowKey, Newest> newest_;
};

}  // namespace streamvec
