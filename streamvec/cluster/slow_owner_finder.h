// Which owners of rows hold this node up: those that answer its pushes far later than the others do, again and again
// for seconds. Every push goes to all owners at once and is answered by all, so that a slow worker, for whom a round
// waits, makes all of them late alike, and an owner that is slow itself only its own answers. A pause is one late
// answer, however long it is, and a busy machine makes others late, too. What nodes find they tell the one that leads.
// A pure state machine.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "streamvec/cluster/control.h"
#include "streamvec/sync/view.h"

namespace streamvec {

class SlowOwnerFinder {
 public:
  struct Options {
    double look_s = 1.5;       // between two looks at least; more: slower to see it, and surer
    int64_t look_pushes = 8;   // likewise
    int32_t looks = 3;         // that have to find it slow, beyond those that meanwhile do not
    double times = 4;          // the median of the other owners' time to answer: what takes longer is late
    double late_min_s = 0.02;  // and longer than the median by this
    int64_t late_min = 4;      // late answers between two looks at least: a pause makes one, however long it is
    // Share of the time that may go into waiting for late answers after the median. Not of the pushes: one that stands
    // still for most of the time answers many at once in between.
    double held_most = 0.25;
  };
  SlowOwnerFinder() : SlowOwnerFinder(Options{}) {}
  explicit SlowOwnerFinder(const Options& options) : options_(options) {}

  // A push begins, to so many owners beside this node. Whatever was pushed before is answered.
  void pushed(double now_s, int64_t owners);
  // Its answer has come; what is asked for besides (Replica::refresh) does not count. Those of this node itself, which
  // cross no network, are not to be told: an owner is measured by the others, of which there has to be one at least.
  void answered(NodeId owner, double now_s);
  // Other nodes own rows from now on: nothing is known of any.
  void begin_anew();
  // As of the last look. In seconds, in the mean of the pushes before it.
  std::vector<SlowOwner> slow() const;

 private:
  struct Owner {
    int64_t late = 0;                             // answers since the last look
    double late_s = 0, took_s = 0, others_s = 0;  // summed since then
    SlowOwner last;                               // as of the last look
    int32_t looks = 0;                            // that have found it slow, less those since then that have not
  };
  void count_push();
  void look(double now_s);

  const Options options_;
  double pushed_s_ = -1, looked_s_ = -1;
  int64_t pushes_ = 0;             // since the last look
  std::map<NodeId, double> took_;  // by the owners that have answered the last push
  int64_t asked_ = 0;              // owners that are to answer it
  std::map<NodeId, Owner> owners_;
};

}  // namespace streamvec
