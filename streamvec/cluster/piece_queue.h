// The pieces of the text that this node is to train on: handed out by the node that leads (piece_board.h) some seconds
// ahead, so that threads which train never wait for an answer.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "streamvec/cluster/control.h"

namespace streamvec {

// Thread-safe: threads that train take pieces out, the one that talks puts them in.
class PieceQueue {
 public:
  // How many pieces are at hand, the more of both. More: a leader that is busy, or a slow network, is not noticed.
  // Less: few pieces are shared out more evenly, and trained on nearer to their order.
  struct Ahead {
    double seconds = 2;
    int64_t least = 16;  // a thread; nothing is known of its speed at first
  };
  // `threads` train here.
  explicit PieceQueue(int32_t threads) : PieceQueue(threads, Ahead{}) {}
  PieceQueue(int32_t threads, const Ahead& ahead) : threads_(threads), ahead_(ahead) {}

  enum class Next {
    kPiece,
    kNotYet,  // some may come: others may leave theirs
    kOver,    // nobody has any left, or is to begin any
    kStopped  // the cluster has failed, or this node is to end
  };
  // Does not wait. Every piece is given back with finish().
  Next take(int64_t& piece);
  // Waits until take() has another answer than kNotYet, or for so long.
  void await(std::chrono::milliseconds most);
  // `own`: what this node has trained on so far, this piece included.
  void finish(int64_t piece, const TrainedTotals& own);
  // Of all nodes: as told last, and since then as if all were as fast as this one.
  int64_t tokens_of_all() const;
  // Of all nodes, as told last.
  TextStanding standing() const;

  void give(std::span<const PieceRange> pieces, const TextStanding& standing, int64_t workers);
  void end(Next why);  // kOver or kStopped
  // What the leader is to be told now; nullopt: nothing. Pieces are asked for when half of those ahead are taken, by
  // one request at a time.
  struct Report {
    std::vector<PieceRange> finished;
    int64_t wanted = 0;
    TrainedTotals trained;  // so far
  };
  std::optional<Report> report(double now_s);
  // All that is finished and was not told yet, without a wish for more.
  Report last_report();
  // For one that begins to lead in another's place: what is at hand here and known of the text. What was asked of the
  // other is asked again.
  KnownText known(NodeId self);
  // Has nothing to train on at the moment, and is not just about to be given the first of it.
  bool dry(double now_s) const;

 private:
  Report take_finished();

  const int32_t threads_;
  const Ahead ahead_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<int64_t> waiting_;
  std::set<int64_t> in_work_;
  std::vector<int64_t> finished_;  // and not told
  std::set<int64_t> unheard_;      // finished, and not in any standing that was told here
  TrainedTotals own_;
  int64_t told_ = 0;     // of the tokens of `own_`, that the leader was told of
  int64_t counted_ = 0;  // of these, that are in `standing_`
  TextStanding standing_;
  int64_t workers_ = 1;
  double told_s_ = 0;                      // when the leader was told last
  double rated_s_ = 0, pieces_per_s_ = 0;  // when the rate was taken last, and what it was
  int64_t pieces_since_ = 0;               // finished since then
  bool asked_ = false, given_ = false;
  Next end_ = Next::kNotYet;
};

// How it is told.
Control asking(const PieceQueue::Report& report);

}  // namespace streamvec
