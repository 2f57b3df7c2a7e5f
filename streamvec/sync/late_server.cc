// Changes are taken in as they come (SSP, async) or a few at a time (softsync). Every worker has a state of its own in
// mind, `told_`: its answer is how far the rows have moved from there, the others' changes included.
#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "streamvec/kernel/row_codec.h"
#include "streamvec/kernel/row_ops.h"
#include "streamvec/sync/owner.h"

namespace streamvec {
namespace {

class LateServer final : public Owner {
 public:
  LateServer(const SyncOptions& options, Shard rows) : Owner(options, std::move(rows)), reader_(options.dim) {
    missed_.reserve_zeroed(1, options.dim);
  }

 private:
  // What a worker believes, by our rows' places, and where the rows have moved away from it, a bit a key.
  struct Told {
    Matrix values;
    std::vector<uint64_t> behind;
  };

  void take_in(Push push, Outbox& out) override {
    const NodeId from = push.from;
    settle(push);
    if (options_.scheme.admission == Admission::kSoftsync) {
      add_to_group(std::move(push));
      answer(from, nullptr, out);
    } else {
      ++version_;
      answer(from, &push, out);
    }
  }

  // A push is answered before its group is full: with several owners, each of which has its groups, workers would
  // otherwise wait for each other in a circle.
  void add_to_group(Push push) {
    waiting_.push_back(std::move(push));
    const auto group = static_cast<size_t>(std::max(options_.scheme.group, 1));
    if (waiting_.size() >= std::min(group, view_.workers.size())) complete_group();
  }

  std::vector<Push> drop_waiting() override {
    if (!waiting_.empty()) complete_group();
    return {};
  }

  const Shard& told_to_all() const override { return rows_; }

  std::vector<RowKey> missed_by(NodeId worker) const override {
    std::vector<RowKey> missed;
    const auto found = told_.find(worker);
    if (found == told_.end()) return missed;
    for (const RowKey key : rows_.keys())
      if ((found->second.behind[key / 64] >> (key % 64) & 1) != 0) missed.push_back(key);
    return missed;
  }

  void on_view(const Handover&) override {
    std::map<NodeId, Told> kept;
    for (const NodeId worker : view_.workers) {
      Told& told = kept[worker] = std::move(told_[worker]);
      // Memory that cannot be had is the end of this node: a row that some workers do not know cannot be served.
      if (told.values.rows_max() == 0) {
        Result<Matrix> values = Matrix::make(0, options_.dim, options_.key_end);
        STREAMVEC_CHECK(values.ok());
        told.values = std::move(values).value();
      }
      told.values.grow(rows_.places());
      for (const RowKey key : rows_.keys()) {
        const int64_t place = rows_.find(key);
        std::copy_n(rows_.row(place), options_.dim, told.values.row(place));
      }
      told.behind.assign(options_.key_end / 64 + 1, 0);
    }
    told_ = std::move(kept);
  }

  // The row becomes what its sender knew, moved by the sender's change and what it had missed, combined.
  void apply(RowKey key, float* change, float share, const float* known, float* row) {
    const auto dim = static_cast<int32_t>(options_.dim);
    if (options_.scheme.combine == Combine::kSum || options_.scheme.combine == Combine::kDamped) {
      add_scaled(change, share, dim, row);
    } else {
      take_change(row, known, dim, missed_.row(0));
      combine_late(options_.scheme.combine, missed_.row(0), dim, change);
      blend(known, 1, change, 1, dim, row);
    }
    moved(key);
  }

  // The mean of the group, each change divided by how many groups went by since its worker heard of us.
  void complete_group() {
    const auto dim = static_cast<int32_t>(options_.dim);
    for (Push& push : waiting_) {
      const auto staleness = static_cast<float>(std::max<int64_t>(version_ - push.version, 1));
      const float share = 1 / (staleness * static_cast<float>(waiting_.size()));
      const auto rows = static_cast<int64_t>(push.rows.size());
      STREAMVEC_CHECK(reader_.begin(push.codec, push.payload, rows).ok());
      for (int64_t i = 0; i < rows; ++i) {
        const RowKey key = push.rows[static_cast<size_t>(i)];
        add_scaled(reader_.row(i), share, dim, rows_.row(rows_.find(key)));
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

  // Takes the push in, if one is given, and tells its worker how far our rows are from what it knows: one pass.
  void answer(NodeId worker, const Push* push, Outbox& out) {
    const auto dim = static_cast<int32_t>(options_.dim);
    Told& told = told_.at(worker);
    Message message = update();
    if (push != nullptr) {
      STREAMVEC_CHECK(reader_.begin(push->codec, push->payload, static_cast<int64_t>(push->rows.size())).ok());
      for (const RowKey key : push->rows) told.behind[key / 64] |= uint64_t{1} << (key % 64);
    }
    take_behind(told, message.rows);
    const auto sent = [&](int64_t i, const float* change) {
      add_scaled(change, 1, dim, told.values.row(rows_.find(message.rows[static_cast<size_t>(i)])));
    };
    writer_.begin(static_cast<int64_t>(message.rows.size()), message.payload);
    const size_t pushed = push == nullptr ? 0 : push->rows.size();
    for (size_t i = 0, k = 0; i < message.rows.size(); ++i) {
      const RowKey key = message.rows[i];
      const int64_t place = rows_.find(key);
      if (i + kFetchAhead < message.rows.size()) {
        const int64_t soon = rows_.find(message.rows[i + kFetchAhead]);
        fetch_row(rows_.row(soon), dim);
        fetch_row(told.values.row(soon), dim);
      }
      if (k < pushed && push->rows[k] == key) {
        apply(key, reader_.row(static_cast<int64_t>(k)), push->share(k), told.values.row(place), rows_.row(place));
        ++k;
      }
      take_change(rows_.row(place), told.values.row(place), dim, writer_.next());
      writer_.add(sent);
      told.behind[key / 64] &= ~(uint64_t{1} << (key % 64));
    }
    writer_.finish(sent);
    out.push_back({worker, std::move(message)});
  }

  static void take_behind(Told& told, std::vector<RowKey>& keys) {
    for (size_t word = 0; word < told.behind.size(); ++word)
      for (uint64_t bits = told.behind[word]; bits != 0; bits &= bits - 1)
        keys.push_back(static_cast<RowKey>(64 * word + static_cast<size_t>(std::countr_zero(bits))));
  }

  static constexpr size_t kFetchAhead = 3;  // rows

  std::map<NodeId, Told> told_;
  std::vector<Push> waiting_;
  RowReader reader_;
  RowBuffer missed_;
};

}  // namespace

Result<std::unique_ptr<RowServer>> make_late_server(const SyncOptions& options) {
  STREAMVEC_ASSIGN_OR_RETURN(Shard rows, Shard::make(options.key_end, options.dim));
  return std::unique_ptr<RowServer>(std::make_unique<LateServer>(options, std::move(rows)));
}

}  // namespace streamvec
