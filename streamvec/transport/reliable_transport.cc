#include "streamvec/transport/reliable_transport.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "streamvec/core/clock.h"

namespace streamvec {
namespace {

constexpr auto kTakeInWait = std::chrono::milliseconds(20);

}  // namespace

ReliableTransport::ReliableTransport(std::unique_ptr<Transport> inner, Options options)
    : options_(options), inner_(std::move(inner)), thread_([this] { run(); }) {}

ReliableTransport::~ReliableTransport() {
  stopping_ = true;
  thread_.join();
}

void ReliableTransport::close() {
  closed_ = true;
  inbox_.close();
}

void ReliableTransport::remove_peer(NodeId node) {
  {
    const std::lock_guard lock(mutex_);
    links_.erase(node);
  }
  inner_->remove_peer(node);
}

void ReliableTransport::forget(NodeId node) {
  const std::lock_guard lock(mutex_);
  links_.erase(node);
  forgotten_.insert(node);
}

void ReliableTransport::send(NodeId to, std::string frame) {
  std::vector<std::string> frames;
  const std::lock_guard lock(mutex_);
  if (forgotten_.count(to) > 0) return;
  links_.try_emplace(to, options_.link).first->second.send(std::move(frame), clock_seconds(), frames);
  for (std::string& each : frames) inner_->send(to, std::move(each));
}

void ReliableTransport::run() {
  double until_s = 0;
  while (take_in()) {
    send_again();
    if (!stopping_) continue;
    if (until_s == 0) until_s = clock_seconds() + options_.farewell_s;
    if (closed_ || is_idle() || clock_seconds() > until_s) return;
  }
}

bool ReliableTransport::take_in() {
  NodeId from = 0;
  std::string frame;
  const Status got = inner_->receive(Deadline::after(kTakeInWait), from, frame);
  if (got.code() == Code::kDeadlineExceeded) return true;
  if (!got.ok()) {
    inbox_.close(got);
    return false;
  }
  std::vector<std::string> messages, answers;
  const std::lock_guard lock(mutex_);
  if (forgotten_.count(from) > 0) return true;
  // A frame that is none of a link's is nobody's.
  if (!links_.try_emplace(from, options_.link).first->second.receive(frame, clock_seconds(), messages, answers).ok())
    return true;
  for (std::string& answer : answers) inner_->send(from, std::move(answer));
  for (std::string& message : messages) inbox_.push(from, std::move(message));
  return true;
}

void ReliableTransport::send_again() {
  const std::lock_guard lock(mutex_);
  for (auto& [node, link] : links_) {
    if (inner_->queued_bytes(node) > 0) continue;  // the first copies may still be among them
    std::vector<std::string> frames;
    link.tick(clock_seconds(), frames);
    for (std::string& frame : frames) inner_->send(node, std::move(frame));
  }
}

bool ReliableTransport::is_idle() const {
  const std::lock_guard lock(mutex_);
  return std::all_of(links_.begin(), links_.end(), [](const auto& each) { return each.second.idle(); });
}

}  // namespace streamvec
