#include "streamvec/sync/replica.h"

#include <algorithm>
#include <utility>

#include "streamvec/kernel/row_ops.h"
#include "streamvec/sync/shared_work.h"

namespace streamvec {
namespace {

constexpr NodeId kNobody = UINT32_MAX;
constexpr RowKey kMeasuredKeys = 4'096;  // the most frequent rows tell how long rows are
constexpr size_t kFetchAhead = 3;        // rows: a row from memory takes about as long as two to work on

// Up to which clock the pushes of `worker` to `server` are in a state.
int64_t clock_of(std::span<const WorkerClock> clocks, NodeId server, NodeId worker) {
  for (const WorkerClock& known : clocks)
    if (known.server == server && known.worker == worker) return known.clock;
  return 0;
}

}  // namespace

Replica::Replica(const SyncOptions& options, std::vector<Matrix*> live)
    : options_(options),
      live_(std::move(live)),
      touched_(options.key_end, 0),
      owner_(options.key_end, kNobody),
      damped_(options.scheme.combine == Combine::kDamped && options.pull != nullptr),
      lengths_(live_.size()),
      pushed_at_(damped_ ? options.key_end : 0, 0) {
  staleness_ = options.scheme.staleness;
  answers_.emplace_back(options.dim);
  pushes_.emplace_back(options.dim);
  row_.reserve_zeroed(1, options.dim);
  zero_.reserve_zeroed(1, options.dim);
}

Result<std::unique_ptr<Replica>> Replica::make(const SyncOptions& options, std::vector<Matrix*> live) {
  std::unique_ptr<Replica> replica(new Replica(options, std::move(live)));
  STREAMVEC_RETURN_IF_ERROR(replica->copy_base());
  return replica;
}

Status Replica::copy_base() {
  for (const Matrix* table : live_) {
    STREAMVEC_ASSIGN_OR_RETURN(Matrix copy, table->copy());
    base_.push_back(std::move(copy));
  }
  return {};
}

float* Replica::live_row(RowKey key) const {
  return live_[key % live_.size()]->row(key / live_.size());
}
Replica::LiveLock Replica::locked(RowKey key) {
  RowLocks& locks = options_.locks != nullptr ? *options_.locks : own_locks_;
  const auto row = static_cast<int32_t>(key / live_.size());
  const std::span<const int32_t> one(&row, 1), none;
  const bool is_input = key % live_.size() == 0;
  std::unique_lock<std::mutex> all;
  if (options_.live_mutex != nullptr) all = std::unique_lock(*options_.live_mutex);
  return {{locks, is_input ? one : none, is_input ? none : one}, std::move(all)};
}
float* Replica::base_row(RowKey key) {
  return base_[key % base_.size()].row(key / base_.size());
}
const float* Replica::base_row(RowKey key) const {
  return base_[key % base_.size()].row(key / base_.size());
}

void Replica::known_value(RowKey key, std::span<float> out) const {
  std::copy_n(base_row(key), options_.dim, out.begin());
  if (const auto orphan = orphans_.find(key); orphan != orphans_.end())
    for (size_t i = 0; i < out.size(); ++i) out[i] -= orphan->second.change[i];
}

int64_t Replica::bytes_of_base() const {
  int64_t bytes = 0;
  for (const Matrix& table : base_) bytes += table.rows() * table.stride() * static_cast<int64_t>(sizeof(float));
  return bytes;
}

bool Replica::may_train() const {
  return options_.scheme.admission != Admission::kSsp || clock_ - slowest() <= staleness_;
}

std::vector<WorkerClock> Replica::clocks() const {
  std::vector<WorkerClock> clocks;
  for (const NodeId worker : view_.workers) {
    int64_t clock = INT64_MAX;
    for (const NodeId server : view_.servers) {
      const auto owner = owners_.find(server);
      clock = std::min(clock, owner == owners_.end() ? 0 : clock_of(owner->second.clocks, server, worker));
    }
    clocks.push_back({options_.self, worker, view_.servers.empty() ? 0 : clock});
  }
  return clocks;
}

int64_t Replica::slowest() const {
  int64_t slowest = INT64_MAX;
  for (const NodeId server : view_.servers) {
    const auto found = owners_.find(server);
    slowest = std::min(slowest, found == owners_.end() ? 0 : found->second.slowest);
  }
  return view_.servers.empty() ? 0 : slowest;
}

void Replica::begin(std::span<const RowKey> due, Outbox& out) {
  ++clock_;
  divide(due);
  push(view_.servers, out);
  for (Lengths& lengths : lengths_)
    if (lengths.rows > 0) lengths = {0, lengths.sum / static_cast<double>(lengths.rows), 0};
}

void Replica::refresh(Outbox& out) {
  divide({});
  push(view_.servers, out);
}

// By owner. Neighbouring rows mostly have different ones: looked up among few, not in a map.
void Replica::divide(std::span<const RowKey> due) {
  std::erase_if(parts_, [&](const auto& part) {
    return !std::binary_search(view_.servers.begin(), view_.servers.end(), part.first);
  });
  std::vector<std::vector<RowKey>*> rows_of;
  for (const NodeId server : view_.servers) {
    parts_[server].clear();
    rows_of.push_back(&parts_[server]);
  }
  for (const RowKey key : due)
    for (size_t i = 0; i < rows_of.size(); ++i)
      if (view_.servers[i] == owner_[key]) {
        rows_of[i]->push_back(key);
        break;
      }
}

// The rows in parts_, to each owner its own.
void Replica::push(std::span<const NodeId> owners, Outbox& out) {
  const size_t first = out.size();
  std::vector<Push*> pushes;
  for (const NodeId owner : owners) {
    Message message;
    message.kind = MessageKind::kPush;
    message.codec = options_.scheme.codec;
    message.epoch = view_.epoch;
    message.clock = clock_;
    message.version = owners_[owner].version;
    out.push_back({owner, std::move(message)});
    Push& push = in_flight_[owner];
    push.clock = clock_;
    push.trained = trained_;
    pushes.push_back(&push);
  }
  while (writers_.size() < owners.size()) writers_.emplace_back(options_.scheme.codec, options_.dim);
  std::vector<std::vector<Lengths>> lengths(owners.size(), std::vector<Lengths>(lengths_.size()));
  share_work(options_.crew, static_cast<int64_t>(owners.size()), [&](int64_t part) {
    const auto i = static_cast<size_t>(part);
    fill(parts_.at(owners[i]), out[first + i].message, *pushes[i], writers_[i], lengths[i]);
  });
  for (const std::vector<Lengths>& of_owner : lengths)
    for (size_t table = 0; table < lengths_.size(); ++table) {
      lengths_[table].sum += of_owner[table].sum;
      lengths_[table].rows += of_owner[table].rows;
    }
}

// One pass over each row: what has changed, into the payload, and what is sent of it into `base`.
void Replica::fill(std::span<const RowKey> rows, Message& message, Push& push, RowWriter& writer,
                   std::vector<Lengths>& lengths) {
  const auto dim = static_cast<int32_t>(options_.dim);
  const auto workers = static_cast<int64_t>(view_.workers.size());
  push.rows.clear();
  const auto sent = [&](int64_t i, const float* change) {
    add_scaled(change, 1, dim, base_row(push.rows[static_cast<size_t>(i)]));
  };
  writer.begin(static_cast<int64_t>(rows.size()), message.payload);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i + kFetchAhead < rows.size()) {
      fetch_row(live_row(rows[i + kFetchAhead]), dim);
      fetch_row(base_row(rows[i + kFetchAhead]), dim);
    }
    const ChangeSquares squares = change_of(rows[i], writer.next());
    if (options_.change_min > 0 && squares.change < options_.change_min * squares.known) continue;
    push.rows.push_back(rows[i]);
    writer.add(sent);
    if (!damped_) continue;
    note_length(rows[i], squares.known, lengths);
    message.shares.push_back(pack_share(damped_share(pull_since(rows[i], pushed_at_[rows[i]]), workers)));
    pushed_at_[rows[i]] = static_cast<float>(trained_);
  }
  writer.finish(sent);
  message.rows = push.rows;
  push.payload = message.payload;
}

ChangeSquares Replica::change_of(RowKey key, float* change) {
  const LiveLock lock = locked(key);
  return take_change(live_row(key), base_row(key), static_cast<int32_t>(options_.dim), change);
}

double Replica::pull_since(RowKey key, double trained) const {
  const Lengths& against = lengths_[lengths_.size() - 1 - key % lengths_.size()];
  return double{(*options_.pull)[key]} * against.mean * (trained_ - trained);
}

double Replica::mean_square() const {
  double sum = 0;
  for (const Lengths& lengths : lengths_) sum += lengths.mean;
  return sum / static_cast<double>(lengths_.size());
}

void Replica::note_length(RowKey key, float square, std::vector<Lengths>& lengths) {
  if (key >= kMeasuredKeys) return;
  Lengths& of_table = lengths[key % lengths.size()];
  of_table.sum += square;
  ++of_table.rows;
}

// The changes of a push as its owner decodes them.
template <typename Use>
void Replica::for_each_change(const Push& push, Use&& use) {
  RowReader& changes = pushes_.front();
  const Status own = changes.begin(options_.scheme.codec, push.payload, static_cast<int64_t>(push.rows.size()));
  STREAMVEC_CHECK(own.ok());
  for (size_t i = 0; i < push.rows.size(); ++i) use(push.rows[i], changes.row(static_cast<int64_t>(i)));
}

Status Replica::receive(NodeId from, const Message& message, Outbox& out) {
  const bool stays = std::binary_search(view_.servers.begin(), view_.servers.end(), from);
  if (!stays) return {};  // of an owner that is gone: what it said last is settled by the new one
  switch (message.kind) {
    case MessageKind::kUpdate:
      STREAMVEC_RETURN_IF_ERROR(receive_update(from, message));
      break;
    case MessageKind::kValues:
      STREAMVEC_RETURN_IF_ERROR(receive_values(from, message));
      break;
    case MessageKind::kRefused:
      if (const auto found = in_flight_.find(from); found != in_flight_.end() && found->second.clock == message.clock) {
        for_each_change(found->second, [&](RowKey key, const float* change) { take_back(key, change); });
        in_flight_.erase(found);
      }
      break;
    case MessageKind::kPush:
    case MessageKind::kKnown:
    case MessageKind::kGiven:
    case MessageKind::kTaken:
      return error(Code::kInvalidArgument, "node ", from, " sent a worker a message that only owners of rows take");
  }
  try_to_tell_values(out);
  return {};
}

Status Replica::receive_update(NodeId from, const Message& message) {
  STREAMVEC_RETURN_IF_ERROR(
      answers_.front().begin(message.codec, message.payload, static_cast<int64_t>(message.rows.size())));
  OwnerState& owner = owners_[from];
  owner.version = message.version;
  owner.slowest = message.clock;
  owner.clocks = message.clocks;
  const auto found = in_flight_.find(from);
  const bool answered =
      found != in_flight_.end() && clock_of(message.clocks, from, options_.self) >= found->second.clock;
  apply(from, message, answered ? &found->second : nullptr);
  if (answered) in_flight_.erase(found);
  return {};
}

// Whether the row is its owner's in that epoch, and still when the owners of a later one have been told.
bool Replica::is_of(NodeId owner, uint32_t epoch, RowKey key) const {
  const auto then = servers_of_.find(epoch);
  if (then == servers_of_.end() || owner_of(key, then->second) != owner) return false;
  return mine_to_take(owner, key);
}

// Rows that have moved to another owner, whom we have told what we know, are no longer this one's to change.
bool Replica::mine_to_take(NodeId from, RowKey key) const {
  return !untold_.empty() || owner_of(key, view_.servers) == from;
}

// The answer replaces the push that it answers: rows move by the one less the other. Many rows in parts, side by side.
void Replica::apply(NodeId from, const Message& message, const Push* answered) {
  const std::vector<Range> ranges = ranges_of(message, answered);
  while (answers_.size() < ranges.size()) answers_.emplace_back(options_.dim);
  while (pushes_.size() < ranges.size()) pushes_.emplace_back(options_.dim);
  share_work(options_.crew, static_cast<int64_t>(ranges.size()), [&](int64_t part) {
    const auto i = static_cast<size_t>(part);
    apply_range(from, message, answered, ranges[i], answers_[i], pushes_[i]);
  });
}

// Between the same keys on both sides.
std::vector<Replica::Range> Replica::ranges_of(const Message& message, const Push* answered) const {
  const std::vector<RowKey>& told = message.rows;
  const size_t pushed = answered == nullptr ? 0 : answered->rows.size();
  const int64_t parts = answers_.front().by_row() ? parts_of(options_.crew, told.size()) : 1;
  std::vector<Range> ranges;
  Range range;
  for (int64_t i = 1; i <= parts; ++i) {
    range.told = range.told_end;
    range.pushed = range.pushed_end;
    range.told_end = told.size() * static_cast<size_t>(i) / static_cast<size_t>(parts);
    range.pushed_end = pushed;
    if (i < parts && pushed > 0)
      range.pushed_end =
          static_cast<size_t>(std::lower_bound(answered->rows.begin(), answered->rows.end(), told[range.told_end]) -
                              answered->rows.begin());
    ranges.push_back(range);
  }
  return ranges;
}

void Replica::apply_range(NodeId from, const Message& message, const Push* answered, const Range& range,
                          RowReader& answers, RowReader& pushes) {
  const auto dim = static_cast<int32_t>(options_.dim);
  const std::vector<RowKey> none;
  const std::vector<RowKey>& told = message.rows;
  const std::vector<RowKey>& pushed = answered == nullptr ? none : answered->rows;
  STREAMVEC_CHECK(answers.begin(message.codec, message.payload, static_cast<int64_t>(told.size())).ok());
  if (answered != nullptr)
    STREAMVEC_CHECK(pushes.begin(options_.scheme.codec, answered->payload, static_cast<int64_t>(pushed.size())).ok());
  for (size_t i = range.told, k = range.pushed; i < range.told_end || k < range.pushed_end;) {
    if (i + kFetchAhead < range.told_end) {
      fetch_row(live_row(told[i + kFetchAhead]), dim);
      fetch_row(base_row(told[i + kFetchAhead]), dim);
    }
    const bool of_answer = k == range.pushed_end || (i < range.told_end && told[i] <= pushed[k]);
    const RowKey key = of_answer ? told[i] : pushed[k];
    const bool of_push = k < range.pushed_end && pushed[k] == key;
    const float* to = of_answer ? answers.row(static_cast<int64_t>(i++)) : zero_.row(0);
    const float* instead_of = of_push ? pushes.row(static_cast<int64_t>(k++)) : zero_.row(0);
    if (!settled_ && !mine_to_take(from, key)) continue;
    const float share = damped_ && answered != nullptr ? late_share(pull_since(key, answered->trained)) : 1;
    const LiveLock lock = locked(key);
    shift_both(to, instead_of, share, dim, live_row(key), base_row(key));
    touched_[key] = 1;
  }
}

void Replica::take_back(RowKey key, const float* change) {
  add_scaled(change, -1, static_cast<int32_t>(options_.dim), base_row(key));
}

void Replica::set_view(const View& view, Outbox& out) {
  if (view.epoch <= view_.epoch) return;
  view_ = view;
  servers_of_[view.epoch] = view.servers;
  settled_ = false;
  untold_ = unconfirmed_ = {view.servers.begin(), view.servers.end()};
  for (auto flight = in_flight_.begin(); flight != in_flight_.end();) {
    if (untold_.count(flight->first) > 0) {
      ++flight;
      continue;
    }
    for_each_change(flight->second, [&](RowKey key, const float* change) {
      orphans_[key] = {flight->first, flight->second.clock, std::vector<float>(change, change + options_.dim)};
    });
    flight = in_flight_.erase(flight);
  }
  try_to_tell_values(out);
}

void Replica::try_to_tell_values(Outbox& out) {
  if (settled_ || !in_flight_.empty() || untold_.empty()) return;
  for (const NodeId server : untold_) tell_values(server, out);
  untold_.clear();
}

// The state that a row is of: its owner's as we know it now, or as we knew it when the row was first told to another.
std::shared_ptr<const Replica::Told> Replica::state_of(RowKey key, std::map<NodeId, std::shared_ptr<const Told>>& now) {
  if (const auto found = told_.find(key); found != told_.end()) return found->second;
  std::shared_ptr<const Told>& state = now[owner_[key]];
  if (state == nullptr) state = std::make_shared<Told>(Told{owners_[owner_[key]].version, owners_[owner_[key]].clocks});
  return told_[key] = state;
}

// What we know of the rows that have come to `owner` from others, without what those may never have got.
void Replica::tell_values(NodeId owner, Outbox& out) {
  const auto start = [&](const Told& state) {
    Message message;
    message.kind = MessageKind::kKnown;
    message.last = false;
    message.epoch = view_.epoch;
    message.version = state.version;
    message.clocks = state.clocks;
    return message;
  };
  std::map<NodeId, std::shared_ptr<const Told>> now;
  std::map<std::shared_ptr<const Told>, Message> parts;
  for (RowKey key = 0; key < options_.key_end; ++key) {
    if (touched_[key] == 0 || owner_[key] == owner || owner_of(key, view_.servers) != owner) continue;
    const std::shared_ptr<const Told> state = state_of(key, now);
    Message& part = parts.try_emplace(state, start(*state)).first->second;
    std::vector<float> value(static_cast<size_t>(options_.dim));
    known_value(key, value);
    part.rows.push_back(key);
    part.payload.append(reinterpret_cast<const char*>(value.data()), sizeof(float) * value.size());
    if (static_cast<int64_t>(part.rows.size()) < options_.message_rows_max) continue;
    out.push_back({owner, std::exchange(part, start(*state))});
  }
  for (auto& [state, part] : parts)
    if (!part.rows.empty()) out.push_back({owner, std::move(part)});
  Message end = start({});
  end.last = true;
  out.push_back({owner, std::move(end)});
}

Status Replica::receive_values(NodeId from, const Message& message) {
  OwnerState& owner = owners_[from];
  owner.values.push_back(message);
  return message.last ? install_values(from) : Status();
}

// All at once: a half would be neither the old owner's state nor the new one's.
Status Replica::install_values(NodeId from) {
  OwnerState& owner = owners_[from];
  const std::vector<Message> values = std::exchange(owner.values, {});
  std::vector<RowBuffer> decoded(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const auto rows = decoded[i].reserve_zeroed(static_cast<int64_t>(values[i].rows.size()), options_.dim);
    STREAMVEC_RETURN_IF_ERROR(make_codec(values[i].codec)->decode(values[i].payload, rows));
  }
  for (size_t i = 0; i < values.size(); ++i)
    for (size_t k = 0; k < values[i].rows.size(); ++k)
      if (is_of(from, values.back().epoch, values[i].rows[k]))
        install_row(values[i].rows[k], decoded[i].row(static_cast<int64_t>(k)), values[i].clocks);
  settle_orphans(from, values.back().epoch);
  for (RowKey key = 0; key < options_.key_end; ++key)
    if (is_of(from, values.back().epoch, key)) {
      owner_[key] = from;
      told_.erase(key);
    }
  owner.version = values.back().version;
  owner.clocks = values.back().clocks;
  owner.slowest = values.back().clock;
  clock_ = std::max(clock_, clock_of(owner.clocks, from, options_.self));
  if (values.back().epoch == view_.epoch) unconfirmed_.erase(from);
  settled_ = unconfirmed_.empty() && untold_.empty();
  if (settled_) servers_of_.erase(servers_of_.begin(), servers_of_.find(view_.epoch));
  return {};
}

// The row is `value` at its owner, with our pushes up to `clocks` in it; what we have added since stays on top.
void Replica::install_row(RowKey key, const float* value, std::span<const WorkerClock> clocks) {
  const auto dim = static_cast<int32_t>(options_.dim);
  float* by = row_.row(0);
  std::copy_n(base_row(key), options_.dim, by);
  const auto orphan = orphans_.find(key);
  if (orphan != orphans_.end() && orphan->second.clock > clock_of(clocks, orphan->second.server, options_.self))
    for (int32_t i = 0; i < dim; ++i) by[i] -= orphan->second.change[static_cast<size_t>(i)];
  subtract_from(value, dim, by);  // how far the owner is from what we have told or know to be in it
  {
    const LiveLock lock = locked(key);
    add_scaled(by, 1, dim, live_row(key));
  }
  std::copy_n(value, options_.dim, base_row(key));
  if (orphan != orphans_.end()) orphans_.erase(orphan);
  touched_[key] = 1;
}

// Rows that the owner did not speak of are as we knew them: our last changes are not in them.
void Replica::settle_orphans(NodeId owner, uint32_t epoch) {
  for (auto orphan = orphans_.begin(); orphan != orphans_.end();) {
    if (!is_of(owner, epoch, orphan->first)) {
      ++orphan;
      continue;
    }
    for (int64_t i = 0; i < options_.dim; ++i)
      base_row(orphan->first)[i] -= orphan->second.change[static_cast<size_t>(i)];
    orphan = orphans_.erase(orphan);
  }
}

}  // namespace streamvec
