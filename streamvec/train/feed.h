// One source shared by all training threads: hands out pieces of text, epoch after epoch, counts what came of them, and
// can be brought to a halt between two pieces so that a checkpoint sees a whole state.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "streamvec/core/status.h"
#include "streamvec/source/source.h"
#include "streamvec/train/run_state.h"

namespace streamvec {

struct Piece {
  Document document;
  int32_t epoch = 0;
  int64_t step = 0;      // its number over all runs
  double fraction = -1;  // of the run, before it
};

struct PieceResult {
  int64_t tokens = 0, pairs = 0, refused = 0;
  double loss = 0;
  int64_t bytes_replaced = 0, words_dropped = 0;
};

// Thread-safe.
class Feed {
 public:
  // Begins at `state`; the source must stand there already. Of `parts` nodes that read the same source this one takes
  // every parts-th piece, from `part` on.
  Feed(Source& source, int32_t epochs, RunState state, int32_t part = 0, int32_t parts = 1);

  // The next piece; false when there is none: all epochs are over, stop() was called, or the source failed.
  // Waits while the feed is paused. Every piece must be given back with finish().
  bool next(Piece& piece);
  void finish(const Piece& piece, const PieceResult& result);

  void stop();
  bool over() const;                                // next() gives no more and all pieces are finished
  void await_over(std::chrono::milliseconds most);  // returns at once when that comes true
  Status status() const;                            // what the source failed with

  RunState state() const;
  double bytes_fraction() const;  // how much of the source was read in this epoch; -1 when its size is unknown
  // Returns once no piece is being worked on; next() waits until resume().
  RunState pause();
  void resume();

 private:
  Result<bool> read_piece(Deadline deadline, Piece& piece);
  Result<bool> read_document(Deadline deadline);

  Source& source_;
  const int32_t epochs_, part_, parts_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable over_;  // its own, so that pieces which come and go do not wake who waits for the end
  RunState state_;
  Status status_;
  std::vector<Document> documents_;
  int32_t in_flight_ = 0;
  int64_t steps_given_;
  bool paused_ = false, ended_ = false;
};

}  // namespace streamvec
