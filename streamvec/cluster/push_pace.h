// When a worker pushes and which rows: as often as the time that talking may take allows, rows by how fast training
// moves them (row_schedule.h). Used by the talking thread alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "streamvec/cluster/row_schedule.h"

namespace streamvec {

// Of the training threads' time, for talking: what others do to rows between two pushes grows with their number, and
// so does what pushing more often is worth (docs/BENCHMARKS.md, Cluster).
double talking_share_of(int64_t workers);

class PushPace {
 public:
  struct Options {
    int64_t words_min = 10'000;   // trained here between two pushes at least, past the beginning, if nobody waits
    int64_t words_max = 100'000;  // then threads wait for a push
    int32_t threads = 1;          // that train here
    double talking_share = 0.1;   // of their time, at most, goes into talking; more for a push that others wait for
    int64_t workers = 1;          // at first
  };
  // What a node has done so far.
  struct Done {
    int64_t words = 0;     // trained
    double steps = 0;      // the same, each word times its rate
    double now_s = 0;      // the time
    double talking_s = 0;  // of processors, used for talking
    bool awaited = false;  // others wait for the next push (RowServer::awaits)
    bool dry = false;      // there is nothing to train on at the moment
  };
  // `pull`: by key, as SyncOptions::pull; zeros: all rows alike.
  PushPace(const Options& options, std::span<const float> pull) : options_(options), schedule_(pull, options.workers) {}

  // So many train from now on.
  void set_workers(int64_t workers) {
    options_.workers = workers;
    schedule_.set_nodes(workers);
  }
  // Training moves rows otherwise from now on: in a stream words become more and less frequent.
  void set_pull(std::span<const float> pull) { schedule_ = RowSchedule(pull, options_.workers); }
  // Enough was trained since the last push, or others wait for one, or may soon, since none has begun for long.
  bool is_time(const Done& done) const;
  // What the last push has cost is no more than its share of the time since it began, or threads are about to wait for
  // another. For a push that is awaited the share is larger: a round that all begin together is short, and answers then
  // come early.
  bool can_afford(const Done& done) const;
  // Seconds until both say so if everything goes on as since the last push; 0: they do.
  double due_in(const Done& done) const;
  // A push begins.
  void begin(const Done& done);
  // The rows of push number `push` that has begun, a bit a key. `mean_square`: Replica::mean_square().
  std::span<const uint64_t> rows(int64_t push, double mean_square) const;

 private:
  int64_t words_wanted(const Done& done) const;
  double push_every() const;   // seconds between two pushes at most, however slowly training goes
  int64_t words_most() const;  // between two pushes, whatever they cost
  double share(const Done& done) const;

  Options options_;
  RowSchedule schedule_;
  Done begun_;  // when the last push began
  int64_t pushes_ = 0;
  double steps_a_push_ = 0;  // of late
};

}  // namespace streamvec
