// What a node of a cluster is to be like (node.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "streamvec/cluster/companion.h"
#include "streamvec/cluster/control.h"
#include "streamvec/cluster/piece_queue.h"
#include "streamvec/cluster/registry.h"
#include "streamvec/cluster/slow_owner_finder.h"
#include "streamvec/cluster/stream_exchange.h"
#include "streamvec/core/crew.h"
#include "streamvec/core/row_marks.h"
#include "streamvec/sync/row_server.h"
#include "streamvec/transport/transport.h"

namespace streamvec {

struct ClusterOptions {
  std::vector<NodeId> workers, servers;  // at first; rising
  SyncOptions sync;                      // without `self` and `initial`
  // Trained here between two pushes at least, if nobody waits for one; less: closer to one node, and more to send.
  int64_t words_min = 10'000;
  int64_t words_max = 100'000;           // at most: then training waits
  double dead_after_s = 10;              // a node that is silent for longer takes no further part
  double start_within_s = 60;            // all nodes have to be there by then
  SlowOwnerFinder::Options slow_owners;  // under schemes that retire them
  int32_t threads = 1;                   // that train here
  // Of their time, at most, goes into talking, more for a push that others wait for; less: fewer pushes where cores
  // are few.
  double talking_share = 0.1;
  Crew* crew = nullptr;         // borrowed: helps with rows, and threads that train look in; none: one thread does all
  RowMarks* changed = nullptr;  // by key, borrowed: rows trained on; none: any row may have been, each when it is due
  StreamExchange* stream = nullptr;  // borrowed: of nodes that train on streams; `sync` has its generations
  uint64_t fingerprint = 0;          // of what must be equal everywhere (vocabulary, options)
  uint64_t rows = 0;                 // of the first rows, which only those compare who begin
  std::string fingerprint_of;        // both in words
  // Nodes may join while others train. All that take part have addresses then, and the others' ids are lower.
  bool joinable = false;
  bool joins = false;                       // this node does: `workers` and `servers` are those of now, and this one
  std::map<NodeId, std::string> addresses;  // of all of these
  // Borrowed: has to have a membership before the leader tells it to anybody, and knows who leads when nobody is heard
  // to. None: all that there ever are are known, and nobody takes the leader's place.
  Registry* registry = nullptr;
  NodeId leader = 0;  // 0: the lowest of all
  PieceRange text;    // that is handed out to those who train; empty: nodes have text of their own
  PieceQueue::Ahead ahead;
  std::vector<PieceRange> finished;  // of the text, by the run before
  TrainedTotals trained_before;      // by the run, before it came to this text, and in those pieces
  Companion* companion = nullptr;    // borrowed: hears of every membership, and the end waits for it
};

}  // namespace streamvec
