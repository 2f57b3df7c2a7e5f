// Hands out the portions of one evaluation, few at a time, so that fast nodes work on more of them; near the end, when
// none is left that nobody works on, the slowest are handed out a second time, and whoever is first counts (Dean et
// al. 2012).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "streamvec/transport/transport.h"

namespace streamvec {

// A pure state machine.
class PortionBoard {
 public:
  explicit PortionBoard(int64_t portions);

  // What `node` is to work on next; nullopt: nothing. No portion is with more than two nodes, or twice with one.
  std::optional<int64_t> next(NodeId node);
  // True when it was not finished before, by anybody.
  bool finish(NodeId node, int64_t portion);
  // The node is gone: what only it worked on is handed out again.
  void leave(NodeId node);
  bool over() const { return left_ == 0; }
  int64_t in_work(NodeId node) const;
  int64_t copies() const { return copies_; }  // handed out a second time

 private:
  struct Portion {
    bool finished = false;
    std::set<NodeId> nodes;  // that work on it
  };
  std::vector<Portion> portions_;
  std::deque<int64_t> waiting_;     // with nobody
  std::deque<int64_t> handed_out_;  // the longest first; finished ones are passed over
  std::map<NodeId, int64_t> in_work_;
  int64_t left_;
  int64_t copies_ = 0;
};

}  // namespace streamvec
