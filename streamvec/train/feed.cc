#include "streamvec/train/feed.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>
#include <utility>

namespace streamvec {
namespace {

constexpr PieceRange kAllPieces{0, std::numeric_limits<int64_t>::max()};

}  // namespace

Random draws_of(const Piece& piece, uint64_t seed) {
  constexpr uint64_t kPieceDraws = 1;
  return Random(mix(seed, kPieceDraws, static_cast<uint64_t>(piece.step)));
}

PieceResult read_result(const Tokens& tokens) {
  PieceResult result;
  result.tokens = static_cast<int64_t>(tokens.words.size());
  result.bytes_replaced = tokens.bytes_replaced;
  result.words_dropped = tokens.words_dropped;
  return result;
}

Feed::Feed(Source& source, int32_t epochs, RunState state)
    : source_(source),
      epochs_(epochs),
      state_(std::move(state)),
      steps_given_(state_.step),
      first_step_(state_.step),
      finished_ahead_(std::exchange(state_.finished_ahead, {})),
      step_at_cursor_(state_.step),
      whole_epoch_(state_.cursor.empty()) {
  ended_ = state_.epoch >= epochs_;
}

bool Feed::next(Piece& piece) {
  // Short waits, so that a source with nothing to say does not keep the lock from stop() and pause().
  constexpr std::chrono::milliseconds kWait{100}, kPause{1};
  while (true) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_ || (!paused_ && !waits_for_others()); });
    if (ended_) return false;
    const Result<bool> read =
        queue_ != nullptr ? read_handed_out(Deadline::after(kWait), piece) : read_piece(Deadline::after(kWait), piece);
    if (read.ok() && *read) {
      ++in_flight_;
      return true;
    }
    if (!read.ok() && read.status().code() == Code::kDeadlineExceeded) {
      // A mutex is not fair: without a pause this thread would take it again before one that waits for it wakes up.
      const bool waits = queue_ != nullptr && taken_ < 0;
      lock.unlock();
      waits ? queue_->await(kWait) : std::this_thread::sleep_for(kPause);
      continue;
    }
    if (!read.ok()) status_ = read.status();
    ended_ = true;
    changed_.notify_all();
    over_.notify_all();
    return false;
  }
}

void Feed::leave_out_text(std::function<bool()> all_kept) {
  const std::lock_guard lock(mutex_);
  all_kept_ = std::move(all_kept);
}

bool Feed::waits_for_others() const {
  return epoch_read_ && !text_left_out_ && all_kept_ && whole_epoch_ && in_flight_ > 0;
}

// The next document of the source, in this epoch or the next one; false after the last.
Result<bool> Feed::read_document(Deadline deadline) {
  while (true) {
    documents_.clear();
    STREAMVEC_ASSIGN_OR_RETURN(const bool more, text_left_out_ ? next_without_text() : next_with_text(deadline));
    if (more) return true;
    STREAMVEC_ASSIGN_OR_RETURN(const bool begun, begin_epoch());
    if (!begun) return false;
  }
}

Result<bool> Feed::next_without_text() {
  if (next_cursor_ == cursors_.size()) return false;
  documents_.emplace_back().cursor = cursors_[next_cursor_++];
  return true;
}

Result<bool> Feed::next_with_text(Deadline deadline) {
  if (!epoch_read_) {
    STREAMVEC_ASSIGN_OR_RETURN(const int64_t count, source_.read(1, deadline, documents_));
    if (count > 0 && all_kept_ && whole_epoch_) cursors_.push_back(documents_.front().cursor);
    if (count > 0 && keeps_trail_ && whole_epoch_) trail_.note(++position_, documents_.front().cursor);
    if (count > 0) return true;
    epoch_read_ = true;
  }
  // What others have at hand is not kept yet.
  if (waits_for_others()) return error(Code::kDeadlineExceeded, "pieces are in work");
  return false;
}

Result<bool> Feed::begin_epoch() {
  ++state_.epoch;
  state_.cursor.clear();
  step_at_cursor_ = steps_given_;
  if (state_.epoch >= epochs_) return false;
  state_.loss = 0;
  state_.loss_pairs = 0;
  next_cursor_ = 0;
  text_left_out_ = all_kept_ && whole_epoch_ && all_kept_();
  if (text_left_out_) return true;
  epoch_read_ = false;
  whole_epoch_ = true;
  cursors_.clear();
  position_ = 0;
  STREAMVEC_RETURN_IF_ERROR(source_.seek(""));
  return true;
}

Result<bool> Feed::read_piece(Deadline deadline, Piece& piece) {
  do {
    if (deadline.passed()) return error(Code::kDeadlineExceeded, "on the way to the next piece");
    STREAMVEC_ASSIGN_OR_RETURN(const bool read, read_document(deadline));
    if (!read) return false;
    ++steps_given_;
  } while (passes_over_last());
  piece.document = std::move(documents_.front());
  piece.epoch = state_.epoch;
  piece.step = steps_given_ - 1;
  piece.fraction = fraction_now();
  state_.cursor = piece.document.cursor;
  step_at_cursor_ = steps_given_;
  return true;
}

// Whether the document that was just read is finished and counted already.
bool Feed::passes_over_last() {
  if (!has(finished_ahead_, steps_given_ - 1 - first_step_)) return false;
  state_.cursor = documents_.front().cursor;
  step_at_cursor_ = steps_given_;
  ++state_.step;
  if (!text_left_out_) whole_epoch_ = false;  // of this piece nobody keeps anything
  return true;
}

void Feed::keep_trail() {
  const std::lock_guard lock(mutex_);
  keeps_trail_ = true;
}

CursorTrail Feed::take_trail() {
  const std::lock_guard lock(mutex_);
  return std::move(trail_);
}

void Feed::follow(PieceQueue& queue, int64_t epoch_pieces, int64_t first, std::optional<CursorTrail> trail) {
  const std::lock_guard lock(mutex_);
  queue_ = &queue;
  epoch_pieces_ = epoch_pieces;
  begun_ = reached_ = state_;
  first_ = first;
  position_ = first % epoch_pieces;
  trail_ = trail ? std::move(*trail) : CursorTrail(position_, state_.cursor);
}

Result<bool> Feed::read_handed_out(Deadline deadline, Piece& piece) {
  if (taken_ < 0) {
    const PieceQueue::Next next = queue_->take(taken_);
    if (next == PieceQueue::Next::kNotYet) return error(Code::kDeadlineExceeded, "no piece is handed out");
    if (next == PieceQueue::Next::kStopped) return false;
    if (next == PieceQueue::Next::kOver) {
      if (state_.epoch < epochs_ - 1) state_.loss = 0, state_.loss_pairs = 0;  // the last epoch's are others'
      state_.epoch = epochs_;
      return false;
    }
  }
  STREAMVEC_RETURN_IF_ERROR(go_to(taken_ % epoch_pieces_, deadline));
  STREAMVEC_RETURN_IF_ERROR(read_next(deadline));
  piece.document = std::move(documents_.front());
  piece.epoch = static_cast<int32_t>(taken_ / epoch_pieces_);
  piece.step = begun_.step + taken_ - first_;
  // By its place: all nodes together have trained on what is before it, or are about to.
  piece.fraction = static_cast<double>(taken_) / static_cast<double>(epochs_ * epoch_pieces_);
  taken_ = -1;
  if (piece.epoch <= state_.epoch) return true;
  state_.epoch = piece.epoch;
  state_.loss = 0;
  state_.loss_pairs = 0;
  return true;
}

// Pieces of others on the way are passed over where the source can do that, and read otherwise: all threads wait
// meanwhile.
Status Feed::go_to(int64_t index, Deadline deadline) {
  constexpr int64_t kWorthASeek = 4;  // pieces: it has to read up to two
  if (index < trail_.first()) trail_ = CursorTrail();
  const bool skips = index - position_ >= kWorthASeek && source_.capabilities().skips;
  if (const auto [known, cursor] = trail_.before(index); index < position_ || (skips && known > position_)) {
    STREAMVEC_RETURN_IF_ERROR(source_.seek(cursor));
    position_ = known;
  }
  while (position_ < index) {
    if (deadline.passed()) return error(Code::kDeadlineExceeded, "on the way to piece ", index);
    STREAMVEC_RETURN_IF_ERROR(read_next(deadline));
  }
  return {};
}

Status Feed::read_next(Deadline deadline) {
  documents_.clear();
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t count, source_.read(1, deadline, documents_));
  if (count == 0)
    return error(Code::kDataLoss, source_.name(), " ends after ", position_, " pieces, and had ", epoch_pieces_,
                 " when it was counted; it must not change while it is trained on");
  trail_.note(++position_, documents_.front().cursor);
  return {};
}

TrainedTotals Feed::own() const {
  const std::lock_guard lock(mutex_);
  return own_now();
}

TrainedTotals Feed::own_now() const {
  return {state_.tokens - begun_.tokens, state_.pairs - begun_.pairs, state_.loss, state_.loss_pairs};
}

double Feed::fraction_now() const {
  if (queue_ == nullptr) return state_.fraction(epochs_);
  RunState all = state_;
  all.tokens = queue_->tokens_of_all();
  return all.fraction(epochs_);
}

RunState Feed::state_of_all() const {
  const std::lock_guard lock(mutex_);
  RunState all = state_;
  if (queue_ != nullptr) {
    all.tokens = std::max(all.tokens, queue_->tokens_of_all());
    all.pairs = std::max(all.pairs, queue_->standing().pairs);
  }
  return all;
}

double Feed::fraction() const {
  const std::lock_guard lock(mutex_);
  return fraction_now();
}

RunState Feed::whole_state() {
  const std::lock_guard lock(mutex_);
  if (queue_ == nullptr) return state_now();
  const TextStanding standing = queue_->standing();
  const int64_t finished = std::max(standing.finished_before, first_);
  const auto epoch = static_cast<int32_t>(finished / epoch_pieces_);
  const auto [index, cursor] = trail_.before(finished % epoch_pieces_);
  if (const int64_t step = begun_.step + epoch * epoch_pieces_ + index - first_; step >= reached_.step) {
    reached_.step = step;
    reached_.epoch = epoch;
    reached_.cursor = cursor;
  }
  RunState whole = state_;
  whole.step = reached_.step;
  whole.epoch = reached_.epoch;
  whole.cursor = reached_.cursor;
  whole.tokens = std::max(standing.tokens, begun_.tokens);
  whole.pairs = std::max(standing.pairs, begun_.pairs);
  // Tokens and pieces have to be of one moment, and before anything is told that is the one where the run began here.
  const bool is_told = standing.tokens > begun_.tokens || standing.finished_before > first_;
  std::vector<PieceRange> all = is_told ? standing.finished : renumbered(finished_ahead_, kAllPieces, first_);
  all.push_back({first_, finished});
  const PieceRange after{first_ + reached_.step - begun_.step, epochs_ * epoch_pieces_};
  whole.finished_ahead = renumbered(joined(std::move(all)), after, 0);
  return whole;
}

void Feed::finish(const Piece& piece, const PieceResult& result) {
  const std::lock_guard lock(mutex_);
  ++state_.step;
  state_.tokens += result.tokens;
  state_.pairs += result.pairs;
  state_.updates_refused += result.refused;
  state_.bytes_replaced += result.bytes_replaced;
  state_.words_dropped += result.words_dropped;
  // Pieces of the epoch before that end late are left out of the new epoch's loss; at the very end all belong to it.
  if (piece.epoch == std::min(state_.epoch, epochs_ - 1)) {
    state_.loss += result.loss;
    state_.loss_pairs += result.pairs;
  }
  if (queue_ != nullptr) queue_->finish(piece.step - begun_.step + first_, own_now());
  --in_flight_;
  changed_.notify_all();
  if (ended_ && in_flight_ == 0) over_.notify_all();
}

void Feed::add(const PieceResult& rest) {
  const std::lock_guard lock(mutex_);
  state_.pairs += rest.pairs;
  state_.updates_refused += rest.refused;
  state_.loss += rest.loss;
  state_.loss_pairs += rest.pairs;
}

void Feed::stop() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
  over_.notify_all();
}

bool Feed::over() const {
  const std::lock_guard lock(mutex_);
  return ended_ && in_flight_ == 0;
}

void Feed::await_over(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  over_.wait_for(lock, most, [&] { return ended_ && in_flight_ == 0; });
}

Status Feed::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

RunState Feed::state() const {
  const std::lock_guard lock(mutex_);
  return state_now();
}

RunState Feed::state_now() const {
  RunState now = state_;
  now.finished_ahead = renumbered(finished_ahead_, {step_at_cursor_ - first_step_, kAllPieces.end}, 0);
  return now;
}

double Feed::bytes_fraction() const {
  const std::lock_guard lock(mutex_);
  const int64_t total = source_.bytes_total();
  return total > 0 ? static_cast<double>(source_.bytes_read()) / static_cast<double>(total) : -1;
}

RunState Feed::pause() {
  std::unique_lock lock(mutex_);
  paused_ = true;
  changed_.wait(lock, [&] { return in_flight_ == 0; });
  return state_now();
}

void Feed::resume() {
  const std::lock_guard lock(mutex_);
  paused_ = false;
  changed_.notify_all();
}

}  // namespace streamvec
