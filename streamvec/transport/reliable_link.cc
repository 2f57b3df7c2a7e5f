#include "streamvec/transport/reliable_link.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace streamvec {
namespace {

// number (0: only an acknowledgement), then the last number received in order, then the message.
constexpr size_t kLinkHeader = 16;
// Bytes: below, the way there and back is most of the time. Messages far shorter than others do not count either: many
// a network lets a little pass at once.
constexpr size_t kLongMessage = 16 << 10, kAsLong = 4;
constexpr size_t kCarried = 8;       // of these the best: the other side may be at work when they come
constexpr double kOnTheWire = 0.25;  // of a long message's time at least: the quickest one was short, or lucky

}  // namespace

std::string ReliableLink::frame(uint64_t number, std::string_view message) const {
  std::string frame;
  frame.reserve(kLinkHeader + message.size() + sizeof(uint32_t));  // Channels adds its number
  frame.resize(kLinkHeader);
  std::memcpy(frame.data(), &number, 8);
  std::memcpy(frame.data() + 8, &received_, 8);
  frame += message;
  return frame;
}

void ReliableLink::send(std::string message, double now_s, std::vector<std::string>& frames) {
  frames.push_back(frame(++sent_, message));
  unacknowledged_.push_back({sent_, now_s, now_s, std::move(message)});
}

void ReliableLink::take_acknowledged(uint64_t last, double now_s) {
  size_t bytes = 0;
  double since_s = now_s;
  for (; !unacknowledged_.empty() && unacknowledged_.front().number <= last; unacknowledged_.pop_front()) {
    bytes += unacknowledged_.front().message.size();
    since_s = std::min(since_s, unacknowledged_.front().first_sent_s);
  }
  if (bytes == 0 || since_s >= now_s) return;
  way_s_ = way_s_ > 0 ? std::min(way_s_, now_s - since_s) : now_s - since_s;
  if (bytes < kLongMessage) return;
  if (carried_.size() == kCarried) carried_.pop_front();
  carried_.push_back({bytes, now_s - since_s});
}

double ReliableLink::bytes_per_s() const {
  size_t longest = 0;
  for (const Carried& one : carried_) longest = std::max(longest, one.bytes);
  double best = 0;
  for (const Carried& one : carried_) {
    if (one.bytes < longest / kAsLong) continue;
    const double in_s = std::max(one.in_s - way_s_, kOnTheWire * one.in_s);
    best = std::max(best, static_cast<double>(one.bytes) / in_s);
  }
  return best;
}

Status ReliableLink::receive(std::string_view bytes, double now_s, std::vector<std::string>& messages,
                             std::vector<std::string>& frames) {
  if (bytes.size() < kLinkHeader)
    return error(Code::kInvalidArgument, "a frame of ", bytes.size(), " bytes; the other side is no streamvec");
  uint64_t number = 0, acknowledged = 0;
  std::memcpy(&number, bytes.data(), 8);
  std::memcpy(&acknowledged, bytes.data() + 8, 8);
  if (acknowledged > sent_)
    return error(Code::kInvalidArgument, "a frame acknowledges message ", acknowledged, " of ", sent_);
  take_acknowledged(acknowledged, now_s);
  if (number == 0) return {};
  if (number > received_ && static_cast<int64_t>(number - received_) <= options_.ahead_max)
    ahead_.try_emplace(number, bytes.substr(kLinkHeader));
  for (auto next = ahead_.find(received_ + 1); next != ahead_.end(); next = ahead_.find(received_ + 1)) {
    messages.push_back(std::move(next->second));
    ahead_.erase(next);
    ++received_;
  }
  frames.push_back(frame(0, {}));
  return {};
}

void ReliableLink::tick(double now_s, std::vector<std::string>& frames) {
  for (Sent& sent : unacknowledged_) {
    if (now_s - sent.sent_s < options_.resend_after_s) continue;
    frames.push_back(frame(sent.number, sent.message));
    sent.sent_s = now_s;
  }
}

}  // namespace streamvec
