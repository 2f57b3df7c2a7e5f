// Rounds: changes of all workers (or all but some) are combined row by row, and one answer goes to everybody. All
// workers so know the same values, `told_`; what the answer's codec left out stays between `told_` and our rows.
#include <algorithm>
#include <deque>
#include <utility>

#include "streamvec/kernel/row_codec.h"
#include "streamvec/kernel/row_ops.h"
#include "streamvec/sync/owner.h"
#include "streamvec/sync/shared_work.h"

namespace streamvec {
namespace {

class RoundServer final : public Owner {
 public:
  RoundServer(const SyncOptions& options, Shard rows, Matrix told)
      : Owner(options, std::move(rows)), told_(std::move(told)) {}

  bool awaits(NodeId worker) const override {
    const auto is_its = [&](const Push& push) { return push.from == worker; };
    return options_.scheme.awaits_all() && !waiting_.empty() && std::none_of(waiting_.begin(), waiting_.end(), is_its);
  }

 private:
  void take_in(Push push, Outbox& out) override {
    if (push.version < version_ && options_.scheme.admission == Admission::kBackup) return drop_late(push, out);
    waiting_.push_back(std::move(push));
    if (waiting_.size() >= needed()) complete_round(out);
  }

  std::vector<Push> drop_waiting(Outbox&) override { return std::exchange(waiting_, {}); }

  const float* told_to_all(int64_t place) const override { return told_.row(place); }
  std::vector<RowKey> missed_by(NodeId) const override { return {}; }

  void on_restart(RowKey, int64_t place, std::span<const float> value) override {
    std::copy(value.begin(), value.end(), told_.row(place));
  }

  void on_view(const Handover& handover) override {
    told_.grow(rows_.places());
    for (const RowKey key : handover.gained()) {
      const int64_t place = rows_.find(key);
      std::copy_n(rows_.row(place), options_.dim, told_.row(place));
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
    out.back().message.codec = CodecKind::kFp32;  // no rows are no bytes, which not every codec has
  }

  // What one thread does of a round: the rows from a key up to another.
  struct Part {
    explicit Part(int64_t dim) : writer(dim) {}
    RowWriter writer;
    std::vector<RowReader> readers;  // of the pushes that wait
    std::vector<size_t> at, end;     // the next row of each, and where it ends
    std::vector<float*> changes;     // of a row
    std::vector<RowKey> rows;        // of the answer
    std::string payload;
  };

  void complete_round(Outbox& out) {
    ++version_;
    codec_ = options_.scheme.codec;
    for (const Push& push : waiting_) {
      settle(push);
      if (push.codec != options_.scheme.codec) codec_ = push.codec;
    }
    const int64_t parts = divide();
    share_work(options_.crew, parts, [&](int64_t part) { complete_part(parts_[static_cast<size_t>(part)]); });
    Message answer = update();
    for (int64_t i = 0; i < parts; ++i) {
      const Part& part = parts_[static_cast<size_t>(i)];
      answer.rows.insert(answer.rows.end(), part.rows.begin(), part.rows.end());
      answer.payload += part.payload;
    }
    waiting_.clear();
    for (const NodeId worker : view_.workers) out.push_back({worker, answer});
  }

  // By the rows of the longest push; a payload whose rows depend on each other stays whole.
  int64_t divide() {
    const auto shorter = [](const Push& a, const Push& b) { return a.rows.size() < b.rows.size(); };
    const std::vector<RowKey>& longest = std::max_element(waiting_.begin(), waiting_.end(), shorter)->rows;
    const auto whole = [](const Push& push) { return !is_by_row(push.codec); };
    const bool by_row = is_by_row(codec_) && std::none_of(waiting_.begin(), waiting_.end(), whole);
    const int64_t parts = by_row ? parts_of(options_.crew, longest.size()) : 1;
    while (std::ssize(parts_) < parts) parts_.emplace_back(options_.dim);
    for (int64_t i = 0; i < parts; ++i) {
      Part& part = parts_[static_cast<size_t>(i)];
      while (part.readers.size() < waiting_.size()) part.readers.emplace_back(options_.dim);
      part.at.assign(waiting_.size(), 0);
      part.end.resize(waiting_.size());
      for (size_t w = 0; w < waiting_.size(); ++w) {
        const std::vector<RowKey>& rows = waiting_[w].rows;
        if (i > 0) part.at[w] = parts_[static_cast<size_t>(i - 1)].end[w];
        const RowKey until = i + 1 < parts
                                 ? longest[longest.size() * static_cast<size_t>(i + 1) / static_cast<size_t>(parts)]
                                 : options_.key_end;
        part.end[w] = static_cast<size_t>(std::lower_bound(rows.begin(), rows.end(), until) - rows.begin());
      }
    }
    return parts;
  }

  void complete_part(Part& part) {
    size_t rows_max = 0;
    for (size_t w = 0; w < waiting_.size(); ++w) {
      const auto rows = static_cast<int64_t>(waiting_[w].rows.size());
      STREAMVEC_CHECK(part.readers[w].begin(waiting_[w].codec, waiting_[w].payload, rows).ok());
      rows_max += part.end[w] - part.at[w];
    }
    part.rows.clear();
    part.payload.clear();
    part.writer.begin(codec_, static_cast<int64_t>(rows_max), part.payload);
    for (RowKey key = 0; next_key(part, key); ++key) {
      const int64_t place = rows_.find(key);
      change_row(part, key, place);
      part.rows.push_back(key);
      part.writer.change(rows_.row(place), told_.row(place));
      part.writer.add_and_know(told_.row(place));
    }
    part.writer.finish();
  }

  // The first row from `key` on that anybody has changed; asks for its memory's neighbours to come. False: none.
  bool next_key(const Part& part, RowKey& key) {
    RowKey least = options_.key_end;
    for (size_t w = 0; w < waiting_.size(); ++w)
      if (part.at[w] < part.end[w]) least = std::min(least, waiting_[w].rows[part.at[w]]);
    if (least == options_.key_end) return false;
    key = least;
    for (size_t w = 0; w < waiting_.size(); ++w)
      if (const size_t ahead = part.at[w] + kFetchAhead; ahead < part.end[w]) {
        const int64_t soon = rows_.find(waiting_[w].rows[ahead]);
        fetch_row(rows_.row(soon), static_cast<int32_t>(options_.dim));
        fetch_row(told_.row(soon), static_cast<int32_t>(options_.dim));
        break;
      }
    return true;
  }

  // A worker that did not name a row did not change it: it counts for the mean only.
  void change_row(Part& part, RowKey key, int64_t place) {
    const auto dim = static_cast<int32_t>(options_.dim);
    const bool adds = options_.scheme.combine == Combine::kSum || options_.scheme.combine == Combine::kDamped;
    part.changes.clear();
    rows_.touch(place);
    for (size_t w = 0; w < waiting_.size(); ++w) {
      if (part.at[w] == part.end[w] || waiting_[w].rows[part.at[w]] != key) continue;
      const size_t i = part.at[w]++;
      if (!options_.counts(key, waiting_[w].stamp)) continue;
      if (adds)
        waiting_[w].add(i, part.readers[w], dim, rows_.row(place));
      else
        part.changes.push_back(part.readers[w].row(static_cast<int64_t>(i)));
    }
    if (part.changes.empty()) return;
    combine_rows(options_.scheme.combine, part.changes, dim);
    const float share = options_.scheme.combine == Combine::kMean
                            ? static_cast<float>(part.changes.size()) / static_cast<float>(waiting_.size())
                            : 1;
    add_scaled(part.changes[0], share, dim, rows_.row(place));
  }

  Matrix told_;  // by our rows' places
  std::vector<Push> waiting_;
  std::deque<Part> parts_;
};

}  // namespace

Result<std::unique_ptr<RowServer>> make_round_server(const SyncOptions& options) {
  STREAMVEC_ASSIGN_OR_RETURN(Shard rows, Shard::make(options.key_end, options.dim));
  STREAMVEC_ASSIGN_OR_RETURN(Matrix told, Matrix::make(0, options.dim, options.key_end));
  return std::unique_ptr<RowServer>(std::make_unique<RoundServer>(options, std::move(rows), std::move(told)));
}

}  // namespace streamvec
