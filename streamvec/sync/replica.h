// A worker's side of the cluster: its own whole copy of the tables, which its threads train on without waiting, and
// what the rows' owners know of it. A pure state machine beside RowServer, on the same terms.
//
// For every row there are two values: the live one, and `base`, what the owner has told of it. Their difference is what
// training has added and no answer has spoken of; what a codec leaves out of a push stays there by itself, for the next
// one. An answer moves `base` by what it says, and the live row by that less what was pushed, so that nothing trained
// meanwhile is lost.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/kernel/row_buffer.h"
#include "streamvec/kernel/row_codec.h"
#include "streamvec/sync/message.h"
#include "streamvec/sync/row_clocks.h"
#include "streamvec/sync/row_division.h"
#include "streamvec/sync/row_server.h"
#include "streamvec/sync/row_stream.h"
#include "streamvec/sync/table_pull.h"
#include "streamvec/sync/view.h"

namespace streamvec {

// Used by one thread, while others may train on the live tables: what they add to a row at the very moment that it is
// moved may be lost, as between themselves (Hogwild).
class Replica {
 public:
  // Of SyncOptions::pull, by trial on held-out loss, MTurk and MSR (docs/BENCHMARKS.md, Cluster); and of these, for
  // what comes late.
  static constexpr double kAcross = 0.4, kAlong = 20, kLate = 0.2;
  // Of a change that a coarse codec has to say, for the next pushes; by the same trials.
  static constexpr double kKept = 0.8;

  // `live`: the tables, borrowed, all of as many rows; key = row * live.size() + table. They hold their initial values.
  static Result<std::unique_ptr<Replica>> make(const SyncOptions& options, std::vector<Matrix*> live);

  // Another membership. Waits for the answers of owners that stay, then tells the owners of moved rows what it knows.
  void set_view(const View& view, Outbox& out);
  // All rows, for a worker that is about to join: those that nobody has changed are as they were at first, which it may
  // not have; of the others the owners will tell it. REQUIRES: idle().
  void tell_base(NodeId to, Outbox& out) const;
  // The other side of it, before the first membership. kInvalidArgument as receive().
  Status take_base(const Message& message);
  // kInvalidArgument for a payload that is not what its rows need: nothing of it was applied.
  Status receive(NodeId from, const Message& message, Outbox& out);

  // The row is another word's and begins anew: `value` is what everybody knows of it. The generations say so already,
  // and the live row has begun anew.
  void restart(RowKey key, std::span<const float> value);

  // Every push is answered and the membership is settled: begin() may be called.
  bool idle() const { return settled_ && in_flight_.empty(); }
  // The owner has a push to answer.
  bool awaits(NodeId owner) const { return in_flight_.count(owner) > 0; }
  // The scheme lets this worker train on: it is not too far ahead of the slowest (SSP). Others always may.
  bool may_train() const;
  // Of kSsp: another bound than the scheme's, from now on.
  void set_staleness(int64_t staleness) { staleness_ = staleness; }
  // Of pushes from now on; at first the scheme's.
  void set_codec(CodecKind codec) { codec_ = codec; }
  // Of all workers' pushes, up to where every owner has them.
  std::vector<WorkerClock> clocks() const;
  // How much was trained here in all, in the units of SyncOptions::pull (words times learning rate). For kDamped; to
  // be told before begin() and receive().
  void set_trained(double steps) { trained_ = steps; }
  // A new clock: sends what changed in the rows named (rising) to their owners, an empty push to owners of none of
  // them. REQUIRES: idle() and may_train().
  void begin(std::span<const RowKey> due, Outbox& out);
  // Asks for what has changed, without a new clock. REQUIRES: idle().
  void refresh(Outbox& out);

  int64_t clock() const { return clock_; }
  int64_t slowest() const;  // of the workers, as far as this one's rows know: their changes up to there are in them
  bool settled() const { return settled_; }
  uint32_t epoch() const { return view_.epoch; }
  // Of frequent rows' lengths squared, when the last push began (kDamped): a row's pull times that and what was
  // trained is how far it was moved towards its rest.
  double mean_square() const;
  // The row as its owner has told it: at first, its initial value.
  void known_value(RowKey key, std::span<float> out) const;

 private:
  struct Push {
    int64_t clock = 0;
    uint64_t stamp = 0;
    std::vector<RowKey> rows;
    double trained = 0;
    CodecKind codec = CodecKind::kFp32;
    std::string payload;  // as the owner has it: 29 bytes a row to keep, where the changes would be 800
  };
  // Of a row whose owner is gone: changes, not in `base`, that may be in a state of it.
  struct Orphan {
    NodeId server = 0;
    std::vector<std::pair<int64_t, std::vector<float>>> changes;  // by clock
  };
  struct OwnerState {
    int64_t version = 0, slowest = 0;
    std::vector<WorkerClock> clocks;  // of pushes to it
    std::deque<Push> waiting;         // answered, but for a group to be full (softsync): not in the live rows
    std::vector<Message> values;      // of the new membership, until the last has come
  };

  // How far training has moved a row towards its rest.
  struct Pull {
    double across = 0, along = 0;
  };

  // Rows of an answer and of the push that it answers, from places to places.
  struct Range {
    size_t told = 0, told_end = 0, pushed = 0, pushed_end = 0;
  };

  // The state of an owner that rows told to others are of.
  struct Told {
    int64_t version = 0;
    std::vector<WorkerClock> clocks;
  };

  // By owner and by what is known of pushes to former ones.
  using States = std::map<std::pair<NodeId, const std::vector<WorkerClock>*>, std::shared_ptr<const Told>>;

  // Keeps training from a live row while it lasts, as far as the options ask for it.
  struct LiveLock {
    RowLocks::Guard row;
    std::unique_lock<std::mutex> all;
  };

  Replica(const SyncOptions& options, std::vector<Matrix*> live);
  Status copy_base();
  float* live_row(RowKey key) const;
  LiveLock locked(RowKey key);
  float* base_row(RowKey key);
  const float* base_row(RowKey key) const;
  void push(std::span<const NodeId> owners, Outbox& out);
  void fill(std::span<const RowKey> rows, Message& message, Push& push, RowWriter& writer);
  ChangeSquares change_of(RowKey key, RowWriter& writer);
  void divide(std::span<const RowKey> due);
  const TablePull& pull_on(RowKey key) const;
  Pull pull_by(RowKey key, double steps) const;
  void move_late(RowKey key, const float* to, const float* instead_of, double trained);
  template <typename Use>
  void for_each_change(const Push& push, Use&& use);
  Status receive_update(NodeId from, const Message& message);
  void note_state(NodeId from, const Message& message);
  void apply(NodeId from, const Message& message, const Push* answered);
  std::vector<Range> ranges_of(const Message& message, const Push* answered) const;
  void apply_range(NodeId from, const Message& message, const Push* answered, const Range& range, RowReader& answers,
                   RowReader& pushes);
  void take_back_waiting(NodeId server, int64_t clock);
  void add_to_live(RowKey key, const float* change);
  bool any_push_open() const;
  void orphan(NodeId server, int64_t clock, RowKey key, const float* change);
  void orphan_waiting(NodeId server);
  void try_to_tell_values(Outbox& out);
  void tell_values(NodeId owner, Outbox& out);
  std::shared_ptr<const Told> state_of(RowKey key, States& now);
  Status receive_values(NodeId from, const Message& message);
  Status install_values(NodeId from);
  void install_row(RowKey key, const float* value, std::span<const WorkerClock> clocks);
  void settle_orphans(NodeId owner, uint32_t epoch);
  bool is_of(NodeId owner, uint32_t epoch, RowKey key) const;
  std::span<const RowKey> rows_of(NodeId owner, uint32_t epoch) const;
  bool mine_to_take(NodeId from, RowKey key) const;

  const SyncOptions options_;
  const std::vector<Matrix*> live_;
  RowLocks own_locks_;  // when none are given: nobody trains beside us
  std::vector<Matrix> base_;
  std::vector<uint8_t> touched_;  // by key: somebody has trained on it
  std::vector<NodeId> owner_;     // by key: the last that has told us its state
  RowClocks inherited_;           // until the owner says that no worker can ask any more
  View view_;
  std::map<uint32_t, RowDivision> divisions_;  // by epoch, since the last that was settled
  std::map<NodeId, uint32_t> since_;           // the first membership in a row in which each of the servers is one
  int64_t clock_ = 0;
  int64_t staleness_ = 0;
  std::map<NodeId, OwnerState> owners_;
  std::map<NodeId, Push> in_flight_;
  // Changes sent to owners that are gone, by key: whether they were applied is not known yet.
  std::map<RowKey, Orphan> orphans_;
  std::map<RowKey, std::shared_ptr<const Told>> told_;  // rows told to new owners that have not answered yet
  // Rows that had moved when their owner told what became of them, and were left as they were (backup: of rounds that
  // went by without us). Should they come back to it before another has spoken of them, it is to tell us again.
  std::set<RowKey> passed_over_;
  // Owners that were none for a while, until they speak again. Pushes to them were given up then and their answers not
  // heard, of which they may know nothing if they have not heard that they were none.
  std::set<NodeId> left_;
  std::set<NodeId> untold_, unconfirmed_;  // owners of the new membership: to be told our values; to tell us theirs
  bool settled_ = false;
  const bool damped_;
  CodecKind codec_;
  double trained_ = 0;
  // By table. A row is pulled by the rows of the other one; at first those are short, and nothing pulls.
  std::vector<TablePull> pulls_;
  // By key, for kDamped: `trained_` when it was last pushed, less what is kept of the pushes before.
  std::vector<float> pushed_at_;
  std::deque<RowWriter> writers_;            // by owner
  std::vector<RowReader> answers_, pushes_;  // by part of the work: rows of an answer and of the push that it answers
  RowBuffer row_, zero_;
  std::map<NodeId, std::vector<RowKey>> parts_;  // of a push under way, by owner
};

// The changes of a push as its owner decodes them, without those of words that are gone.
template <typename Use>
void Replica::for_each_change(const Push& push, Use&& use) {
  RowReader& changes = pushes_.front();
  const Status own = changes.begin(push.codec, push.payload, static_cast<int64_t>(push.rows.size()));
  STREAMVEC_CHECK(own.ok());
  for (size_t i = 0; i < push.rows.size(); ++i)
    if (options_.counts(push.rows[i], push.stamp)) use(push.rows[i], changes.row(static_cast<int64_t>(i)));
}

}  // namespace streamvec
