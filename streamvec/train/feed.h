// One source shared by all training threads: hands out pieces of text, epoch after epoch, counts what came of them, and
// can be brought to a halt between two pieces so that a checkpoint sees a whole state.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "streamvec/cluster/piece_queue.h"
#include "streamvec/core/random.h"
#include "streamvec/core/status.h"
#include "streamvec/source/source.h"
#include "streamvec/text/tokenizer.h"
#include "streamvec/train/cursor_trail.h"
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

// What a piece's windows, negatives and left-out words are drawn with: the same in every run with this seed.
Random draws_of(const Piece& piece, uint64_t seed);
// What came of reading it, before anything is trained on it.
PieceResult read_result(const Tokens& tokens);

// Thread-safe.
class Feed {
 public:
  // Begins at `state`; the source must stand there already. What is finished ahead of it is passed over.
  Feed(Source& source, int32_t epochs, RunState state);

  // The next piece; false when there is none: all epochs are over, stop() was called, or the source failed.
  // Waits while the feed is paused. Every piece must be given back with finish().
  bool next(Piece& piece);
  void finish(const Piece& piece, const PieceResult& result);
  void add(const PieceResult& rest);  // what came of pieces that were finished before it was known

  // Notes where the pieces of an epoch that is read from its beginning begin. Before the first next().
  void keep_trail();
  CursorTrail take_trail();

  // Pieces as they are handed out to this node, from now on: numbers over all epochs of `epoch_pieces` each, the first
  // of which is `first`, where the state stands. `trail`: where pieces are known to begin, from the first of the text
  // on; none: found on the way. Borrowed. Before the first next().
  void follow(PieceQueue& queue, int64_t epoch_pieces, int64_t first, std::optional<CursorTrail> trail = {});

  // Pieces of later epochs come without their text where all_kept() says, at the end of an epoch that was read here
  // from its beginning, that nobody needs it again.
  void leave_out_text(std::function<bool()> all_kept);

  void stop();
  bool over() const;                                // next() gives no more and all pieces are finished
  void await_over(std::chrono::milliseconds most);  // returns at once when that comes true
  Status status() const;                            // what the source failed with

  RunState state() const;
  // What all nodes have trained, about; losses are this one's.
  RunState state_of_all() const;
  TrainedTotals own() const;  // what this node has trained; of pieces that are handed out, since the run began here
  // What a checkpoint has to know: of pieces that are handed out, where all nodes together stand.
  RunState whole_state();
  double fraction() const;        // of the run, by what all nodes have trained; -1 when its length is unknown
  double bytes_fraction() const;  // how much of the source was read in this epoch; -1 when its size is unknown
  // Returns once no piece is being worked on; next() waits until resume().
  RunState pause();
  void resume();

 private:
  RunState state_now() const;
  Result<bool> read_piece(Deadline deadline, Piece& piece);
  bool passes_over_last();
  Result<bool> read_document(Deadline deadline);
  Result<bool> next_without_text();
  Result<bool> next_with_text(Deadline deadline);
  Result<bool> begin_epoch();
  bool waits_for_others() const;
  Result<bool> read_handed_out(Deadline deadline, Piece& piece);
  Status go_to(int64_t index, Deadline deadline);
  Status read_next(Deadline deadline);
  TrainedTotals own_now() const;
  double fraction_now() const;

  Source& source_;
  const int32_t epochs_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable over_;  // its own, so that pieces which come and go do not wake who waits for the end
  RunState state_;
  Status status_;
  std::vector<Document> documents_;
  int32_t in_flight_ = 0;
  int64_t steps_given_;
  const int64_t first_step_;
  std::vector<PieceRange> finished_ahead_;  // before this run, counted from first_step_
  int64_t step_at_cursor_;                  // of `state_`, by steps_given_
  bool paused_ = false, ended_ = false;
  std::function<bool()> all_kept_;
  std::vector<std::string> cursors_;  // of this epoch's pieces so far, if it was begun here
  bool whole_epoch_, epoch_read_ = false, text_left_out_ = false;
  size_t next_cursor_ = 0;

  // Of pieces that are handed out.
  PieceQueue* queue_ = nullptr;
  RunState begun_;    // where the run stood
  RunState reached_;  // step, epoch and cursor of the last whole_state(): they never go back
  int64_t epoch_pieces_ = 0, first_ = 0;
  int64_t taken_ = -1;  // a piece that is still to be read

  int64_t position_ = 0;  // in the text, of the piece that the source gives next; kept where there is a trail
  bool keeps_trail_ = false;
  CursorTrail trail_;
};

}  // namespace streamvec
