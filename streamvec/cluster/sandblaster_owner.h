// An owner of rows in a Sandblaster run: keeps its share of all vectors, does with them what the coordinator says,
// gives workers the rows that they ask for and adds what they bring to the gradient, each portion once. Other owners
// have second copies of its point, so that no row is lost with a node.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "streamvec/cluster/sandblaster_message.h"
#include "streamvec/cluster/vector_shard.h"
#include "streamvec/sync/shard.h"

namespace streamvec {

// Who owns the row when its owner is gone: rendezvous hashing without it. REQUIRES: two owners at least.
NodeId second_owner_of(RowKey row, std::span<const NodeId> owners);

// A pure state machine, but for sending. Not thread-safe.
class SandblasterOwner {
 public:
  struct Options {
    NodeId self = 0, coordinator = 0;
    RowKey row_end = 0;
    int64_t dim = 0;
    std::function<void(RowKey, std::span<float>)> initial;  // values that rows begin with, the same everywhere
    std::function<float(RowKey)> scale;                     // VectorShard's
  };
  static Result<std::unique_ptr<SandblasterOwner>> make(const Options& options, SandblasterPost post);

  // Of another set of owners, or a question to this one. The sender sees to it that epochs agree. An error: this node
  // cannot go on.
  Status receive(NodeId from, const SandblasterMessage& message);

 private:
  SandblasterOwner(const Options& options, SandblasterPost post);
  Status take_view(const SandblasterMessage& view);
  Status apply(const SandblasterMessage& question);
  Status begin(const SandblasterMessage& question);
  Status give_rows(NodeId to, const SandblasterMessage& question);
  Status take_gradient(NodeId from, const SandblasterMessage& part);
  Status keep(const SandblasterMessage& question);
  void send_copies();
  Status take_copies(NodeId from, const SandblasterMessage& copies);

  const Options options_;
  const SandblasterPost post_;
  VectorShard shard_;
  Shard copies_;  // of rows that others own
  uint32_t epoch_ = 0;
  std::vector<NodeId> owners_;
  uint64_t evaluation_ = 0;
  std::set<std::pair<uint32_t, RowKey>> taken_;  // parts of the gradient that are in, by portion and first row
  std::deque<std::pair<NodeId, std::vector<RowKey>>> to_copy_;
  int64_t copies_under_way_ = 0;
  uint64_t keeping_ = 0;  // the question that asked for it
};

}  // namespace streamvec
