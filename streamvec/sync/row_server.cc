#include "streamvec/sync/row_server.h"

#include <algorithm>
#include <utility>

#include "streamvec/sync/owner.h"

namespace streamvec {
namespace {

// Versions of a later epoch are greater than all of an earlier one, whoever gave them.
constexpr int kEpochShift = 40;

}  // namespace

Owner::Owner(const SyncOptions& options, Shard rows)
    : options_(options),
      rows_(std::move(rows)),
      codec_(options.scheme.codec),
      checked_(options.dim),
      handover_(options_) {}

Status Owner::receive(NodeId from, const Message& message, Outbox& out) {
  if (message.epoch > view_.epoch) {  // the sender has heard of it first
    early_.emplace_back(from, message);
    return {};
  }
  if (message.kind == MessageKind::kKnown || message.kind == MessageKind::kGiven ||
      message.kind == MessageKind::kTaken) {
    STREAMVEC_RETURN_IF_ERROR(handover_.receive(from, message));
    if (!ready_ && handover_.complete()) finish_handover(out);
    return {};
  }
  if (message.kind != MessageKind::kPush)
    return error(Code::kInvalidArgument, "node ", from, " sent an owner of rows a message that only workers take");
  // A worker pushes only after it has told its values, so that a push of this epoch finds us ready.
  if (message.epoch != view_.epoch || !ready_ || clocks_.count(from) == 0) {
    Message refused;
    refused.kind = MessageKind::kRefused;
    refused.epoch = view_.epoch;
    refused.clock = message.clock;
    out.push_back({from, std::move(refused)});
    return {};
  }
  handover_.confirm(from, out);
  STREAMVEC_ASSIGN_OR_RETURN(Push push, read_push(from, message));
  take_in(std::move(push), out);
  return {};
}

Result<Owner::Push> Owner::read_push(NodeId from, const Message& message) {
  for (const RowKey key : message.rows)
    if (rows_.find(key) < 0)
      return error(Code::kOutOfRange, "node ", from, " changed row ", key, ", which node ", options_.self,
                   " does not own in epoch ", view_.epoch);
  STREAMVEC_RETURN_IF_ERROR(checked_.begin(message.codec, message.payload, static_cast<int64_t>(message.rows.size())));
  Push push{
      from, message.clock, message.version, message.stamp, message.rows, message.codec, message.payload, message.shares,
      {}};
  if (message.shares.empty()) return push;
  const auto dim = static_cast<size_t>(options_.dim);
  if (message.directions.empty() || message.directions.size() % dim != 0)
    return error(Code::kInvalidArgument, "node ", from, " sent directions of ", message.directions.size(),
                 " values where rows have ", dim);
  const auto tables = static_cast<int64_t>(message.directions.size() / dim);
  push.directions.reserve_zeroed(tables, options_.dim);
  for (int64_t i = 0; i < tables; ++i)
    std::copy_n(message.directions.begin() + i * options_.dim, dim, push.directions.row(i));
  return push;
}

void Owner::Push::add(size_t i, RowReader& changes, int32_t dim, float* to) const {
  const auto at = static_cast<int64_t>(i);
  if (shares.empty()) return changes.add(at, 1, to);
  if (shares[2 * i] == shares[2 * i + 1]) return changes.add(at, unpack_share(shares[2 * i]), to);
  const RowShares of_row{unpack_share(shares[2 * i]), unpack_share(shares[2 * i + 1])};
  add_by_shares(changes.row(at), of_row, directions.row(rows[i] % directions.view().rows), dim, to);
}

void Owner::set_view(const View& view, Outbox& out) {
  if (view.epoch <= view_.epoch) return;
  for (const Push& push : drop_waiting(out)) {
    Message refused;
    refused.kind = MessageKind::kRefused;
    refused.epoch = view.epoch;
    refused.clock = push.clock;
    out.push_back({push.from, std::move(refused)});
  }
  view_ = view;
  ready_ = false;
  handover_.begin(view, version_, clocks(), rows_, out);
  if (handover_.complete()) finish_handover(out);
  for (const auto& [from, message] : std::exchange(early_, {})) {
    // Bad values of a worker are as good as none: it will not be told that we are ready.
    if (const Status status = receive(from, message, out); !status.ok()) continue;
  }
}

void Owner::restart(RowKey key, std::span<const float> value) {
  handover_.forget(key);
  const int64_t place = rows_.find(key);
  if (place < 0) return;
  std::copy(value.begin(), value.end(), rows_.row(place));
  on_restart(key, place, value);
}

void Owner::finish_handover(Outbox& out) {
  // A newcomer begins where the slowest is: nobody has to wait until it has caught up.
  const int64_t begin = slowest();
  std::map<NodeId, int64_t> kept;
  for (const NodeId worker : view_.workers) kept[worker] = clocks_.count(worker) > 0 ? clocks_[worker] : begin;
  clocks_ = std::move(kept);
  version_ = std::max(version_, int64_t{view_.epoch} << kEpochShift) + 1;
  const auto missed = [this](NodeId worker) { return missed_by(worker); };
  const auto told = [this](int64_t place) { return told_to_all(place); };
  handover_.finish(told, missed, version_, slowest(), clocks(), rows_, out);
  ready_ = true;
  on_view(handover_);
}

Message Owner::update() const {
  Message message;
  message.kind = MessageKind::kUpdate;
  message.codec = codec_;
  message.confirmed = handover_.confirmed();
  message.epoch = view_.epoch;
  message.stamp = options_.stamp();
  message.clock = slowest();
  message.version = version_;
  message.clocks = clocks();
  return message;
}

int64_t Owner::slowest() const {
  int64_t slowest = INT64_MAX;
  for (const auto& [worker, clock] : clocks_) slowest = std::min(slowest, clock);
  return clocks_.empty() ? 0 : slowest;
}

int64_t Owner::behind(NodeId worker) const {
  const auto own = clocks_.find(worker);
  if (own == clocks_.end()) return 0;
  int64_t furthest = own->second;
  for (const auto& [other, clock] : clocks_) furthest = std::max(furthest, clock);
  return furthest - own->second;
}

std::vector<WorkerClock> Owner::clocks() const {
  std::vector<WorkerClock> clocks;
  for (const auto& [worker, clock] : clocks_) clocks.push_back({options_.self, worker, clock});
  return clocks;
}

Result<std::unique_ptr<RowServer>> make_row_server(const SyncOptions& options) {
  return options.scheme.in_rounds() ? make_round_server(options) : make_late_server(options);
}

}  // namespace streamvec
