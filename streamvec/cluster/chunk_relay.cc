#include "streamvec/cluster/chunk_relay.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "streamvec/vocab/state_bytes.h"

namespace streamvec {
namespace {

constexpr std::chrono::milliseconds kStampLook{1};  // until changes of hands have come, too

bool is_text(const Chunk& chunk) {
  return std::is_sorted(chunk.sentence_ends.begin(), chunk.sentence_ends.end()) && !chunk.sentence_ends.empty() &&
         chunk.sentence_ends.front() >= 0 && chunk.sentence_ends.back() == std::ssize(chunk.slots) &&
         std::all_of(chunk.slots.begin(), chunk.slots.end(), [](Slot slot) { return slot >= 0; });
}

}  // namespace

std::string encode_chunk(const ReplayItem& item) {
  StateWriter out;
  out.put(item.stamp);
  out.put(item.record);
  out.put(item.source);
  out.put(item.time_s);
  out.put(item.t);
  for (const auto* numbers : {&item.chunk.slots, &item.chunk.sentence_ends}) {
    out.put(static_cast<uint64_t>(numbers->size()));
    out.put_all(std::span<const int32_t>(*numbers));
  }
  return out.take();
}

Result<std::shared_ptr<const ReplayItem>> decode_chunk(std::string_view bytes) {
  StateReader in(bytes);
  auto item = std::make_shared<ReplayItem>();
  item->stamp = in.get<uint64_t>();
  item->record = in.get<uint64_t>();
  item->source = in.get<int32_t>();
  item->time_s = in.get<int64_t>();
  item->t = in.get<double>();
  for (auto* numbers : {&item->chunk.slots, &item->chunk.sentence_ends}) {
    numbers->resize(static_cast<size_t>(in.get_count(sizeof(int32_t))));
    in.get_all(std::span<int32_t>(*numbers));
  }
  const bool whole = item->withdraws() ? item->record != 0 && item->chunk.sentence_ends.empty() : is_text(item->chunk);
  if (!in.ok() || !in.at_end() || !whole || !std::isfinite(item->t))
    return error(Code::kInvalidArgument, "a chunk of text that nobody can read; the sender runs another version");
  return std::shared_ptr<const ReplayItem>(std::move(item));
}

void ChunkSender::announce(std::shared_ptr<const ReplayItem> item) {
  const std::lock_guard lock(mutex_);
  const uint64_t record = item->record;
  announced_[record] = std::move(item);
}

std::vector<uint64_t> ChunkSender::withdrawn() const {
  const std::lock_guard lock(mutex_);
  std::set<uint64_t> records;
  for (const auto& [record, item] : announced_) records.insert(record);
  for (const auto& [node, worker] : workers_)
    for (const auto& [sent, record] : worker.withdrawn) records.insert(record);
  return {records.begin(), records.end()};
}

std::map<NodeId, ChunkSender::Worker>::iterator ChunkSender::with_most_room() {
  return std::min_element(workers_.begin(), workers_.end(),
                          [](const auto& a, const auto& b) { return a.second.outstanding() < b.second.outstanding(); });
}

bool ChunkSender::has_room(const ReplayItem& item) const {
  const auto room = [](const auto& worker) { return worker.second.outstanding() < kOutstandingMax; };
  return !workers_.empty() && (item.withdraws() ? std::all_of(workers_.begin(), workers_.end(), room)
                                                : std::any_of(workers_.begin(), workers_.end(), room));
}

bool ChunkSender::send(const ReplayItem& item) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return left_alone() || has_room(item); });
  if (left_alone()) return false;
  const std::string bytes = encode_chunk(item);
  if (!item.withdraws()) {
    const auto best = with_most_room();
    ++best->second.sent;
    out_.emplace_back(best->first, bytes);
    return true;
  }
  for (auto& [node, worker] : workers_) {
    worker.withdrawn.emplace_back(++worker.sent, item.record);
    out_.emplace_back(node, bytes);
  }
  if (const auto latest = announced_.find(item.record); latest != announced_.end() && latest->second.get() == &item)
    announced_.erase(latest);
  return true;
}

void ChunkSender::await_withdrawn() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return left_alone() || std::all_of(workers_.begin(), workers_.end(),
                                       [](const auto& worker) { return worker.second.withdrawn.empty(); });
  });
}

void ChunkSender::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
}

void ChunkSender::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

void ChunkSender::set_workers(const std::set<NodeId>& workers) {
  const std::lock_guard lock(mutex_);
  known_ = true;
  std::erase_if(workers_, [&](const auto& worker) { return workers.count(worker.first) == 0; });
  for (const NodeId worker : workers) workers_.try_emplace(worker);
  changed_.notify_all();
}

void ChunkSender::taken(NodeId worker, int64_t chunks) {
  const std::lock_guard lock(mutex_);
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return;
  found->second.taken = chunks;
  auto& withdrawn = found->second.withdrawn;
  while (!withdrawn.empty() && withdrawn.front().first <= chunks) withdrawn.pop_front();
  changed_.notify_all();
}

std::vector<std::pair<NodeId, std::string>> ChunkSender::take_out() {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<NodeId, std::string>> out = std::exchange(out_, {});
  for (auto& [node, worker] : workers_)
    if (ended_ && !std::exchange(worker.told_end, true)) out.emplace_back(node, "");
  return out;
}

void ChunkReceiver::set_readers(const std::set<NodeId>& readers) {
  const std::lock_guard lock(mutex_);
  known_ = true;
  // What one has sent that is gone now is trained on all the same.
  for (auto& [node, reader] : readers_)
    if (readers.count(node) == 0) reader.ended = true;
  for (const NodeId node : readers) readers_.try_emplace(node);
  changed_.notify_all();
}

Status ChunkReceiver::receive(NodeId from, std::string_view chunk) {
  const std::lock_guard lock(mutex_);
  Reader& reader = readers_[from];
  if (chunk.empty()) {
    reader.ended = true;
  } else {
    STREAMVEC_ASSIGN_OR_RETURN(reader.waiting.emplace_back(), decode_chunk(chunk));
  }
  changed_.notify_all();
  return {};
}

std::vector<std::pair<NodeId, int64_t>> ChunkReceiver::take_taken() {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<NodeId, int64_t>> news;
  for (auto& [node, reader] : readers_)
    if (reader.told != reader.taken) news.emplace_back(node, reader.told = reader.taken);
  return news;
}

std::shared_ptr<const ReplayItem> ChunkReceiver::next(const std::function<uint64_t()>& stamp, Deadline deadline,
                                                      NodeId& from) {
  std::unique_lock lock(mutex_);
  for (;;) {
    auto reader = readers_.upper_bound(last_);
    for (size_t i = 0; i < readers_.size(); ++i, ++reader) {
      if (reader == readers_.end()) reader = readers_.begin();
      std::deque<std::shared_ptr<const ReplayItem>>& waiting = reader->second.waiting;
      if (waiting.empty() || waiting.front()->stamp > stamp()) continue;
      from = last_ = reader->first;
      std::shared_ptr<const ReplayItem> item = std::move(waiting.front());
      waiting.pop_front();
      if (item->withdraws()) leave_out(item->record, from);
      return item;
    }
    if (deadline.passed()) return nullptr;
    changed_.wait_until(lock, std::min(deadline.when(), Deadline::Clock::now() + kStampLook));
  }
}

// What others have sent of a record that this reader withdraws: a shared source was theirs before. It leaves its place
// to nothing, so that they hear of as many as they have sent.
void ChunkReceiver::leave_out(uint64_t record, NodeId reader) {
  static const auto nothing = std::make_shared<const ReplayItem>();
  if (record == 0) return;
  for (auto& [node, other] : readers_)
    if (node != reader)
      std::replace_if(
          other.waiting.begin(), other.waiting.end(), [&](const auto& item) { return item->record == record; },
          nothing);
}

void ChunkReceiver::taken(NodeId from) {
  const std::lock_guard lock(mutex_);
  ++readers_[from].taken;
}

bool ChunkReceiver::over() const {
  const std::lock_guard lock(mutex_);
  return known_ && std::all_of(readers_.begin(), readers_.end(),
                               [](const auto& reader) { return reader.second.ended && reader.second.waiting.empty(); });
}

}  // namespace streamvec
