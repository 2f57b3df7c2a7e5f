#include "streamvec/cluster/piece_board.h"

#include <algorithm>

namespace streamvec {
namespace {

constexpr int64_t kShareMin = 2;  // pieces: one to work on, one at hand

}  // namespace

std::vector<PieceRange> PieceBoard::take(NodeId node, int64_t wanted, int64_t workers) {
  const int64_t left = end_ - next_ + static_cast<int64_t>(returned_.size());
  // Half of what is left, a share for each (guided self-scheduling, Polychronopoulos and Kuck 1987).
  const int64_t share = std::max(left / (2 * std::max<int64_t>(workers, 1)), kShareMin);
  std::vector<PieceRange> given;
  for (int64_t count = std::min({wanted, share, left}); count > 0; --count) {
    const int64_t piece = returned_.empty() ? next_++ : returned_.extract(returned_.begin()).value();
    in_work_[node].insert(piece);
    append(piece, given);
  }
  return given;
}

void PieceBoard::finish(NodeId node, std::span<const PieceRange> pieces, const TrainedTotals& so_far) {
  std::set<int64_t>& in_work = in_work_[node];
  for (const PieceRange& range : pieces)
    in_work.erase(in_work.lower_bound(range.begin), in_work.lower_bound(std::max(range.begin, range.end)));
  trained_[node] = so_far;
}

void PieceBoard::leave(NodeId node) {
  const auto found = in_work_.find(node);
  if (found == in_work_.end()) return;
  returned_.merge(found->second);
  in_work_.erase(found);
}

bool PieceBoard::over() const {
  return next_ == end_ && returned_.empty() &&
         std::all_of(in_work_.begin(), in_work_.end(), [](const auto& node) { return node.second.empty(); });
}

TextStanding PieceBoard::standing() const {
  TextStanding standing{returned_.empty() ? next_ : std::min(next_, *returned_.begin()), before_.tokens, before_.pairs};
  for (const auto& [node, pieces] : in_work_)
    if (!pieces.empty()) standing.finished_before = std::min(standing.finished_before, *pieces.begin());
  for (const auto& [node, trained] : trained_) {
    standing.tokens += trained.tokens;
    standing.pairs += trained.pairs;
  }
  return standing;
}

}  // namespace streamvec
