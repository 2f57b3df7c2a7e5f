// Rounds: changes of all workers (or all but some) are combined row by row, and one answer goes to everybody. All
// workers so know the same values, `told_`; what the answer's codec left out stays between `told_` and our rows.
#include <algorithm>
#include <utility>

#include "streamvec/kernel/row_codec.h"
#include "streamvec/kernel/row_ops.h"
#include "streamvec/sync/owner.h"

namespace streamvec {
namespace {

class RoundServer final : public Owner {
 public:
  RoundServer(const SyncOptions& options, Shard rows, Shard told)
      : Owner(options, std::move(rows)), told_(std::move(told)) {}

 private:
  void take_in(Push push, Outbox& out) override {
    if (push.version < version_ && options_.scheme.admission == Admission::kBackup) return drop_late(push, out);
    waiting_.push_back(std::move(push));
    if (waiting_.size() >= needed()) complete_round(out);
  }

  std::vector<Push> drop_waiting() override { return std::exchange(waiting_, {}); }

  const Shard& told_to_all() const override { return told_; }
  std::vector<RowKey> missed_by(NodeId) const override { return {}; }

  void on_view(const Handover& handover) override {
    for (const RowKey key : told_.keys())
      if (rows_.find(key) < 0) told_.remove(key);
    for (const RowKey key : handover.gained()) {
      const int64_t place = rows_.find(key), told = told_.add(key);
      std::copy_n(rows_.row(place), options_.dim, told_.row(told));
      if (rows_.touched(place)) told_.touch(told);
    }
  }

  size_t needed() const {
    const size_t workers = view_.workers.size();
    if (options_.scheme.admission == Admission::kBsp) return workers;
    const auto spare = static_cast<size_t>(std::max(options_.scheme.backups, 0));
    return workers > spare ? workers - spare : 1;
  }

  // It was made without the round that has gone by: its worker is to forget it and go on from there.
  void drop_late(const Push& push, Outbox& out) {
    settle(push);
    out.push_back({push.from, update()});
  }

  void complete_round(Outbox& out) {
    ++version_;
    for (const Push& push : waiting_) settle(push);
    Message answer = update();
    for (const Push& push : waiting_) answer.rows.insert(answer.rows.end(), push.rows.begin(), push.rows.end());
    std::sort(answer.rows.begin(), answer.rows.end());
    answer.rows.erase(std::unique(answer.rows.begin(), answer.rows.end()), answer.rows.end());
    combine(answer.rows);
    encode_changes(answer);
    for (Push& push : waiting_) give_back(push);
    waiting_.clear();
    for (const NodeId worker : view_.workers) out.push_back({worker, answer});
  }

  // A worker that did not name a row did not change it: it counts for the mean only.
  void combine(std::span<const RowKey> keys) {
    const auto dim = static_cast<int32_t>(options_.dim);
    std::vector<size_t> at(waiting_.size(), 0);
    std::vector<float*> changes;
    for (const RowKey key : keys) {
      changes.clear();
      for (size_t w = 0; w < waiting_.size(); ++w) {
        Push& push = waiting_[w];
        if (at[w] < push.rows.size() && push.rows[at[w]] == key)
          changes.push_back(push.changes.row(static_cast<int64_t>(at[w]++)));
      }
      combine_rows(options_.scheme.combine, changes, dim);
      const float share = options_.scheme.combine == Combine::kMean
                              ? static_cast<float>(changes.size()) / static_cast<float>(waiting_.size())
                              : 1;
      const int64_t place = rows_.find(key);
      add_scaled(changes[0], share, dim, rows_.row(place));
      rows_.touch(place);
    }
  }

  void encode_changes(Message& answer) {
    const auto dim = static_cast<int32_t>(options_.dim);
    const auto changes = changes_.reserve(static_cast<int64_t>(answer.rows.size()), options_.dim);
    for (size_t i = 0; i < answer.rows.size(); ++i) {
      float* change = changes.row(static_cast<int64_t>(i));
      std::copy_n(told_.row(told_.find(answer.rows[i])), options_.dim, change);
      subtract_from(rows_.row(rows_.find(answer.rows[i])), dim, change);
    }
    codec_->encode(changes, answer.payload);
    for (size_t i = 0; i < answer.rows.size(); ++i) {
      const int64_t place = told_.find(answer.rows[i]);
      add_scaled(changes.row(static_cast<int64_t>(i)), 1, dim, told_.row(place));
      told_.touch(place);
    }
  }

  Shard told_;
  std::vector<Push> waiting_;
  RowBuffer changes_;
};

}  // namespace

Result<std::unique_ptr<RowServer>> make_round_server(const SyncOptions& options) {
  STREAMVEC_ASSIGN_OR_RETURN(Shard rows, Shard::make(options.key_end, options.dim));
  STREAMVEC_ASSIGN_OR_RETURN(Shard told, Shard::make(options.key_end, options.dim));
  return std::unique_ptr<RowServer>(std::make_unique<RoundServer>(options, std::move(rows), std::move(told)));
}

}  // namespace streamvec
