// What the nodes of a Sandblaster run tell each other: a coordinator that commands, owners that keep vectors of rows,
// workers that work on portions (sandblaster_node.h). Tables that are shared out by rows (shard_node.h) use some of
// them, too: there the gradient is what a section has changed, added to the rows themselves and not answered, and a
// worker that has finished has trained all its text, with four figures of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/optim/lbfgs.h"
#include "streamvec/sync/message.h"

namespace streamvec {

enum class SandblasterKind : uint8_t {
  kHello = 1,      // to the coordinator: a node is there; number: fingerprint, text: of what
  kRefusal = 2,    // from it: why the node takes no (further) part
  kView = 3,       // from it: rows: who owns; number: 1 when rows have second copies
  kReady = 4,      // to it: the owner has its rows; text: why not
  kAlive = 5,      // either way, every second or so
  kStop = 6,       // to it: somebody wants the run to end
  kApply = 7,      // from it: ops for all vectors
  kBegin = 8,      // from it: evaluation `number` begins, the gradient is 0
  kTold = 9,       // to it: done; doubles: what the ops tell
  kPortion = 10,   // from it: work on the portion, in evaluation `number`
  kFinished = 11,  // to it: that is done; doubles: value and weight
  kFetch = 12,     // to an owner: rows of a vector
  kRows = 13,      // from it: those
  kGradient = 14,  // to an owner: what the portion adds to the gradient
  kTaken = 15,     // from it: it is in there, once
  kKeep = 16,      // from the coordinator: give second copies of the point to other owners
  kKept = 17,      // to it: they have them
  kCopies = 18,    // to an owner: rows that another one owns
  kCopied = 19,    // from it: it has them
  kEnd = 20,       // from the coordinator: all is done
  kHalt = 21,      // from it, of tables that are shared out: train no further, for the checkpoint `number`
  kHalted = 22,    // to it: nothing is trained here, and all that was is in the rows
  kGoOn = 23,      // from it: their rows are read
};

// The coordinator's questions for rows have numbers with this bit; those of its node's worker do not.
constexpr uint64_t kCoordinatorQuestions = uint64_t{1} << 63;

struct SandblasterMessage {
  SandblasterKind kind = SandblasterKind::kAlive;
  uint32_t epoch = 0;   // of the set of owners
  uint64_t number = 0;  // of a question, which its answer repeats; of an evaluation
  uint32_t portion = 0;
  VectorId vector = kPoint;
  std::vector<VectorOp> ops = {};
  std::vector<double> doubles = {};
  std::vector<RowKey> rows = {};
  std::vector<float> values = {};  // of the rows, one after another
  std::string text = {};
};

std::string encode(const SandblasterMessage& message);
// kInvalidArgument for bytes that encode() does not write. Takes no memory for lengths that the bytes do not back.
Result<SandblasterMessage> decode_sandblaster(std::string_view bytes);

// How many rows a message carries at most: a few megabytes of them, so that none is too long for a queue.
size_t rows_of_message(int64_t dim);

// How the parts of a node send; from any thread.
using SandblasterPost = std::function<void(NodeId to, const SandblasterMessage& message)>;

}  // namespace streamvec
