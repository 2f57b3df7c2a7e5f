#include "streamvec/train/tile_feed.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

constexpr uint64_t kOrderDraws = 5;

}  // namespace

TileFeed::TileFeed(const CellStore& store, int32_t epochs, uint64_t seed, RunState state, int64_t tiles_done)
    : store_(store), epochs_(epochs), seed_(seed), state_(std::move(state)) {
  ended_ = state_.epoch >= epochs_ || store_.tiles().empty();
  begin_epoch();
  for (; !ended_ && next_ < std::min(static_cast<size_t>(tiles_done), order_.size()); ++next_)
    cells_given_ += store_.tiles()[static_cast<size_t>(order_[next_])].cells;
}

void TileFeed::begin_epoch() {
  next_ = 0;
  cells_given_ = 0;
  order_.resize(store_.tiles().size());
  std::iota(order_.begin(), order_.end(), 0);
  Random random(mix(seed_, kOrderDraws, static_cast<uint64_t>(state_.epoch)));
  for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random.below(static_cast<uint32_t>(i))]);
}

bool TileFeed::next(TilePiece& piece) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !paused_ || ended_; });
  if (ended_) return false;
  if (next_ == order_.size()) {
    ++state_.epoch;
    if (state_.epoch >= epochs_) {
      ended_ = true;
      changed_.notify_all();
      return false;
    }
    begin_epoch();
    state_.loss = 0;
    state_.loss_pairs = 0;
  }
  piece = {order_[next_++], state_.epoch};
  cells_given_ += store_.tiles()[static_cast<size_t>(piece.tile)].cells;
  ++in_flight_;
  return true;
}

void TileFeed::finish(const TilePiece& piece, const StepStats& stats) {
  const std::lock_guard lock(mutex_);
  ++state_.step;
  state_.pairs += stats.pairs;
  state_.updates_refused += stats.refused;
  // As in Feed: tiles of the iteration before that end late are left out of the new one's loss.
  if (piece.epoch == std::min(state_.epoch, epochs_ - 1)) {
    state_.loss += stats.loss;
    state_.loss_pairs += stats.pairs;
  }
  --in_flight_;
  changed_.notify_all();
}

void TileFeed::fail(const Status& status) {
  const std::lock_guard lock(mutex_);
  if (status_.ok()) status_ = status;
  ended_ = true;
  --in_flight_;
  changed_.notify_all();
}

void TileFeed::stop() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

bool TileFeed::over() const {
  const std::lock_guard lock(mutex_);
  return ended_ && in_flight_ == 0;
}

Status TileFeed::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

void TileFeed::pause() {
  std::unique_lock lock(mutex_);
  paused_ = true;
  changed_.wait(lock, [&] { return in_flight_ == 0; });
}

void TileFeed::resume() {
  const std::lock_guard lock(mutex_);
  paused_ = false;
  changed_.notify_all();
}

RunState TileFeed::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

int64_t TileFeed::tiles_done() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(next_);
}

double TileFeed::fraction() const {
  const std::lock_guard lock(mutex_);
  if (state_.epoch >= epochs_) return 1;
  double cells = 0;
  for (const CellStore::Tile& tile : store_.tiles()) cells += tile.cells;
  return (state_.epoch + (cells > 0 ? static_cast<double>(cells_given_) / cells : 1)) / epochs_;
}

}  // namespace streamvec
