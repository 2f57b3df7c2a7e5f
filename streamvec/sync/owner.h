// What owners of all schemes have in common: rows, membership and its handover, clocks, pushes that are refused. A
// scheme says what becomes of a push. Part of RowServer.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/kernel/row_buffer.h"
#include "streamvec/sync/handover.h"
#include "streamvec/sync/row_server.h"
#include "streamvec/sync/row_stream.h"

namespace streamvec {

class Owner : public RowServer {
 public:
  Status receive(NodeId from, const Message& message, Outbox& out) final;
  void set_view(const View& view, Outbox& out) final;
  void restart(RowKey key, std::span<const float> value) final;
  bool ready() const final { return ready_; }
  const Shard& rows() const final { return rows_; }
  int64_t version() const final { return version_; }

 protected:
  struct Push {
    NodeId from = 0;
    int64_t clock = 0, version = 0;
    uint64_t stamp = 0;
    std::vector<RowKey> rows;
    CodecKind codec = CodecKind::kFp32;
    std::string payload;          // was found to be that of the rows
    std::vector<uint8_t> shares;  // as in the message
    RowBuffer directions;         // by table; none: no shares
    // Adds the change of rows[i], which `changes` reads, by its shares.
    void add(size_t i, RowReader& changes, int32_t dim, float* to) const;
  };

  Owner(const SyncOptions& options, Shard rows);

  // Takes the push in, now or when others have come.
  virtual void take_in(Push push, Outbox& out) = 0;
  // Forgets the pushes that wait for others and returns them. What became of the others their workers then know.
  virtual std::vector<Push> drop_waiting(Outbox& out) = 0;
  // The row at that place as workers of every membership know it: what newcomers are told.
  virtual const float* told_to_all(int64_t place) const = 0;
  // Rows of which a worker that took part before has not been told the latest.
  virtual std::vector<RowKey> missed_by(NodeId worker) const = 0;
  // The row at that place begins anew: everybody knows that it has this value.
  virtual void on_restart(RowKey key, int64_t place, std::span<const float> value) = 0;
  // The membership has changed: everybody knows the rows gained and missed, newcomers all.
  virtual void on_view(const Handover& handover) = 0;

  // An answer with what is common to all.
  Message update() const;
  int64_t slowest() const;
  int64_t behind(NodeId worker) const;      // pushes to us that another is ahead of it
  std::vector<WorkerClock> clocks() const;  // of pushes to us
  // The push is in our rows, or is dropped for good: it will not be answered again.
  void settle(const Push& push) { clocks_[push.from] = push.clock; }

  const SyncOptions options_;
  Shard rows_;
  View view_;
  int64_t version_ = 0;
  CodecKind codec_;  // of the next answer: a worker that has found another than the scheme's is answered in that

 private:
  Result<Push> read_push(NodeId from, const Message& message);
  void finish_handover(Outbox& out);

  RowReader checked_;
  Handover handover_;
  std::map<NodeId, int64_t> clocks_;               // of the workers of the view
  std::vector<std::pair<NodeId, Message>> early_;  // of epochs to come
  bool ready_ = false;
};

Result<std::unique_ptr<RowServer>> make_round_server(const SyncOptions& options);  // BSP, backup workers
Result<std::unique_ptr<RowServer>> make_late_server(const SyncOptions& options);   // SSP, softsync, async

}  // namespace streamvec
