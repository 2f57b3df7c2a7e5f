// The owner of some rows: takes in what workers changed, by the scheme's rule, and answers with what became of them.
// A pure state machine: messages in, messages out, no clock, no thread, no network. Whoever runs it sees to it that
// messages between two nodes arrive once and in order (transport/reliable_link.h).
//
// An owner knows for each row its value and what each worker believes it to be; every answer is the difference, by the
// codec, so that what a codec leaves out is not lost but sent later.
//
// When the membership changes, rows may get a new owner. Every worker then tells it what it knows of them and of whom;
// the one that has heard the old owner last has its whole state, and which pushes are in it. The owner takes that, and
// tells every worker where it differs and up to which clock its pushes are in it, so that none is lost or applied
// twice.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "streamvec/core/crew.h"
#include "streamvec/core/status.h"
#include "streamvec/model/row_locks.h"
#include "streamvec/sync/generations.h"
#include "streamvec/sync/message.h"
#include "streamvec/sync/scheme.h"
#include "streamvec/sync/shard.h"
#include "streamvec/sync/view.h"

namespace streamvec {

struct Outgoing {
  NodeId to = 0;
  Message message;
};
using Outbox = std::vector<Outgoing>;

struct SyncOptions {
  NodeId self = 0;
  Scheme scheme;
  int64_t dim = 0;
  // A row that has moved by less than this share of its length, both squared, is left for a later push.
  float change_min = 0;
  static constexpr float kTrainedChangeMin = 0.01f * 0.01f;  // where rows are trained on
  RowKey key_end = 0;                                        // rows of all tables
  // By key, borrowed: how strongly training pulls the row to where it rests, per unit of what Replica::set_trained()
  // is told and of the squared length of the rows it is trained against. For Combine::kDamped; none: as kSum.
  const std::vector<float>* pull = nullptr;
  int64_t message_rows_max = 8192;  // of values
  Crew* crew = nullptr;             // borrowed: helps with pushes and answers of many rows; none: one thread does all
  RowLocks* locks = nullptr;        // borrowed: of the live tables' rows, where builds lock them
  // Borrowed: held while a live row is read or moved, so that who trains under it loses nothing. None: training may
  // lose what it adds at that very moment.
  std::mutex* live_mutex = nullptr;
  // The value that every node gives a row before anybody has trained on it.
  std::function<void(RowKey, std::span<float>)> initial;
  // Borrowed: of rows that change hands; messages come only once it has their stamp (EarlyMessages). None: all rows
  // keep their words.
  const Generations* generations = nullptr;

  uint64_t stamp() const { return generations != nullptr ? generations->stamp() : 0; }
  // What was said of the row at `stamp` is not of a word that is gone.
  bool counts(RowKey key, uint64_t stamp) const { return generations == nullptr || generations->counts(key, stamp); }
};

class RowServer {
 public:
  virtual ~RowServer() = default;
  // kInvalidArgument for a payload that is not what its rows need: nothing of it was applied.
  virtual Status receive(NodeId from, const Message& message, Outbox& out) = 0;
  // Another membership, of a later epoch. Pushes that wait are refused; new ones wait until every worker has told its
  // values. A node that was restarted comes back under another id.
  virtual void set_view(const View& view, Outbox& out) = 0;
  // The row is another word's and begins anew with `value`, as it does everywhere. The generations say so already.
  virtual void restart(RowKey key, std::span<const float> value) = 0;
  // Every worker has told what it knew: pushes are taken in.
  virtual bool ready() const = 0;
  // Others wait for a push of this worker, or will soon: a round has begun without it, or they are half as far ahead as
  // they may be.
  virtual bool awaits(NodeId) const { return false; }
  virtual const Shard& rows() const = 0;
  virtual int64_t version() const = 0;
};

Result<std::unique_ptr<RowServer>> make_row_server(const SyncOptions& options);

}  // namespace streamvec
