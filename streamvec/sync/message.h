// The one message of the cluster: changes or values of rows, with the clocks that say what they were made of.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/sync/codec.h"
#include "streamvec/transport/transport.h"

namespace streamvec {

// A row of any of the shared tables: row * tables + table, so that tables can grow.
using RowKey = uint32_t;

enum class MessageKind : uint8_t {
  kPush = 1,     // worker to owner: what the worker changed
  kUpdate = 2,   // owner to worker: what has become of its rows; answers a push, or a whole round of them
  kRefused = 3,  // owner to worker: the push of that clock was of another epoch and is not applied
  kKnown = 4,    // worker to owner: rows that are new to the owner, as the worker knows them
  kValues = 5,   // owner to worker: rows that the worker does not know, as they are
  kGiven = 6,    // owner to owner: rows that the sender gives up to the other, as they are
  kTaken = 7,    // owner to owner: the sender has all rows of this epoch
};

// Up to which clock a worker's pushes to a server are in a state.
struct WorkerClock {
  NodeId server = 0, worker = 0;
  int64_t clock = 0;
  friend auto operator<=>(const WorkerClock&, const WorkerClock&) = default;
};

// What `clocks` say of that pair; 0: nothing.
int64_t clock_of(std::span<const WorkerClock> clocks, NodeId server, NodeId worker);

struct Message {
  MessageKind kind = MessageKind::kPush;
  CodecKind codec = CodecKind::kFp32;
  bool last = true;        // known, values: no more of them follow in this epoch; update: answers a push
  bool confirmed = false;  // update: every worker has taken the values of this epoch
  uint32_t epoch = 0;      // of the membership that the sender knows
  uint64_t stamp = 0;      // of rows that change hands (generations.h): up to where the sender has heard of it
  int64_t clock = 0;       // push: the worker's; refused: the push's; the others: the slowest worker's
  int64_t version =
      0;  // update, known, values: the owner's, risen by every change; push: the last one the worker has seen
  // Update, known, values, given: what is in them, by worker; but for updates, of pushes to former owners as well.
  std::vector<WorkerClock> clocks;
  std::vector<RowKey> rows;  // rising
  // Push, of each row's change: how much is to be added across and along its table's direction (combiner.h), in turn.
  // None: all of it.
  std::vector<uint8_t> shares;
  std::vector<float> directions;  // push with shares: one after the other, a table each, `dim` values of unit length
  std::string payload;            // of the rows, by the codec
};

struct MessageLimits {
  int64_t rows_max = 1 << 22;   // rows of a message
  int64_t clocks_max = 65'536;  // nodes of a cluster
  RowKey key_end = UINT32_MAX;  // keys are below it
};

std::string encode(const Message& message);
// kInvalidArgument for bytes that encode() does not write, kResourceExhausted for more rows than the limit,
// kOutOfRange for a row past the end. Takes no memory for lengths that the bytes do not back.
Result<Message> decode_message(std::string_view bytes, const MessageLimits& limits);

}  // namespace streamvec
