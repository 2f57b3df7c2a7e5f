// What the nodes of a cluster tell each other beside rows: who is there, who has finished. Small, and rare.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "streamvec/core/status.h"
#include "streamvec/sync/view.h"

namespace streamvec {

enum class ControlKind : uint8_t {
  kHello = 1,     // to the leader: a node is there, with a fingerprint of what must be equal everywhere
  kView = 2,      // from the leader: a membership
  kRefusal = 3,   // from the leader: why a node cannot take part
  kAlive = 4,     // either way, every second or more often
  kFinished = 5,  // to the leader: the worker's own text is over
  kFlush = 6,     // from the leader: everybody's is; all changes are to be exchanged now
  kFlushed = 7,   // to the leader: the owners have ours, at that clock
  kSettle = 8,    // from the leader: they have everybody's, at that clock; all are to take what the others told
  kSettled = 9,   // to the leader: we have
  kEnd = 10,      // from the leader: everybody has; the cluster may part
};

// What was trained, by one worker or by all.
struct TrainedTotals {
  int64_t tokens = 0, pairs = 0;
  double loss = 0;  // summed over loss_pairs
  int64_t loss_pairs = 0;
};

// How a node fares, as it tells the leader.
struct NodeFigures {
  int64_t clock = -1;                            // of its pushes; -1: it does not train
  int64_t bytes_sent = -1, bytes_received = -1;  // on the wire; -1 not known
};

struct Control {
  ControlKind kind = ControlKind::kAlive;
  View view = {};                           // of kView; its epoch also of kFlushed and kSettled
  uint64_t fingerprint = 0;                 // of kHello
  TrainedTotals trained = {};               // of kFinished
  int64_t clock = 0;                        // of kFlushed and kSettle
  std::string text = {};                    // of kHello: what the fingerprint is of, in words; of kRefusal: why
  std::optional<NodeFigures> figures = {};  // of all that goes to the leader
};

std::string encode(const Control& control);
// kInvalidArgument for bytes that encode() does not write.
Result<Control> decode_control(std::string_view bytes);
// Control messages and those of rows (sync/message.h) differ in their first byte.
bool is_control(std::string_view bytes);

}  // namespace streamvec
