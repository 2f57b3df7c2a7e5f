#include "streamvec/cluster/piece_board.h"

#include <algorithm>
#include <utility>

namespace streamvec {
namespace {

constexpr int64_t kShareMin = 2;  // pieces: one to work on, one at hand

}  // namespace

PieceBoard::PieceBoard(PieceRange text, const TrainedTotals& before, std::vector<PieceRange> finished)
    : next_(text.begin),
      end_(text.end),
      before_(before),
      finished_ahead_(renumbered(joined(std::move(finished)), text, text.begin)) {
  pass_finished();
}

void PieceBoard::pass_finished() {
  auto next = finished_ahead_.begin();
  for (; next != finished_ahead_.end() && next->begin <= next_; ++next) next_ = std::max(next_, next->end);
  finished_ahead_.erase(finished_ahead_.begin(), next);
}

std::vector<PieceRange> PieceBoard::take(NodeId node, int64_t wanted, int64_t workers) {
  const int64_t left = end_ - next_ - piece_count(finished_ahead_) + static_cast<int64_t>(returned_.size());
  // Half of what is left, a share for each (guided self-scheduling, Polychronopoulos and Kuck 1987).
  const int64_t share = std::max(left / (2 * std::max<int64_t>(workers, 1)), kShareMin);
  std::vector<PieceRange> given;
  for (int64_t count = std::min({wanted, share, left}); count > 0; --count) {
    const int64_t piece = returned_.empty() ? next_++ : returned_.extract(returned_.begin()).value();
    pass_finished();
    in_work_[node].insert(piece);
    append(piece, given);
  }
  return given;
}

std::vector<std::pair<NodeId, Control>> PieceBoard::hand_out(std::map<NodeId, int64_t>& wanted, int64_t workers) {
  std::vector<std::pair<NodeId, Control>> orders;
  for (auto asked = wanted.begin(); asked != wanted.end(); asked = wanted.erase(asked)) {
    Control pieces{ControlKind::kPieces};
    pieces.pieces = take(asked->first, asked->second, workers);
    if (pieces.pieces.empty()) break;  // until somebody leaves some
    pieces.standing = standing();
    orders.emplace_back(asked->first, std::move(pieces));
  }
  return orders;
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

std::set<int64_t> PieceBoard::open() const {
  std::set<int64_t> open = returned_;
  for (const auto& [node, pieces] : in_work_) open.insert(pieces.begin(), pieces.end());
  return open;
}

TextStanding PieceBoard::standing() const {
  TextStanding standing{next_, before_.tokens, before_.pairs, {}, trained_};
  int64_t last = -1;  // of those that are open
  for (const int64_t piece : open()) {
    if (last < 0)
      standing.finished_before = piece;
    else if (piece > last + 1)
      standing.finished.push_back({last + 1, piece});
    last = piece;
  }
  if (last >= 0 && next_ > last + 1) standing.finished.push_back({last + 1, next_});
  standing.finished.insert(standing.finished.end(), finished_ahead_.begin(), finished_ahead_.end());
  for (const auto& [node, trained] : trained_) {
    standing.tokens += trained.tokens;
    standing.pairs += trained.pairs;
  }
  return standing;
}

// Standings only ever grow, so that all of them together are the latest.
PieceBoard PieceBoard::resumed(PieceRange text, const TrainedTotals& before, const std::vector<PieceRange>& finished,
                               const std::map<NodeId, KnownText>& known) {
  PieceBoard board(text, before);
  int64_t told_most = 0;
  std::vector<PieceRange> all_finished;
  for (const auto& [node, knows] : known) {
    const TextStanding& standing = knows.standing;
    all_finished.push_back({text.begin, standing.finished_before});
    all_finished.insert(all_finished.end(), standing.finished.begin(), standing.finished.end());
    if (standing.tokens > told_most) {
      told_most = standing.tokens;
      board.before_ = {standing.tokens, standing.pairs, 0, 0};
      for (const auto& [by, trained] : standing.trained) {
        board.before_.tokens -= trained.tokens;
        board.before_.pairs -= trained.pairs;
      }
    }
    for (const auto& [by, trained] : standing.trained)
      if (trained.tokens >= board.trained_[by].tokens) board.trained_[by] = trained;
  }
  if (told_most == 0) all_finished.insert(all_finished.end(), finished.begin(), finished.end());
  board.finished_ahead_ = renumbered(joined(std::move(all_finished)), text, text.begin);
  const std::vector<PieceRange> settled = board.finished_ahead_;
  board.pass_finished();
  const int64_t begin = board.next_;
  std::set<int64_t> held;
  for (const auto& [node, knows] : known)
    for (const PieceRange& range : knows.held)
      for (int64_t piece = std::max(range.begin, begin); piece < std::min(range.end, text.end); ++piece) {
        board.next_ = std::max(board.next_, piece + 1);
        if (!has(settled, piece) && held.insert(piece).second) board.in_work_[node].insert(piece);
      }
  for (int64_t piece = begin; piece < board.next_; ++piece)
    if (held.count(piece) == 0 && !has(settled, piece)) board.returned_.insert(piece);
  board.pass_finished();
  return board;
}

}  // namespace streamvec
