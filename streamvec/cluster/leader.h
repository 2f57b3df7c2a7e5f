// What only the node that leads knows and decides: begin when all are there, leave out the silent, take the rows from
// an owner that is slow, end when all have finished. A pure state machine: what nodes say, when they were heard and the
// time are handed in; what it decides is told to all nodes by whoever runs it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "streamvec/cluster/control.h"
#include "streamvec/core/status.h"
#include "streamvec/sync/view.h"

namespace streamvec {

// Everybody of a membership.
std::set<NodeId> all_of(const View& view);

class Leader {
 public:
  struct Options {
    NodeId self = 0;
    View all;  // those that are to come; its epoch counts for nothing
    double start_within_s = 60, dead_after_s = 10;
  };
  Leader(Options options, double now_s) : options_(std::move(options)), started_s_(now_s) {}
  // One in place of another that is gone: `all` are those of the last membership that it may have told anybody of,
  // without it, and `all.epoch` is later than that and anything else that was ever told. Those that greet, or tell that
  // they have only come to join, are not waited for; who has not greeted within `start_within_s` is left out.
  static Leader successor(Options options, double now_s);
  bool gathers() const { return gathers_; }  // greetings are still awaited

  // What a node has said, this one included. Flushes, settlements and who is slow of an earlier membership count for
  // nothing.
  void receive(NodeId from, const Control& control);

  // Takes a node in that was not among the first, with the next decision. Not any more when ending().
  void admit(NodeId node, bool owns_rows) { joining_[node] = owns_rows; }
  bool ending() const { return ending_; }  // all have finished

  // What is to be told to all now, in this order; mostly nothing. A new membership (kView) is told also to those that
  // are not in it any more, and to newcomers. `heard_s`: when each node was heard last. kUnavailable: the cluster has
  // failed.
  Result<std::vector<Control>> decide(double now_s, const std::map<NodeId, double>& heard_s);

  const std::set<NodeId>& present() const { return present_; }  // those that have come, or greeted
  TrainedTotals trained() const;                                // by the workers that have finished
  bool has_finished(NodeId node) const { return trained_.count(node) > 0; }
  std::set<NodeId> members() const { return all_of(view_); }  // nobody before the beginning

 private:
  Result<std::vector<Control>> begin(double now_s);
  Result<std::vector<Control>> gather(double now_s);
  Status check_kinds(const View& view) const;
  void add_joining(View& view);
  View without_silent(double now_s, const std::map<NodeId, double>& heard_s) const;
  void retire_slow(std::vector<Control>& orders);
  void take_view(const View& view, std::vector<Control>& orders);
  void end_stages(std::vector<Control>& orders);
  bool all_in(const std::set<NodeId>& nodes) const;

  const Options options_;
  const double started_s_;
  View view_;
  std::map<NodeId, bool> joining_;  // and whether they own rows
  bool gathers_ = false;
  std::set<NodeId> present_, finished_, flushed_, settled_;
  std::map<NodeId, std::vector<SlowOwner>> slow_;  // as each node finds them
  int64_t flushed_clock_ = 0;                      // the highest of those that have flushed
  bool ending_ = false;                            // all have finished
  std::map<NodeId, TrainedTotals> trained_;        // by those that have finished
};

}  // namespace streamvec
