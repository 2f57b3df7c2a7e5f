#include "streamvec/cluster/piece_queue.h"

#include <algorithm>
#include <utility>

namespace streamvec {
namespace {

constexpr double kReport_s = 0.25;  // between two reports: what a node that dies has done since then is done again
constexpr double kAnswer_s = 0.05;  // the first request takes at most, where there are pieces

}  // namespace

PieceQueue::Next PieceQueue::take(int64_t& piece) {
  const std::lock_guard lock(mutex_);
  if (end_ != Next::kNotYet) return end_;
  if (waiting_.empty()) return Next::kNotYet;
  piece = waiting_.front();
  waiting_.pop_front();
  in_work_.insert(piece);
  return Next::kPiece;
}

void PieceQueue::await(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, most, [&] { return end_ != Next::kNotYet || !waiting_.empty(); });
}

void PieceQueue::finish(int64_t piece, const TrainedTotals& own) {
  const std::lock_guard lock(mutex_);
  in_work_.erase(piece);
  finished_.push_back(piece);
  unheard_.insert(piece);
  ++pieces_since_;
  if (own.tokens >= own_.tokens) own_ = own;  // threads may come in another order than they were counted in
}

int64_t PieceQueue::tokens_of_all() const {
  const std::lock_guard lock(mutex_);
  return standing_.tokens + (own_.tokens - counted_) * workers_;
}

TextStanding PieceQueue::standing() const {
  const std::lock_guard lock(mutex_);
  return standing_;
}

void PieceQueue::give(std::span<const PieceRange> pieces, const TextStanding& standing, int64_t workers) {
  const std::lock_guard lock(mutex_);
  for (const PieceRange& range : pieces)
    for (int64_t piece = range.begin; piece < range.end; ++piece) waiting_.push_back(piece);
  standing_ = standing;
  unheard_.erase(unheard_.begin(), unheard_.lower_bound(standing.finished_before));
  for (const PieceRange& range : standing.finished)
    unheard_.erase(unheard_.lower_bound(range.begin), unheard_.lower_bound(range.end));
  counted_ = told_;
  workers_ = workers;
  if (pieces.empty()) return;
  asked_ = false;
  given_ = true;
  changed_.notify_all();
}

void PieceQueue::end(Next why) {
  const std::lock_guard lock(mutex_);
  if (end_ == Next::kNotYet) end_ = why;
  changed_.notify_all();
}

std::optional<PieceQueue::Report> PieceQueue::report(double now_s) {
  const std::lock_guard lock(mutex_);
  if (end_ != Next::kNotYet) return std::nullopt;
  const double since_s = now_s - told_s_;
  const bool idle = waiting_.empty() && in_work_.empty();
  const auto left = static_cast<int64_t>(waiting_.size());
  if (now_s - rated_s_ >= kReport_s) {
    pieces_per_s_ = static_cast<double>(std::exchange(pieces_since_, 0)) / (now_s - rated_s_);
    rated_s_ = now_s;
  }
  const auto ahead = std::max<int64_t>(ahead_.least * threads_, static_cast<int64_t>(ahead_.seconds * pieces_per_s_));
  const bool asks = !asked_ && 2 * left <= ahead;
  if (!asks && (finished_.empty() || (since_s < kReport_s && !idle))) return std::nullopt;
  told_s_ = now_s;
  Report report = take_finished();
  if (asks) report.wanted = ahead - left;
  asked_ = asked_ || asks;
  return report;
}

PieceQueue::Report PieceQueue::last_report() {
  const std::lock_guard lock(mutex_);
  return take_finished();
}

PieceQueue::Report PieceQueue::take_finished() {
  Report report;
  std::sort(finished_.begin(), finished_.end());
  for (const int64_t piece : std::exchange(finished_, {})) append(piece, report.finished);
  report.trained = own_;
  told_ = own_.tokens;
  return report;
}

KnownText PieceQueue::known(NodeId self) {
  const std::lock_guard lock(mutex_);
  std::set<int64_t> held = in_work_;
  held.insert(waiting_.begin(), waiting_.end());
  KnownText known{{}, standing_};
  for (const int64_t piece : held) append(piece, known.held);
  for (const int64_t piece : unheard_) append(piece, known.standing.finished);
  TrainedTotals& counted = known.standing.trained[self];
  known.standing.tokens += own_.tokens - counted.tokens;
  known.standing.pairs += own_.pairs - counted.pairs;
  counted = own_;
  asked_ = false;
  return known;
}

bool PieceQueue::dry(double now_s) const {
  const std::lock_guard lock(mutex_);
  const bool answered = given_ || (asked_ && now_s - told_s_ > kAnswer_s);
  return answered && waiting_.empty() && in_work_.empty();
}

Control asking(const PieceQueue::Report& report) {
  Control ask{ControlKind::kAsk};
  ask.pieces = report.finished;
  ask.wanted = report.wanted;
  ask.trained = report.trained;
  return ask;
}

}  // namespace streamvec
