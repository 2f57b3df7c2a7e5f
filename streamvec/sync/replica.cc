#include "streamvec/sync/replica.h"

#include <algorithm>
#include <utility>

#include "streamvec/kernel/row_ops.h"
#include "streamvec/sync/shared_work.h"

namespace streamvec {
namespace {

constexpr NodeId kNobody = UINT32_MAX;

}  // namespace

Replica::Replica(const SyncOptions& options, std::vector<Matrix*> live)
    : options_(options),
      live_(std::move(live)),
      touched_(options.key_end, 0),
      owner_(options.key_end, kNobody),
      damped_(options.scheme.combine == Combine::kDamped && options.pull != nullptr),
      codec_(options.scheme.codec),
      pushed_at_(damped_ ? options.key_end : 0, 0) {
  staleness_ = options.scheme.staleness;
  for (size_t table = 0; table < live_.size(); ++table) pulls_.emplace_back(options.dim);
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
  const auto rows = static_cast<int64_t>(options_.key_end / live_.size());  // tables may yet grow to as many
  for (const Matrix* table : live_) {
    STREAMVEC_ASSIGN_OR_RETURN(Matrix copy, Matrix::make(std::max(rows, table->rows()), table->cols()));
    const int64_t parts = parts_of(options_.crew, static_cast<size_t>(table->rows()));
    share_work(options_.crew, parts, [&](int64_t part) {
      const int64_t end = table->rows() * (part + 1) / parts;
      for (int64_t i = table->rows() * part / parts; i < end; ++i)
        std::copy_n(table->row(i), table->cols(), copy.row(i));
    });
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
}

void Replica::restart(RowKey key, std::span<const float> value) {
  std::copy(value.begin(), value.end(), base_row(key));
  orphans_.erase(key);
  touched_[key] = 0;
  if (damped_) pushed_at_[key] = static_cast<float>(trained_);
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
  for (size_t table = 0; damped_ && table < base_.size(); ++table)
    pulls_[table].measure(base_[table], std::span(*options_.pull).subspan(table), base_.size());
  divide(due);
  push(view_.servers, out);
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
    message.codec = codec_;
    message.epoch = view_.epoch;
    message.stamp = options_.stamp();
    message.clock = clock_;
    message.version = owners_[owner].version;
    out.push_back({owner, std::move(message)});
    Push& push = in_flight_[owner];
    push.clock = clock_;
    push.stamp = options_.stamp();
    push.trained = trained_;
    push.codec = codec_;
    pushes.push_back(&push);
  }
  while (writers_.size() < owners.size()) writers_.emplace_back(options_.dim);
  share_work(options_.crew, static_cast<int64_t>(owners.size()), [&](int64_t part) {
    const auto i = static_cast<size_t>(part);
    fill(parts_.at(owners[i]), out[first + i].message, *pushes[i], writers_[i]);
  });
}

// One pass over each row, which is only read: `base` is moved by the answer. What is left over from pushes before was
// trained before them: a row counts by what is trained between two of its pushes, on average of the last ones. By the
// training since the last one alone, what nodes have left would count in full whenever they push twice in a row, as at
// the end, and that is more than all of them together have moved the row.
void Replica::fill(std::span<const RowKey> rows, Message& message, Push& push, RowWriter& writer) {
  const auto dim = static_cast<int32_t>(options_.dim);
  const auto workers = static_cast<int64_t>(view_.workers.size());
  const double kept = is_coarse(codec_) ? kKept : 0;
  push.rows.clear();
  writer.begin(codec_, static_cast<int64_t>(rows.size()), message.payload);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i + kFetchAhead < rows.size()) {
      fetch_row(live_row(rows[i + kFetchAhead]), dim);
      fetch_row(base_row(rows[i + kFetchAhead]), dim);
    }
    const ChangeSquares squares = change_of(rows[i], writer);
    if (options_.change_min > 0 && squares.change < options_.change_min * squares.known) continue;
    push.rows.push_back(rows[i]);
    writer.add();
    if (!damped_) continue;
    const double steps = trained_ - pushed_at_[rows[i]];
    const Pull pull = pull_by(rows[i], (1 - kept) * steps);
    for (const double part : {pull.across, pull.along})
      message.shares.push_back(pack_share(damped_share(part, workers)));
    pushed_at_[rows[i]] = static_cast<float>(trained_ - kept * steps);
  }
  writer.finish();
  for (size_t table = 0; !message.shares.empty() && table < live_.size(); ++table) {
    const float* direction = pull_on(static_cast<RowKey>(table)).direction();
    message.directions.insert(message.directions.end(), direction, direction + dim);
  }
  message.rows = push.rows;
  push.payload = message.payload;
}

ChangeSquares Replica::change_of(RowKey key, RowWriter& writer) {
  const LiveLock lock = locked(key);
  return writer.change(live_row(key), base_row(key));
}

const TablePull& Replica::pull_on(RowKey key) const {
  return pulls_[pulls_.size() - 1 - key % pulls_.size()];
}

Replica::Pull Replica::pull_by(RowKey key, double steps) const {
  const double meetings = double{(*options_.pull)[key]} * steps;
  return {kAcross * pull_on(key).across() * meetings, kAlong * pull_on(key).along() * meetings};
}

double Replica::mean_square() const {
  double sum = 0;
  for (const TablePull& pull : pulls_) sum += pull.along() + pull.across();
  return sum / static_cast<double>(pulls_.size());
}

Status Replica::receive(NodeId from, const Message& message, Outbox& out) {
  // Of an owner that is gone, or was for a while: what it said before is settled by those that came after it.
  const auto since = since_.find(from);
  if (since == since_.end() || message.epoch < since->second) return {};
  switch (message.kind) {
    case MessageKind::kUpdate:
      STREAMVEC_RETURN_IF_ERROR(receive_update(from, message));
      break;
    case MessageKind::kValues:
      STREAMVEC_RETURN_IF_ERROR(receive_values(from, message));
      break;
    case MessageKind::kRefused:
      if (const auto found = in_flight_.find(from); found != in_flight_.end() && found->second.clock == message.clock) {
        in_flight_.erase(found);
      } else {
        take_back_waiting(from, message.clock);
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
  note_state(from, message);
  if (message.confirmed) inherited_.forget_if([&](RowKey key) { return owner_[key] == from; });
  const auto found = in_flight_.find(from);
  if (found == in_flight_.end()) {
    apply(from, message, nullptr);
    return {};
  }
  const bool is_in = clock_of(message.clocks, from, options_.self) >= found->second.clock;
  const bool answered = is_in || (message.last && options_.scheme.admission == Admission::kSoftsync);
  apply(from, message, answered ? &found->second : nullptr);
  if (answered && !is_in) owners_[from].waiting.push_back(std::move(found->second));
  if (answered) in_flight_.erase(found);
  return {};
}

void Replica::note_state(NodeId from, const Message& message) {
  OwnerState& owner = owners_[from];
  owner.version = message.version;
  owner.slowest = message.clock;
  owner.clocks = message.clocks;
  const int64_t applied = clock_of(owner.clocks, from, options_.self);
  while (!owner.waiting.empty() && owner.waiting.front().clock <= applied) owner.waiting.pop_front();
}

// Whether the row is its owner's in that epoch, and still when the owners of a later one have been told.
bool Replica::is_of(NodeId owner, uint32_t epoch, RowKey key) const {
  const auto then = divisions_.find(epoch);
  if (then == divisions_.end() || then->second.owner(key) != owner) return false;
  return mine_to_take(owner, key);
}

std::span<const RowKey> Replica::rows_of(NodeId owner, uint32_t epoch) const {
  const auto then = divisions_.find(epoch);
  return then == divisions_.end() ? std::span<const RowKey>() : then->second.rows_of(owner);
}

// Rows that have moved to another owner, whom we have told what we know, are no longer this one's to change.
bool Replica::mine_to_take(NodeId from, RowKey key) const {
  return !untold_.empty() || divisions_.at(view_.epoch).owner(key) == from;
}

// The answer replaces the push that it answers: live rows move by the one less the other, `base` by the answer. Many
// rows in parts, side by side.
void Replica::apply(NodeId from, const Message& message, const Push* answered) {
  if (!settled_)
    for (const RowKey key : message.rows)
      if (!mine_to_take(from, key)) passed_over_.insert(key);
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
  const bool by_row = is_by_row(message.codec) && (answered == nullptr || is_by_row(answered->codec));
  const int64_t parts = by_row ? parts_of(options_.crew, told.size()) : 1;
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
    STREAMVEC_CHECK(pushes.begin(answered->codec, answered->payload, static_cast<int64_t>(pushed.size())).ok());
  for (size_t i = range.told, k = range.pushed; i < range.told_end || k < range.pushed_end;) {
    if (i + kFetchAhead < range.told_end) {
      fetch_row(live_row(told[i + kFetchAhead]), dim);
      fetch_row(base_row(told[i + kFetchAhead]), dim);
    }
    const bool of_answer = k == range.pushed_end || (i < range.told_end && told[i] <= pushed[k]);
    const RowKey key = of_answer ? told[i] : pushed[k];
    const bool of_push = k < range.pushed_end && pushed[k] == key;
    const float* to = of_answer ? answers.row(static_cast<int64_t>(i++)) : zero_.row(0);
    const float* instead_of = zero_.row(0);
    if (of_push && options_.counts(key, answered->stamp)) instead_of = pushes.row(static_cast<int64_t>(k));
    k += of_push ? 1 : 0;
    if (!settled_ && !mine_to_take(from, key)) continue;
    if (!options_.counts(key, message.stamp)) continue;  // what was pushed of it was of that word, too, or of an older
    move_late(key, to, instead_of, answered != nullptr ? answered->trained : trained_);
    touched_[key] = 1;
  }
}

// What was trained on since `trained` has done a part of it already.
void Replica::move_late(RowKey key, const float* to, const float* instead_of, double trained) {
  const auto dim = static_cast<int32_t>(options_.dim);
  RowShares shares;
  if (damped_) {
    const Pull pull = pull_by(key, kLate * (trained_ - trained));
    shares = {late_share(pull.across), late_share(pull.along)};
  }
  const float* direction = damped_ ? pull_on(key).direction() : zero_.row(0);
  const LiveLock lock = locked(key);
  take_answer(to, instead_of, shares.across, shares.along, direction, dim, live_row(key), base_row(key));
}

void Replica::add_to_live(RowKey key, const float* change) {
  const LiveLock lock = locked(key);
  add_scaled(change, 1, static_cast<int32_t>(options_.dim), live_row(key));
}

}  // namespace streamvec
