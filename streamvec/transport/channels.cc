#include "streamvec/transport/channels.h"

#include <cstring>
#include <utility>

namespace streamvec {
namespace {

constexpr size_t kNumber = sizeof(uint32_t);
constexpr int64_t kFrameCost = 64;  // what a frame without bytes takes

int64_t cost(const std::string& frame) {
  return static_cast<int64_t>(frame.size()) + kFrameCost;
}

}  // namespace

class Channels::Channel final : public Transport {
 public:
  Channel(Channels& owner, uint32_t number) : owner_(owner), number_(number) {}
  ~Channel() override { owner_.close(number_); }

  NodeId self() const override { return owner_.transport_.self(); }
  void add_peer(NodeId node, const std::string& address) override { owner_.transport_.add_peer(node, address); }
  void remove_peer(NodeId node) override { owner_.transport_.remove_peer(node); }
  void send(NodeId to, std::string frame) override { owner_.send(number_, to, std::move(frame)); }
  Status receive(Deadline deadline, NodeId& from, std::string& frame) override {
    return owner_.receive(number_, deadline, from, frame);
  }
  int64_t queued_bytes(NodeId to) const override { return owner_.transport_.queued_bytes(to); }
  Status peer_status(NodeId node) const override { return owner_.transport_.peer_status(node); }
  // Of this channel; frames that the transport dropped count as sent.
  TransportTotals totals() const override {
    const std::lock_guard lock(owner_.mutex_);
    return owner_.queues_[number_].totals;
  }

 private:
  Channels& owner_;
  const uint32_t number_;
};

std::unique_ptr<Transport> Channels::open(uint32_t number) {
  const std::lock_guard lock(mutex_);
  STREAMVEC_CHECK(opened_.insert(number).second);
  return std::make_unique<Channel>(*this, number);
}

void Channels::send(uint32_t number, NodeId to, std::string frame) {
  {
    const std::lock_guard lock(mutex_);
    TransportTotals& totals = queues_[number].totals;
    ++totals.frames_sent;
    totals.bytes_sent += static_cast<int64_t>(frame.size());
  }
  frame.append(reinterpret_cast<const char*>(&number), kNumber);
  transport_.send(to, std::move(frame));
}

Status Channels::receive(uint32_t number, Deadline deadline, NodeId& from, std::string& frame) {
  constexpr int kMostAfterDeadline = 1'000;  // frames of other channels must not keep us for ever
  std::unique_lock lock(mutex_);
  Queue& queue = queues_[number];
  for (int late = 0; queue.frames.empty();) {
    if (!broken_.ok()) return broken_;
    if (deadline.passed() && ++late > kMostAfterDeadline)
      return error(Code::kDeadlineExceeded, "no frame came in time");
    if (!receiving_) {
      const Status status = bring_in(lock, deadline);
      if (!status.ok() && queue.frames.empty()) return status;
    } else if (changed_.wait_until(lock, deadline.when()) == std::cv_status::timeout && queue.frames.empty()) {
      return error(Code::kDeadlineExceeded, "no frame came in time");
    }
  }
  Frame next = std::move(queue.frames.front());
  queue.frames.pop_front();
  waiting_bytes_ -= cost(next.bytes);
  ++queue.totals.frames_received;
  queue.totals.bytes_received += static_cast<int64_t>(next.bytes.size());
  from = next.from;
  frame = std::move(next.bytes);
  return {};
}

Status Channels::bring_in(std::unique_lock<std::mutex>& lock, Deadline deadline) {
  receiving_ = true;
  lock.unlock();
  NodeId from = 0;
  std::string frame;
  const Status status = transport_.receive(deadline, from, frame);
  lock.lock();
  receiving_ = false;
  if (status.ok()) {
    sort_in(from, std::move(frame));
  } else if (status.code() != Code::kDeadlineExceeded) {
    broken_ = status;
  }
  changed_.notify_all();  // for whom it came, or who receives next
  return status;
}

void Channels::sort_in(NodeId from, std::string frame) {
  if (frame.size() < kNumber) return;
  uint32_t number = 0;
  std::memcpy(&number, frame.data() + frame.size() - kNumber, kNumber);
  frame.resize(frame.size() - kNumber);
  if (closed_.contains(number)) return;
  if (waiting_bytes_ + cost(frame) > options_.waiting_bytes_max) {
    if (const auto queue = queues_.find(number); queue != queues_.end()) ++queue->second.totals.frames_dropped;
    return;
  }
  waiting_bytes_ += cost(frame);
  queues_[number].frames.push_back({from, std::move(frame)});
}

void Channels::close(uint32_t number) {
  const std::lock_guard lock(mutex_);
  for (const Frame& frame : queues_[number].frames) waiting_bytes_ -= cost(frame.bytes);
  queues_.erase(number);
  closed_.insert(number);
}

}  // namespace streamvec
