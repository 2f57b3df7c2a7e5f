#include "streamvec/transport/inbox.h"

#include <utility>

namespace streamvec {

bool Inbox::push(NodeId from, std::string frame, int64_t bytes_max) {
  {
    const std::lock_guard lock(mutex_);
    if (!closed_.ok()) return false;
    int64_t& held = bytes_from_[from];
    const auto size = static_cast<int64_t>(frame.size());
    if (held > bytes_max - size) return false;
    held += size;
    bytes_ += size;
    frames_.push_back({from, std::move(frame)});
  }
  came_.notify_one();
  return true;
}

Status Inbox::receive(Deadline deadline, NodeId& from, std::string& frame) {
  std::unique_lock lock(mutex_);
  const auto ready = [&] { return !frames_.empty() || !closed_.ok(); };
  if (!came_.wait_until(lock, deadline.when(), ready)) return error(Code::kDeadlineExceeded, "no frame came in time");
  if (!closed_.ok()) return closed_;
  Frame next = std::move(frames_.front());
  frames_.pop_front();
  forget(next);
  ++frames_received_;
  bytes_received_ += static_cast<int64_t>(next.bytes.size());
  from = next.from;
  frame = std::move(next.bytes);
  return {};
}

void Inbox::close(Status reason) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_.ok()) closed_ = std::move(reason);
    frames_.clear();
    bytes_from_.clear();
    bytes_ = 0;
  }
  came_.notify_all();
}

int64_t Inbox::drop(NodeId from) {
  const std::lock_guard lock(mutex_);
  return std::erase_if(frames_, [&](const Frame& frame) {
    if (frame.from == from) forget(frame);
    return frame.from == from;
  });
}

void Inbox::forget(const Frame& frame) {
  const auto size = static_cast<int64_t>(frame.bytes.size());
  bytes_from_[frame.from] -= size;
  bytes_ -= size;
}

int64_t Inbox::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

int64_t Inbox::bytes_from(NodeId node) const {
  const std::lock_guard lock(mutex_);
  const auto found = bytes_from_.find(node);
  return found == bytes_from_.end() ? 0 : found->second;
}

void Inbox::add_to(TransportTotals& totals) const {
  const std::lock_guard lock(mutex_);
  totals.frames_received += frames_received_;
  totals.bytes_received += bytes_received_;
}

}  // namespace streamvec
