#include "streamvec/sync/handover.h"

#include <algorithm>
#include <tuple>
#include <unordered_set>

namespace streamvec {
namespace {

// Collects rows of one state into messages of at most so many rows.
class ValuesWriter {
 public:
  ValuesWriter(NodeId to, Message header, const SyncOptions& options, Outbox& out)
      : to_(to), header_(std::move(header)), options_(options), out_(out), next_(header_) {}
  ~ValuesWriter() { flush(); }
  void add(RowKey key, const float* row) {
    next_.rows.push_back(key);
    next_.payload.append(reinterpret_cast<const char*>(row), sizeof(float) * static_cast<size_t>(options_.dim));
    if (static_cast<int64_t>(next_.rows.size()) == options_.message_rows_max) flush();
  }

 private:
  void flush() {
    if (next_.rows.empty()) return;
    out_.push_back({to_, std::move(next_)});
    next_ = header_;
  }

  const NodeId to_;
  const Message header_;
  const SyncOptions& options_;
  Outbox& out_;
  Message next_;
};

}  // namespace

void Handover::begin(const View& view, int64_t version, std::span<const WorkerClock> clocks, Shard& owned,
                     Outbox& out) {
  // A view that came before this one was whole has told nobody anything: its newcomers still are. Nor has a worker that
  // did not answer the last one surely taken what it was told: it may have heard of a later view first.
  for (const NodeId worker : unconfirmed_) known_.erase(worker);
  newcomers_.clear();
  for (const NodeId worker : view.workers)
    if (known_.count(worker) == 0) newcomers_.insert(worker);
  view_ = view;
  unconfirmed_.clear();
  workers_ = {view.workers.begin(), view.workers.end()};
  servers_ = {view.servers.begin(), view.servers.end()};
  servers_.insert(view.retired.begin(), view.retired.end());
  reports_.clear();
  newest_.clear();
  give_up(version, clocks, owned, out);
  gained_.clear();
  stayed_.clear();
  for (RowKey key = 0; key < options_.key_end; ++key) {
    if (owner_of(key, view.servers) != options_.self) continue;
    (owned.find(key) >= 0 ? stayed_ : gained_).push_back(key);
  }
}

// A row that is given is kept until its new owner has taken it: before that the membership may change again.
void Handover::give_up(int64_t version, std::span<const WorkerClock> clocks, Shard& owned, Outbox& out) {
  for (const RowKey key : owned.keys()) {
    if (owner_of(key, view_.servers) == options_.self) continue;
    const int64_t place = owned.find(key);
    if (owned.touched(place))
      given_[key] = {
          0, 0, version + 1, inherited_.joined(clocks, key), {owned.row(place), owned.row(place) + options_.dim}};
    owned.remove(key);
  }
  inherited_.forget_if([&](RowKey key) { return owned.find(key) < 0; });
  tell_given(out);
  for (const NodeId server : view_.servers) {
    Message end = values_message(version, {});
    end.kind = MessageKind::kGiven;
    end.last = true;
    out.push_back({server, std::move(end)});
  }
}

// Rows of one state and one new owner together: an owner that lives and gives all of its rows up has many.
void Handover::tell_given(Outbox& out) {
  using State = std::tuple<NodeId, int64_t, std::vector<WorkerClock>>;
  std::map<State, ValuesWriter> writers;
  for (auto& [key, given] : given_) {
    given.to = owner_of(key, view_.servers);
    given.epoch = view_.epoch;
    const State state{given.to, given.version, given.clocks};
    auto writer = writers.find(state);
    if (writer == writers.end()) {
      Message header = values_message(given.version, given.clocks);
      header.kind = MessageKind::kGiven;
      writer = writers.try_emplace(state, given.to, std::move(header), options_, out).first;
    }
    writer->second.add(key, given.value.data());
  }
}

void Handover::confirm(NodeId worker, Outbox& out) {
  if (unconfirmed_.erase(worker) == 0 || !unconfirmed_.empty()) return;
  inherited_.forget_if([](RowKey) { return true; });
  for (const std::vector<NodeId>* givers : {&view_.servers, &view_.retired})
    for (const NodeId giver : *givers) {
      Message taken = values_message(0, {});
      taken.kind = MessageKind::kTaken;
      taken.last = true;
      out.push_back({giver, std::move(taken)});
    }
}

void Handover::forget_given(NodeId taker, uint32_t epoch) {
  std::erase_if(given_, [&](const auto& entry) { return entry.second.to == taker && entry.second.epoch <= epoch; });
}

Status Handover::receive(NodeId from, const Message& message) {
  if (message.kind == MessageKind::kTaken) {
    forget_given(from, message.epoch);
    return {};
  }
  const bool of_worker = message.kind == MessageKind::kKnown;
  std::set<NodeId>& waiting = of_worker ? workers_ : servers_;
  if (message.epoch != view_.epoch || waiting.count(from) == 0) return {};
  if (!message.rows.empty()) {
    Report report{from, of_worker, message.version, message.stamp, message.clocks, message.rows, {}};
    STREAMVEC_ASSIGN_OR_RETURN(report.values, Matrix::make(static_cast<int64_t>(message.rows.size()), options_.dim));
    STREAMVEC_RETURN_IF_ERROR(make_codec(message.codec)->decode(message.payload, report.values.view()));
    reports_.push_back(std::move(report));
  }
  if (message.last) waiting.erase(from);
  return {};
}

void Handover::choose() {
  const std::unordered_set<RowKey> gained(gained_.begin(), gained_.end());
  for (size_t i = 0; i < reports_.size(); ++i)
    for (size_t k = 0; k < reports_[i].rows.size(); ++k) {
      if (gained.count(reports_[i].rows[k]) == 0) continue;  // the worker has not heard yet that it is ours
      if (!options_.counts(reports_[i].rows[k], reports_[i].stamp)) continue;
      const Newest candidate{i, static_cast<int64_t>(k)};
      const auto [found, is_first] = newest_.try_emplace(reports_[i].rows[k], candidate);
      if (!is_first && reports_[found->second.report].version < reports_[i].version) found->second = candidate;
    }
}

// What the states taken over say of pushes, theirs and those they had inherited.
void Handover::inherit() {
  for (const auto& [key, newest] : newest_) inherited_.set(key, reports_[newest.report].clocks, options_.self);
}

void Handover::fill(Shard& owned) const {
  for (const RowKey key : gained_) {
    const int64_t place = owned.add(key);
    const auto found = newest_.find(key);
    if (found == newest_.end()) {
      options_.initial(key, {owned.row(place), static_cast<size_t>(options_.dim)});
      continue;
    }
    const float* row = reports_[found->second.report].values.row(found->second.row);
    std::copy_n(row, options_.dim, owned.row(place));
    owned.touch(place);
  }
}

Message Handover::values_message(int64_t version, std::span<const WorkerClock> clocks) const {
  Message message;
  message.kind = MessageKind::kValues;
  message.last = false;
  message.epoch = view_.epoch;
  message.stamp = options_.stamp();
  message.version = version;
  message.clocks.assign(clocks.begin(), clocks.end());
  return message;
}

// The rows of which another worker had heard later.
void Handover::tell_gained(NodeId worker, Outbox& out) const {
  std::unordered_map<RowKey, int64_t> told;
  for (const Report& report : reports_)
    if (report.of_worker && report.from == worker)
      for (const RowKey key : report.rows) told[key] = report.version;
  for (size_t i = 0; i < reports_.size(); ++i) {
    ValuesWriter writer(worker, values_message(reports_[i].version, reports_[i].clocks), options_, out);
    for (size_t k = 0; k < reports_[i].rows.size(); ++k) {
      const RowKey key = reports_[i].rows[k];
      const auto newest = newest_.find(key);
      if (newest == newest_.end() || newest->second.report != i) continue;
      const auto own = told.find(key);
      const bool has_it = own != told.end() && own->second == reports_[i].version;
      if (!has_it) writer.add(key, reports_[i].values.row(static_cast<int64_t>(k)));
    }
  }
}

void Handover::tell_stayed(NodeId worker, std::span<const RowKey> keys, const Shard& owned, const Told& told,
                           int64_t version, std::span<const WorkerClock> clocks, Outbox& out) const {
  std::map<std::vector<WorkerClock>, ValuesWriter> writers;
  for (const RowKey key : keys) {
    const int64_t place = owned.find(key);
    if (place < 0 || !owned.touched(place)) continue;
    auto writer = writers.find(inherited_.of(key));
    if (writer == writers.end())
      writer = writers
                   .try_emplace(inherited_.of(key), worker, values_message(version, inherited_.joined(clocks, key)),
                                options_, out)
                   .first;
    writer->second.add(key, told(place));
  }
}

// Rows that stayed with us, and of which the worker says what it knows: for a while it took another for their owner.
std::vector<RowKey> Handover::returned_by(NodeId worker) const {
  const std::unordered_set<RowKey> stayed(stayed_.begin(), stayed_.end());
  std::vector<RowKey> returned;
  for (const Report& report : reports_)
    if (report.of_worker && report.from == worker)
      for (const RowKey key : report.rows)
        if (stayed.count(key) > 0) returned.push_back(key);
  std::sort(returned.begin(), returned.end());  // it may have known them of different states, in messages of their own
  return returned;
}

void Handover::finish(const Told& told, const MissedBy& missed_by, int64_t version, int64_t slowest,
                      std::span<const WorkerClock> clocks, Shard& owned, Outbox& out) {
  choose();
  inherit();
  fill(owned);
  returned_.clear();
  for (const NodeId worker : view_.workers) {
    tell_gained(worker, out);
    tell_stayed(worker, is_newcomer(worker) ? stayed_ : missed_by(worker), owned, told, version, clocks, out);
    std::vector<RowKey>& returned = returned_[worker];
    if (!is_newcomer(worker)) returned = returned_by(worker);
    tell_stayed(worker, returned, owned, told, version, clocks, out);
    Message end = values_message(version, clocks);
    end.last = true;
    end.clock = slowest;
    out.push_back({worker, std::move(end)});
  }
  known_ = {view_.workers.begin(), view_.workers.end()};
  unconfirmed_ = known_;
  reports_.clear();
  newest_.clear();
}

}  // namespace streamvec
