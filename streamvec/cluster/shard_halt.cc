// Nodes that share out the tables stand still for a checkpoint: rows and text are of one moment then.
#include <algorithm>

#include "streamvec/cluster/shard_node.h"

namespace streamvec {

Status ShardNode::halt_all() {
  {
    const std::lock_guard lock(mutex_);
    ++halt_;
    for (const NodeId worker : options_.workers)
      if (worker != self_) post(worker, {.kind = SandblasterKind::kHalt, .number = halt_});
  }
  STREAMVEC_RETURN_IF_ERROR(await_owners());
  std::unique_lock lock(mutex_);
  still_for_ = halt_;
  changed_.wait(lock, [&] {
    return !status_.ok() || std::all_of(options_.workers.begin(), options_.workers.end(), [&](NodeId worker) {
      return halted_[worker] == halt_ || finished_.count(worker) > 0;
    });
  });
  if (status_.ok() && board_) pieces_->give({}, board_->standing(), std::ssize(options_.workers));
  return status_;
}

void ShardNode::go_on() {
  const std::lock_guard lock(mutex_);
  if (gone_on_ == halt_) return;
  gone_on_ = halt_;
  for (const NodeId worker : options_.workers)
    if (worker != self_) post(worker, {.kind = SandblasterKind::kGoOn, .number = halt_});
}

bool ShardNode::halt_wanted() const {
  const std::lock_guard lock(mutex_);
  return halt_ > gone_on_ && status_.ok();
}

Status ShardNode::halt() {
  STREAMVEC_RETURN_IF_ERROR(await_owners());
  std::unique_lock lock(mutex_);
  const uint64_t number = still_for_ = halt_;  // by the time that this wakes up the next may be asked for
  changed_.wait(lock, [&] { return !status_.ok() || gone_on_ >= number; });
  return status_;
}

// By the talking thread, which tells of pieces, too: all that are finished are known when this is.
void ShardNode::tell_halt() {
  const std::lock_guard lock(mutex_);
  if (halt_told_ == still_for_) return;
  halt_told_ = still_for_;
  if (pieces_ != nullptr) post(leader_, asking(pieces_->last_report()));
  post(leader_, {.kind = SandblasterKind::kHalted, .number = halt_told_});
}

// Under the lock.
void ShardNode::receive_of_halt(NodeId from, const SandblasterMessage& message) {
  if (message.kind == SandblasterKind::kHalted) halted_[from] = message.number;
  if (from != leader_) return;
  if (message.kind == SandblasterKind::kHalt) halt_ = message.number;
  if (message.kind == SandblasterKind::kGoOn) gone_on_ = message.number;
}

}  // namespace streamvec
