// Hands the tiles of a co-occurrence matrix to all training threads, iteration after iteration, each in an order of its
// own, and counts what came of them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/model/cooccurrence.h"
#include "streamvec/model/model.h"
#include "streamvec/train/run_state.h"

namespace streamvec {

struct TilePiece {
  int64_t tile = 0;
  int32_t epoch = 0;
};

// Thread-safe.
class TileFeed {
 public:
  // Begins at `state`, with the first `tiles_done` tiles of its epoch behind. The store is borrowed.
  TileFeed(const CellStore& store, int32_t epochs, uint64_t seed, RunState state, int64_t tiles_done);

  // The next tile; false when there is none: all epochs are over or stop() was called. Waits while the feed is paused.
  // Every piece must be given back with finish() or fail().
  bool next(TilePiece& piece);
  void finish(const TilePiece& piece, const StepStats& stats);
  void fail(const Status& status);

  void stop();
  bool over() const;      // next() gives no more and all pieces are finished
  Status status() const;  // what a piece failed with
  // Returns once no piece is being worked on; next() waits until resume().
  void pause();
  void resume();

  RunState state() const;
  int64_t tiles_done() const;  // of the epoch
  double fraction() const;     // of the run

 private:
  void begin_epoch();

  const CellStore& store_;
  const int32_t epochs_;
  const uint64_t seed_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  RunState state_;
  Status status_;
  std::vector<int64_t> order_;
  size_t next_ = 0;
  int64_t cells_given_ = 0;  // in the epoch
  int32_t in_flight_ = 0;
  bool paused_ = false, ended_ = false;
};

}  // namespace streamvec
