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
    size_t rows_max = 0;
    for (const Push& push : waiting_) rows_max += push.rows.size();
    writer_.begin(static_cast<int64_t>(rows_max), answer.payload);
    const auto sent = [&](int64_t i, const float* change) {
      const int64_t place = told_.find(answer.rows[static_cast<size_t>(i)]);
      add_scaled(change, 1, static_cast<int32_t>(options_.dim), told_.row(place));
      told_.touch(place);
    };
    start_reading();
    for (RowKey key = 0; next_key(key); ++key) {
      const int64_t place = rows_.find(key);
      change_row(key, place);
      answer.rows.push_back(key);
      take_change(rows_.row(place), told_.row(told_.find(key)), static_cast<int32_t>(options_.dim), writer_.next());
      writer_.add(sent);
    }
    writer_.finish(sent);
    waiting_.clear();
    for (const NodeId worker : view_.workers) out.push_back({worker, answer});
  }

  void start_reading() {
    at_.assign(waiting_.size(), 0);
    while (readers_.size() < waiting_.size()) readers_.emplace_back(options_.dim);
    for (size_t w = 0; w < waiting_.size(); ++w) {
      const auto rows = static_cast<int64_t>(waiting_[w].rows.size());
      STREAMVEC_CHECK(readers_[w].begin(waiting_[w].codec, waiting_[w].payload, rows).ok());
    }
  }

  // The first row from `key` on that anybody has changed; asks for its memory's neighbours to come. False: none.
  bool next_key(RowKey& key) {
    RowKey least = options_.key_end;
    for (size_t w = 0; w < waiting_.size(); ++w)
      if (at_[w] < waiting_[w].rows.size()) least = std::min(least, waiting_[w].rows[at_[w]]);
    if (least == options_.key_end) return false;
    key = least;
    for (size_t w = 0; w < waiting_.size(); ++w)
      if (const size_t ahead = at_[w] + kFetchAhead; ahead < waiting_[w].rows.size()) {
        const RowKey soon = waiting_[w].rows[ahead];
        fetch_row(rows_.row(rows_.find(soon)), static_cast<int32_t>(options_.dim));
        fetch_row(told_.row(told_.find(soon)), static_cast<int32_t>(options_.dim));
        break;
      }
    return true;
  }

  // A worker that did not name a row did not change it: it counts for the mean only.
  void change_row(RowKey key, int64_t place) {
    const auto dim = static_cast<int32_t>(options_.dim);
    const bool adds = options_.scheme.combine == Combine::kSum || options_.scheme.combine == Combine::kDamped;
    changes_.clear();
    rows_.touch(place);
    for (size_t w = 0; w < waiting_.size(); ++w) {
      if (at_[w] == waiting_[w].rows.size() || waiting_[w].rows[at_[w]] != key) continue;
      const size_t i = at_[w]++;
      float* change = readers_[w].row(static_cast<int64_t>(i));
      if (adds)
        add_scaled(change, waiting_[w].share(i), dim, rows_.row(place));
      else
        changes_.push_back(change);
    }
    if (adds) return;
    combine_rows(options_.scheme.combine, changes_, dim);
    const float share = options_.scheme.combine == Combine::kMean
                            ? static_cast<float>(changes_.size()) / static_cast<float>(waiting_.size())
                            : 1;
    add_scaled(changes_[0], share, dim, rows_.row(place));
  }

  static constexpr size_t kFetchAhead = 3;  // rows

  Shard told_;
  std::vector<Push> waiting_;
  std::vector<RowReader> readers_;  // of the pushes that wait, while their round is completed
  std::vector<size_t> at_;          // the next row of each
  std::vector<float*> changes_;
};

}  // namespace

Result<std::unique_ptr<RowServer>> make_round_server(const SyncOptions& options) {
  STREAMVEC_ASSIGN_OR_RETURN(Shard rows, Shard::make(options.key_end, options.dim));
  STREAMVEC_ASSIGN_OR_RETURN(Shard told, Shard::make(options.key_end, options.dim));
  return std::unique_ptr<RowServer>(std::make_unique<RoundServer>(options, std::move(rows), std::move(told)));
}

}  // namespace streamvec
