// A Replica in a new membership: what it knows of rows that change owners, and what became of pushes to those that are
// gone.
#include <algorithm>
#include <functional>
#include <utility>

#include "streamvec/kernel/row_ops.h"
#include "streamvec/sync/replica.h"

namespace streamvec {

void Replica::tell_base(NodeId to, Outbox& out) const {
  Message message;
  message.kind = MessageKind::kValues;
  message.stamp = options_.stamp();
  const RowKey end = options_.generations != nullptr ? options_.generations->key_end() : options_.key_end;
  for (RowKey key = 0; key < end; ++key) {
    message.rows.push_back(key);
    message.payload.append(reinterpret_cast<const char*>(base_row(key)),
                           sizeof(float) * static_cast<size_t>(options_.dim));
    if (static_cast<int64_t>(message.rows.size()) < options_.message_rows_max) continue;
    Message next;
    next.kind = MessageKind::kValues;
    next.stamp = options_.stamp();
    out.push_back({to, std::exchange(message, std::move(next))});
  }
  if (!message.rows.empty()) out.push_back({to, std::move(message)});
}

Status Replica::take_base(const Message& message) {
  RowBuffer values;
  const auto rows = values.reserve_zeroed(static_cast<int64_t>(message.rows.size()), options_.dim);
  STREAMVEC_RETURN_IF_ERROR(make_codec(message.codec)->decode(message.payload, rows));
  for (size_t i = 0; i < message.rows.size(); ++i) {
    const RowKey key = message.rows[i];
    const LiveLock lock = locked(key);
    std::copy_n(values.row(static_cast<int64_t>(i)), options_.dim, live_row(key));
    std::copy_n(values.row(static_cast<int64_t>(i)), options_.dim, base_row(key));
  }
  return {};
}

void Replica::set_view(const View& view, Outbox& out) {
  if (view.epoch <= view_.epoch) return;
  std::map<NodeId, uint32_t> since;
  for (const NodeId server : view.servers)
    since[server] = is_among(view_.servers, server) ? since_.at(server) : view.epoch;
  since_ = std::move(since);
  for (const NodeId server : view_.servers) {
    if (is_among(view.servers, server)) continue;
    left_.insert(server);
    owners_[server].values.clear();  // the rest is not heard any more
  }
  view_ = view;
  if (!view.servers.empty()) divisions_.try_emplace(view.epoch, view.servers, options_.key_end);
  settled_ = false;
  untold_ = unconfirmed_ = {view.servers.begin(), view.servers.end()};
  for (auto flight = in_flight_.begin(); flight != in_flight_.end();) {
    if (untold_.count(flight->first) > 0) {
      ++flight;
      continue;
    }
    for_each_change(flight->second,
                    [&](RowKey key, const float* change) { orphan(flight->first, flight->second.clock, key, change); });
    flight = in_flight_.erase(flight);
  }
  for (const auto& [server, owner] : owners_)
    if (untold_.count(server) == 0) orphan_waiting(server);
  try_to_tell_values(out);
}

// Whether its owner had taken it in is not known. Until it is, nothing is pushed.
void Replica::orphan(NodeId server, int64_t clock, RowKey key, const float* change) {
  Orphan& orphan = orphans_[key];
  orphan.server = server;
  orphan.changes.emplace_back(clock, std::vector<float>(change, change + options_.dim));
}

// They become what they were before their answers: part of the live row.
void Replica::orphan_waiting(NodeId server) {
  for (const Push& push : std::exchange(owners_[server].waiting, {}))
    for_each_change(push, [&](RowKey key, const float* change) {
      add_to_live(key, change);
      orphan(server, push.clock, key, change);
    });
}

// A push that its owner had answered, and gives back without its group.
void Replica::take_back_waiting(NodeId server, int64_t clock) {
  std::deque<Push>& waiting = owners_[server].waiting;
  const auto of_clock = [&](const Push& push) { return push.clock == clock; };
  const auto found = std::find_if(waiting.begin(), waiting.end(), of_clock);
  if (found == waiting.end()) return;
  for_each_change(*found, [&](RowKey key, const float* change) { add_to_live(key, change); });
  waiting.erase(found);
}

// Only when it is known of every push whether it is in a state: what we tell then has them in it or not.
bool Replica::any_push_open() const {
  const auto waits = [](const auto& owner) { return !owner.second.waiting.empty(); };
  return !in_flight_.empty() || std::any_of(owners_.begin(), owners_.end(), waits);
}

void Replica::try_to_tell_values(Outbox& out) {
  if (settled_ || any_push_open() || untold_.empty()) return;
  for (const NodeId server : untold_) tell_values(server, out);
  untold_.clear();
}

// The state that a row is of: its owner's as we know it now, or as we knew it when the row was first told to another.
std::shared_ptr<const Replica::Told> Replica::state_of(RowKey key, States& now) {
  if (const auto found = told_.find(key); found != told_.end()) return found->second;
  const OwnerState& owner = owners_[owner_[key]];
  std::shared_ptr<const Told>& state = now[{owner_[key], &inherited_.of(key)}];
  if (state == nullptr) state = std::make_shared<Told>(Told{owner.version, inherited_.joined(owner.clocks, key)});
  return told_[key] = state;
}

// What we know of the rows that have come to `owner` from others, without what those may never have got.
void Replica::tell_values(NodeId owner, Outbox& out) {
  const auto start = [&](const Told& state) {
    Message message;
    message.kind = MessageKind::kKnown;
    message.last = false;
    message.epoch = view_.epoch;
    message.stamp = options_.stamp();
    message.version = state.version;
    message.clocks = state.clocks;
    return message;
  };
  States now;
  const auto nothing = std::make_shared<const Told>();
  std::map<std::shared_ptr<const Told>, Message> parts;
  for (const RowKey key : rows_of(owner, view_.epoch)) {
    const bool comes_back = owner_[key] == owner && left_.count(owner) > 0;
    const bool passed_over = comes_back || passed_over_.count(key) > 0;
    if (!passed_over && (touched_[key] == 0 || owner_[key] == owner)) continue;
    const bool was_told = touched_[key] != 0;  // before it was passed over: else it is as it was at first
    const std::shared_ptr<const Told> state = was_told ? state_of(key, now) : nothing;
    Message& part = parts.try_emplace(state, start(*state)).first->second;
    part.rows.push_back(key);
    part.payload.append(reinterpret_cast<const char*>(base_row(key)),
                        sizeof(float) * static_cast<size_t>(options_.dim));
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
    for (size_t k = 0; k < values[i].rows.size(); ++k) {
      const RowKey key = values[i].rows[k];
      if (!is_of(from, values.back().epoch, key) || !options_.counts(key, values[i].stamp)) continue;
      install_row(key, decoded[i].row(static_cast<int64_t>(k)), values[i].clocks);
      inherited_.set(key, values[i].clocks, from);
      told_.erase(key);
    }
  settle_orphans(from, values.back().epoch);
  for (const RowKey key : rows_of(from, values.back().epoch)) {
    if (!mine_to_take(from, key)) continue;
    owner_[key] = from;
    passed_over_.erase(key);
    const auto told = told_.find(key);
    if (told == told_.end()) continue;
    inherited_.set(key, told->second->clocks, from);  // it did not speak of the row: that is of the state we told
    told_.erase(told);
  }
  left_.erase(from);
  note_state(from, values.back());
  clock_ = std::max(clock_, clock_of(owner.clocks, from, options_.self));
  if (values.back().epoch == view_.epoch) unconfirmed_.erase(from);
  settled_ = unconfirmed_.empty() && untold_.empty();
  if (settled_) divisions_.erase(divisions_.begin(), divisions_.find(view_.epoch));
  return {};
}

// The row is `value` at its owner, with our pushes up to `clocks` in it; what we have added since stays on top.
void Replica::install_row(RowKey key, const float* value, std::span<const WorkerClock> clocks) {
  float* by = row_.row(0);
  std::copy_n(base_row(key), options_.dim, by);
  const auto orphan = orphans_.find(key);
  if (orphan != orphans_.end())
    for (const auto& [clock, change] : orphan->second.changes)
      if (clock <= clock_of(clocks, orphan->second.server, options_.self))
        std::transform(change.begin(), change.end(), by, by, std::plus<>());
  // How far the owner is from what we know to be in it.
  subtract_from(value, static_cast<int32_t>(options_.dim), by);
  add_to_live(key, by);
  std::copy_n(value, options_.dim, base_row(key));
  if (orphan != orphans_.end()) orphans_.erase(orphan);
  touched_[key] = 1;
}

// Rows that the owner did not speak of are as we knew them: our last changes are not in them.
void Replica::settle_orphans(NodeId owner, uint32_t epoch) {
  std::erase_if(orphans_, [&](const auto& orphan) { return is_of(owner, epoch, orphan.first); });
}

}  // namespace streamvec
