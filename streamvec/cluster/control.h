// What the nodes of a cluster tell each other beside rows: who is there, who has finished. Small, and rare.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/cluster/piece_ranges.h"
#include "streamvec/core/status.h"
#include "streamvec/sync/view.h"

namespace streamvec {

enum class ControlKind : uint8_t {
  kHello = 1,      // to the leader: a node is there, with a fingerprint of what must be equal everywhere
  kView = 2,       // from the leader: a membership
  kRefusal = 3,    // from the leader: why a node cannot take part
  kAlive = 4,      // either way, every second or more often
  kFinished = 5,   // to the leader: the worker's own text is over
  kFlush = 6,      // from the leader: everybody's is; all changes are to be exchanged now
  kFlushed = 7,    // to the leader: the owners have ours, at that clock
  kSettle = 8,     // from the leader: they have everybody's, at that clock; all are to take what the others told
  kSettled = 9,    // to the leader: we have
  kEnd = 10,       // from the leader: everybody has; the cluster may part
  kLead = 11,      // from a node that leads from now on, in place of one that is gone
  kGreeting = 12,  // to that one: a node takes part, and what it has and knows of the text
  kSaved = 13,     // from the leader, where others could take its place: the model is written
  kAsk = 20,       // to the leader: pieces of the text that are finished, and how many more are wanted
  kPieces = 21,    // from the leader: pieces to train on
  kTextOver = 22,  // from the leader: every piece is finished, or the run is to end
};

// What was trained, by one worker or by all.
struct TrainedTotals {
  int64_t tokens = 0, pairs = 0;
  double loss = 0;  // summed over loss_pairs
  int64_t loss_pairs = 0;
};

// How far all nodes together are.
struct TextStanding {
  int64_t finished_before = 0;  // all pieces before it are finished
  int64_t tokens = 0, pairs = 0;
  // What else is finished, by a run before this one, too: for a checkpoint, and for whoever has to lead after the one
  // that says this.
  std::vector<PieceRange> finished = {};
  // For the latter: what each node, gone ones too, has trained in all of these pieces (tokens and pairs).
  std::map<NodeId, TrainedTotals> trained = {};
};

// What a node has at hand of the text, and knows of all of it, its own part included.
struct KnownText {
  std::vector<PieceRange> held = {};
  TextStanding standing = {};
};

// How a node fares, as it tells the leader.
struct NodeFigures {
  int64_t clock = -1;                            // of its pushes; -1: it does not train
  int64_t bytes_sent = -1, bytes_received = -1;  // on the wire; -1 not known
};

// An owner of rows that has answered a node far later than the other owners, for long.
struct SlowOwner {
  NodeId node = 0;
  double took_s = 0, others_s = 0;  // to answer, in the mean of many
};

struct Control {
  ControlKind kind = ControlKind::kAlive;
  // Of kView; its epoch also of kFlushed, kSettled, kLead (when it began to), kGreeting, and of kAlive to the leader.
  View view = {};
  uint64_t fingerprint = 0;    // of kHello and kGreeting
  TrainedTotals trained = {};  // of kFinished; of kAsk: so far
  int64_t clock = 0;           // of kFlushed and kSettle
  // Of kHello: what the fingerprint is of, in words; of kRefusal: why; of kView: why an owner has rows no more.
  std::string text = {};
  std::optional<NodeFigures> figures = {};  // of all that goes to the leader
  std::vector<SlowOwner> slow = {};         // of kAlive, to the leader
  std::vector<PieceRange> pieces = {};      // of kAsk: finished; of kPieces: to be trained on; of kGreeting: at hand
  int64_t wanted = 0;                       // of kAsk
  TextStanding standing = {};               // of kPieces, kTextOver and kGreeting
  uint64_t rows = 0;         // of kHello and kGreeting: a fingerprint of the rows, which only those compare who begin
  uint64_t heard = 0;        // of the same, on streams: the last change of hands of a slot that the node has heard of
  std::string address = {};  // of kHello, by one that joins: where it is reached
  std::map<NodeId, std::string> addresses = {};  // of kView, where nodes may join: where those are reached
};

std::string encode(const Control& control);
// kInvalidArgument for bytes that encode() does not write.
Result<Control> decode_control(std::string_view bytes);
// Control messages and those of rows (sync/message.h) differ in their first byte.
bool is_control(std::string_view bytes);

}  // namespace streamvec
