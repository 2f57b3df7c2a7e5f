// Changes are taken in as they come (SSP, async) or a few at a time (softsync). Every worker has a state of its own in
// mind, `told_`: its answer is how far the rows have moved from there, the others' changes included.
#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "streamvec/core/bits.h"
#include "streamvec/kernel/row_codec.h"
#include "streamvec/sync/owner.h"
#include "streamvec/sync/shared_work.h"

namespace streamvec {
namespace {

constexpr float kRounding = 0x1p-42f;  // squared, as a share of a row; a float is rounded by up to 2^-24 of it

class LateServer final : public Owner {
 public:
  LateServer(const SyncOptions& options, Shard rows) : Owner(options, std::move(rows)), reader_(options.dim) {}

  // Half of what the others may be ahead: at the bound they would stand still until the push has come and was told.
  bool awaits(NodeId worker) const override {
    return options_.scheme.awaits_all() && behind(worker) >= std::max<int64_t>((options_.scheme.staleness + 1) / 2, 1);
  }

 private:
  // What a worker believes, by our rows' places, and where the rows have moved away from it, a bit a key.
  struct Told {
    Matrix values;
    std::vector<uint64_t> behind;
    bool is_behind(RowKey key) const { return (behind[key / 64] >> (key % 64) & 1) != 0; }
  };

  void take_in(Push push, Outbox& out) override {
    const NodeId from = push.from;
    codec_ = push.codec;
    if (options_.scheme.admission == Admission::kSoftsync) {
      add_to_group(std::move(push));
      answer(from, nullptr, out);
    } else {
      settle(push);
      ++version_;
      answer(from, &push, out);
    }
  }

  // A push is answered before its group is full: with several owners, each of which has its groups, workers would
  // otherwise wait for each other in a circle. Its clock counts when it is in the rows: until then its worker keeps it.
  void add_to_group(Push push) {
    waiting_.push_back(std::move(push));
    const auto group = static_cast<size_t>(std::max(options_.scheme.group, 1));
    if (waiting_.size() >= std::min(group, view_.workers.size())) complete_group();
  }

  std::vector<Push> drop_waiting(Outbox& out) override {
    if (options_.scheme.admission != Admission::kSoftsync || !ready()) return {};
    for (auto& [worker, told] : told_) {
      // A worker that has told others of its rows takes no more of this: it is told again when they are settled.
      const std::vector<uint64_t> behind = told.behind;
      answer(worker, nullptr, out);
      out.back().message.last = false;
      told.behind = behind;
    }
    return std::exchange(waiting_, {});
  }

  const float* told_to_all(int64_t place) const override { return rows_.row(place); }

  std::vector<RowKey> missed_by(NodeId worker) const override {
    std::vector<RowKey> missed;
    const auto found = told_.find(worker);
    if (found == told_.end()) return missed;
    for (const RowKey key : rows_.keys())
      if (found->second.is_behind(key)) missed.push_back(key);
    return missed;
  }

  void on_restart(RowKey key, int64_t place, std::span<const float> value) override {
    for (auto& [worker, told] : told_) {
      if (place < told.values.rows()) std::copy(value.begin(), value.end(), told.values.row(place));
      told.behind[key / 64] &= ~(uint64_t{1} << (key % 64));
    }
  }

  void on_view(const Handover& handover) override {
    std::map<NodeId, Told> kept;
    for (const NodeId worker : view_.workers) {
      Told& told = kept[worker] = std::move(told_[worker]);
      const bool knows_none = handover.is_newcomer(worker) || told.values.rows_max() == 0;
      // Memory that cannot be had is the end of this node: a row that some workers do not know cannot be served.
      if (told.values.rows_max() == 0) {
        Result<Matrix> values = Matrix::make(0, options_.dim, options_.key_end);
        STREAMVEC_CHECK(values.ok());
        told.values = std::move(values).value();
      }
      told.values.grow(rows_.places());
      const auto tell = [&](RowKey key) {
        const int64_t place = rows_.find(key);
        std::copy_n(rows_.row(place), options_.dim, told.values.row(place));
      };
      for (const RowKey key : rows_.keys())
        if (knows_none || told.is_behind(key)) tell(key);
      for (const RowKey key : handover.gained()) tell(key);
      for (const RowKey key : handover.returned(worker)) tell(key);
      told.behind.assign(options_.key_end / 64 + 1, 0);
    }
    told_ = std::move(kept);
  }

  // The row becomes what its sender knew, moved by the sender's change and what it had missed, combined.
  void apply(const Push& push, size_t i, RowReader& changes, const float* known, float* missed, float* row) const {
    const auto dim = static_cast<int32_t>(options_.dim);
    if (options_.scheme.combine == Combine::kSum || options_.scheme.combine == Combine::kDamped)
      return push.add(i, changes, dim, row);
    const TakenChange unknown = take_change(row, known, dim, missed);
    // What is told in full may still be off by its rounding: Adasum would take that for a direction and count the
    // sender's change along it by half.
    if (options_.scheme.combine == Combine::kAdasum && unknown.change <= kRounding * unknown.known)
      return push.add(i, changes, dim, row);
    float* change = changes.row(static_cast<int64_t>(i));
    combine_late(options_.scheme.combine, missed, dim, change);
    blend(known, 1, change, 1, dim, row);
  }

  // The mean of the group, each change divided by how many groups went by since its worker heard of us.
  void complete_group() {
    for (const Push& push : waiting_) {
      settle(push);
      const auto staleness = static_cast<float>(std::max<int64_t>(version_ - push.version, 1));
      const float share = 1 / (staleness * static_cast<float>(waiting_.size()));
      const auto rows = static_cast<int64_t>(push.rows.size());
      STREAMVEC_CHECK(reader_.begin(push.codec, push.payload, rows).ok());
      for (int64_t i = 0; i < rows; ++i) {
        const RowKey key = push.rows[static_cast<size_t>(i)];
        if (!options_.counts(key, push.stamp)) continue;
        reader_.add(i, share, rows_.row(rows_.find(key)));
        moved(key);
      }
    }
    ++version_;
    waiting_.clear();
  }

  void moved(RowKey key) {
    rows_.touch(rows_.find(key));
    for (auto& [worker, told] : told_) told.behind[key / 64] |= uint64_t{1} << (key % 64);
  }

  // What one thread does of an answer: the rows from a place up to another.
  struct Part {
    explicit Part(int64_t dim) : writer(dim), reader(dim) { missed.reserve_zeroed(1, dim); }
    RowWriter writer;
    RowReader reader;  // of the push
    RowBuffer missed;
    size_t begin = 0, end = 0;
    std::string payload;
  };

  // Takes the push in, if one is given, and tells its worker how far our rows are from what it knows: one pass.
  void answer(NodeId worker, const Push* push, Outbox& out) {
    Told& told = told_.at(worker);
    Message message = update();
    if (push != nullptr)
      for (const RowKey key : push->rows) moved(key);
    take_behind(told, message.rows);
    std::fill(told.behind.begin(), told.behind.end(), 0);
    const int64_t parts = divide(message.rows.size());
    share_work(options_.crew, parts,
               [&](int64_t part) { answer_part(message.rows, push, told, parts_[static_cast<size_t>(part)]); });
    for (int64_t i = 0; i < parts; ++i) message.payload += parts_[static_cast<size_t>(i)].payload;
    out.push_back({worker, std::move(message)});
  }

  // A payload whose rows depend on each other stays whole.
  int64_t divide(size_t rows) {
    const int64_t parts = is_by_row(codec_) ? parts_of(options_.crew, rows) : 1;
    while (std::ssize(parts_) < parts) parts_.emplace_back(options_.dim);
    for (int64_t i = 0; i < parts; ++i) {
      Part& part = parts_[static_cast<size_t>(i)];
      part.begin = rows * static_cast<size_t>(i) / static_cast<size_t>(parts);
      part.end = rows * static_cast<size_t>(i + 1) / static_cast<size_t>(parts);
    }
    return parts;
  }

  void answer_part(const std::vector<RowKey>& keys, const Push* push, Told& told, Part& part) {
    const auto dim = static_cast<int32_t>(options_.dim);
    size_t k = 0, pushed = 0;  // the next row of the push, and where it ends
    if (push != nullptr && part.begin < part.end) {
      pushed = push->rows.size();
      STREAMVEC_CHECK(part.reader.begin(push->codec, push->payload, static_cast<int64_t>(pushed)).ok());
      k = static_cast<size_t>(std::lower_bound(push->rows.begin(), push->rows.end(), keys[part.begin]) -
                              push->rows.begin());
    }
    part.payload.clear();
    part.writer.begin(codec_, static_cast<int64_t>(part.end - part.begin), part.payload);
    for (size_t i = part.begin; i < part.end; ++i) {
      const int64_t place = rows_.find(keys[i]);
      if (i + kFetchAhead < part.end) {
        const int64_t soon = rows_.find(keys[i + kFetchAhead]);
        fetch_row(rows_.row(soon), dim);
        fetch_row(told.values.row(soon), dim);
      }
      if (k < pushed && push->rows[k] == keys[i]) {
        if (options_.counts(keys[i], push->stamp))
          apply(*push, k, part.reader, told.values.row(place), part.missed.row(0), rows_.row(place));
        ++k;
      }
      part.writer.change(rows_.row(place), told.values.row(place));
      part.writer.add_and_know(told.values.row(place));
    }
    part.writer.finish();
  }

  static void take_behind(Told& told, std::vector<RowKey>& keys) {
    for_each_bit(told.behind, [&](size_t key) { keys.push_back(static_cast<RowKey>(key)); });
  }

  std::map<NodeId, Told> told_;
  std::vector<Push> waiting_;
  RowReader reader_;  // of a group's pushes
  std::deque<Part> parts_;
};

}  // namespace

Result<std::unique_ptr<RowServer>> make_late_server(const SyncOptions& options) {
  STREAMVEC_ASSIGN_OR_RETURN(Shard rows, Shard::make(options.key_end, options.dim));
  return std::unique_ptr<RowServer>(std::make_unique<LateServer>(options, std::move(rows)));
}

}  // namespace streamvec
