// Text of nodes that share out the tables, handed out piece by piece by the leader, as where nodes have copies
// (node_membership.cc); but nobody comes, goes or takes the leader's place.
#include <utility>

#include "streamvec/cluster/shard_node.h"
#include "streamvec/sync/view.h"

namespace streamvec {

void ShardNode::begin_text() {
  if (!options_.text) return;
  if (is_among(options_.workers, self_)) pieces_ = std::make_unique<PieceQueue>(options_.threads);
  if (leads()) board_.emplace(*options_.text, options_.trained_before, options_.finished);
}

Status ShardNode::receive_text(NodeId from, std::string_view frame) {
  STREAMVEC_ASSIGN_OR_RETURN(const Control control, decode_control(frame));
  const std::lock_guard lock(mutex_);
  if (board_ && control.kind == ControlKind::kAsk) {
    board_->finish(from, control.pieces, control.trained);
    if (control.wanted > 0) wanted_[from] = control.wanted;
    hand_out();
  }
  if (pieces_ == nullptr || from != leader_) return {};
  if (control.kind == ControlKind::kPieces || control.kind == ControlKind::kTextOver)
    pieces_->give(control.pieces, control.standing, std::ssize(options_.workers));
  if (control.kind == ControlKind::kTextOver) pieces_->end(PieceQueue::Next::kOver);
  return {};
}

// Under the lock.
void ShardNode::hand_out() {
  if (text_over_) return;
  for (const auto& [worker, pieces] : board_->hand_out(wanted_, std::ssize(options_.workers))) post(worker, pieces);
  if (!board_->over()) return;
  text_over_ = true;
  Control over{ControlKind::kTextOver};
  over.standing = board_->standing();
  for (const NodeId worker : options_.workers) post(worker, over);
}

// Under the lock. Of a run that is stopped: what a worker has not finished is for the next.
void ShardNode::leave_text(NodeId worker) {
  if (!board_) return;
  board_->leave(worker);
  wanted_.erase(worker);
}

// Under the lock, when all have finished: where the text stands, for the checkpoint, and what was trained before.
void ShardNode::add_text(TrainedTotals& all) {
  if (!board_) return;
  pieces_->give({}, board_->standing(), std::ssize(options_.workers));
  all.tokens += board_->before().tokens;
  all.pairs += board_->before().pairs;
}

}  // namespace streamvec
