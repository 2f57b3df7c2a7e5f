// What keeps a node that trains in step with the others, as the loop that trains sees it: by owners of rows (node.h),
// by a ring, or by both (hybrid_node.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "streamvec/cluster/control.h"
#include "streamvec/cluster/piece_queue.h"
#include "streamvec/core/deadline.h"
#include "streamvec/core/status.h"
#include "streamvec/transport/transport.h"

namespace streamvec {

// A node as this one sees it.
struct ClusterMember {
  NodeId node = 0;
  bool worker = false, server = false, leader = false, taking_part = false;
  double silent_s = 0;  // since something came from it; 0 for this node
  // Known of this node and, when it leads, of the others, about a second late.
  NodeFigures figures = {};
  int64_t staleness = -1;  // clocks behind the node that was ahead of all at that moment; -1 not known
};

struct ClusterStats {
  int64_t pushes = 0;
  double waiting_s = 0;    // training threads waited, summed
  double talking_s = 0;    // of processors, that the talking thread and those that help it have used
  double finishing_s = 0;  // from the end of this node's text to the end of all
  int64_t rows_pushed = 0;
  int64_t rows_moved = 0;      // in messages of either side, those to itself included
  int64_t staleness_most = 0;  // clocks ahead of the slowest, while anything was trained
  int64_t bytes_sent = 0, bytes_received = 0;
  uint32_t epoch = 0;
  bool settled = false;  // every row has an owner of that epoch, and this node, if it trains, has heard of all
  int32_t nodes = 0;
  std::vector<ClusterMember> members;
  std::vector<std::string> notes;  // what was decided on the way, and why
};

// Thread-safe. Destroying it parts at once, as a crash would for the others.
class Synchronizer {
 public:
  virtual ~Synchronizer() = default;

  // Waits until all nodes are there and rows have owners: true then; false when `stop` was set before.
  virtual Result<bool> await_start(const std::atomic<bool>* stop = nullptr) = 0;
  // Training threads tell what they have trained, and at which rate; waits when the node is too far ahead, or the
  // scheme says so. An error when the cluster has failed: training is to stop.
  virtual Status trained(int64_t words, double lr = 1) = 0;
  // This node's text is over, of which it trained `own`: goes on talking until everybody's is and all have what the
  // others learnt. The leader returns what all have trained, the others what they have.
  virtual Result<TrainedTotals> finish(const TrainedTotals& own) = 0;
  // Somebody wants the run to end: the text is over for all then, as far as it is in work. Where it is handed out only
  // the leader's word counts; what another node leaves is trained on by the rest.
  virtual void stop_text() {}
  // So it was, and not all of it may have been trained on. Where it is handed out the pieces say.
  virtual bool text_stopped() const { return false; }
  // This node speaks for all, and writes the model. Where nodes may come and go that may come to be so at any time.
  virtual bool leads() const = 0;
  // The same beyond doubt: one that was stopped for long may take itself for the leader and not be it any more.
  virtual bool holds_lead() const { return leads(); }
  // Where another node takes the leader's place when it fails. Of the leader: the model is written, the others may go.
  // Of the others, after finish(): waits until it is, or until this node leads and has to write it.
  virtual void saved() {}
  virtual Status await_saved() { return {}; }
  virtual ClusterStats stats() const = 0;
  // Where the text is handed out: the pieces that this node is to train on. nullptr: it finds its text itself.
  virtual PieceQueue* pieces() { return nullptr; }
};

// Of a node that trains on streams: the thread that watches over it waits for nothing for long.
class StreamSynchronizer : public Synchronizer {
 public:
  Result<TrainedTotals> finish(const TrainedTotals& own) final { return finish(own, Deadline::never()); }
  // kDeadlineExceeded when the others have not finished by then: it goes on talking, and may be called again.
  virtual Result<TrainedTotals> finish(const TrainedTotals& own, Deadline deadline) = 0;
  // What trained() and finish() say then; a thread that does neither may ask.
  virtual bool failed() const = 0;
};

}  // namespace streamvec
