// Who trains on which pieces of the text, as the node that leads knows it: pieces are handed out ahead, few at a time,
// so that fast nodes train on more of them, a newcomer gets its part, and what a lost node had not finished goes to the
// others.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "streamvec/cluster/control.h"
#include "streamvec/transport/transport.h"

namespace streamvec {

// A pure state machine. Pieces are numbered over all epochs.
class PieceBoard {
 public:
  // `before`: what the run had trained before it came to this text, and in those pieces of it that are `finished`
  // already, which nobody is given.
  explicit PieceBoard(PieceRange text, const TrainedTotals& before = {}, std::vector<PieceRange> finished = {});
  // The board of a leader that is gone, by what those that are left have and know: what none of them has at hand or
  // knows to be finished is handed out again. `before` and `finished` count only if none was ever told of the run: what
  // is told has them.
  static PieceBoard resumed(PieceRange text, const TrainedTotals& before, const std::vector<PieceRange>& finished,
                            const std::map<NodeId, KnownText>& known);

  // Up to `wanted` pieces for the node, those that others have left first; towards the end fewer, so that `workers`
  // nodes end together. None: all are handed out, and may still come back.
  std::vector<PieceRange> take(NodeId node, int64_t wanted, int64_t workers);
  // The same for all that wait, `wanted` pieces each, with where the text stands: what each is to be told. Those that
  // get none go on waiting.
  std::vector<std::pair<NodeId, Control>> hand_out(std::map<NodeId, int64_t>& wanted, int64_t workers);
  // The node has trained on these, and `so_far` in all. What it was not given does not count.
  void finish(NodeId node, std::span<const PieceRange> pieces, const TrainedTotals& so_far);
  // The node is gone, or trains no more: what it has not finished is handed out again.
  void leave(NodeId node);

  bool over() const;  // every piece is finished
  // Of the run, with what nodes that are gone have finished.
  TextStanding standing() const;
  const std::map<NodeId, TrainedTotals>& trained() const { return trained_; }
  const TrainedTotals& before() const { return before_; }

 private:
  std::set<int64_t> open() const;  // handed out, and not finished or left
  void pass_finished();

  int64_t next_;
  int64_t end_;
  TrainedTotals before_;
  std::vector<PieceRange> finished_ahead_;  // all after next_
  std::set<int64_t> returned_;
  std::map<NodeId, std::set<int64_t>> in_work_;
  std::map<NodeId, TrainedTotals> trained_;
};

}  // namespace streamvec
