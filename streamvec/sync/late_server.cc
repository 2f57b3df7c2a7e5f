// Changes are taken in as they come (SSP, async) or a few at a time (softsync). Every worker has a state of its own in
// mind, `told_`: its answer is how far the rows have moved from there, the others' changes included.
#include <algorithm>
#include <map>
#include <utility>

#include "streamvec/kernel/row_codec.h"
#include "streamvec/kernel/row_ops.h"
#include "streamvec/sync/owner.h"

namespace streamvec {
namespace {

class LateServer final : public Owner {
 public:
  LateServer(const SyncOptions& options, Shard rows) : Owner(options, std::move(rows)) {}

 private:
  // What a worker believes, by our rows' places, and where the rows have moved away from it.
  struct Told {
    Matrix values;
    std::vector<uint8_t> behind;
  };

  void take_in(Push push, Outbox& out) override {
    const int64_t before = slowest();
    const NodeId from = push.from;
    settle(push);
    if (options_.scheme.admission == Admission::kSoftsync)
      add_to_group(std::move(push));
    else
      apply_at_once(push);
    answer(from, out);
    if (slowest() > before) announce_slowest(from, out);
  }

  void apply_at_once(Push& push) {
    apply(push);
    ++version_;
    give_back(push);
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
    for (const RowKey key : rows_.keys()) {
      const auto place = static_cast<size_t>(rows_.find(key));
      if (place < found->second.behind.size() && found->second.behind[place] != 0) missed.push_back(key);
    }
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
      told.behind.resize(static_cast<size_t>(rows_.places()), 0);
      for (const RowKey key : rows_.keys()) {
        const int64_t place = rows_.find(key);
        std::copy_n(rows_.row(place), options_.dim, told.values.row(place));
      }
      std::fill(told.behind.begin(), told.behind.end(), uint8_t{0});
    }
    told_ = std::move(kept);
    keys_.assign(static_cast<size_t>(rows_.places()), 0);
    for (const RowKey key : rows_.keys()) keys_[static_cast<size_t>(rows_.find(key))] = key;
  }

  // The row becomes what its sender knew, moved by the sender's change and what it had missed, combined.
  void apply(Push& push) {
    const auto dim = static_cast<int32_t>(options_.dim);
    Told& told = told_.at(push.from);
    const auto missed = missed_.reserve(1, options_.dim);
    for (size_t i = 0; i < push.rows.size(); ++i) {
      const int64_t place = rows_.find(push.rows[i]);
      float* change = push.changes.row(static_cast<int64_t>(i));
      std::copy_n(told.values.row(place), options_.dim, missed.row(0));
      subtract_from(rows_.row(place), dim, missed.row(0));
      combine_late(options_.scheme.combine, missed.row(0), dim, change);
      blend(told.values.row(place), 1, change, 1, dim, rows_.row(place));
      moved(place);
    }
  }

  // The mean of the group, each change divided by how many groups went by since its worker heard of us.
  void complete_group() {
    const auto dim = static_cast<int32_t>(options_.dim);
    for (Push& push : waiting_) {
      const auto staleness = static_cast<float>(std::max<int64_t>(version_ - push.version, 1));
      const float share = 1 / (staleness * static_cast<float>(waiting_.size()));
      for (size_t i = 0; i < push.rows.size(); ++i) {
        const int64_t place = rows_.find(push.rows[i]);
        add_scaled(push.changes.row(static_cast<int64_t>(i)), share, dim, rows_.row(place));
        moved(place);
      }
      give_back(push);
    }
    ++version_;
    waiting_.clear();
  }

  void moved(int64_t place) {
    rows_.touch(place);
    for (auto& [worker, told] : told_) told.behind[static_cast<size_t>(place)] = 1;
  }

  void answer(NodeId worker, Outbox& out) {
    const auto dim = static_cast<int32_t>(options_.dim);
    Told& told = told_.at(worker);
    Message message = update();
    for (size_t place = 0; place < told.behind.size(); ++place)
      if (told.behind[place] != 0) message.rows.push_back(keys_[place]);
    std::sort(message.rows.begin(), message.rows.end());
    const auto changes = changes_.reserve(static_cast<int64_t>(message.rows.size()), options_.dim);
    for (size_t i = 0; i < message.rows.size(); ++i) {
      const int64_t place = rows_.find(message.rows[i]);
      float* change = changes.row(static_cast<int64_t>(i));
      std::copy_n(told.values.row(place), options_.dim, change);
      subtract_from(rows_.row(place), dim, change);
    }
    codec_->encode(changes, message.payload);
    for (size_t i = 0; i < message.rows.size(); ++i) {
      const int64_t place = rows_.find(message.rows[i]);
      add_scaled(changes.row(static_cast<int64_t>(i)), 1, dim, told.values.row(place));
      told.behind[static_cast<size_t>(place)] = 0;
    }
    out.push_back({worker, std::move(message)});
  }

  // Workers that wait for the slowest may go on; the one that has just been answered knows.
  void announce_slowest(NodeId answered, Outbox& out) {
    if (options_.scheme.admission != Admission::kSsp) return;
    for (const NodeId worker : view_.workers) {
      if (worker == answered) continue;
      Message message = update();
      message.kind = MessageKind::kClock;
      out.push_back({worker, std::move(message)});
    }
  }

  std::map<NodeId, Told> told_;
  std::vector<RowKey> keys_;  // by place
  std::vector<Push> waiting_;
  RowBuffer missed_, changes_;
};

}  // namespace

Result<std::unique_ptr<RowServer>> make_late_server(const SyncOptions& options) {
  STREAMVEC_ASSIGN_OR_RETURN(Shard rows, Shard::make(options.key_end, options.dim));
  return std::unique_ptr<RowServer>(std::make_unique<LateServer>(options, std::move(rows)));
}

}  // namespace streamvec
