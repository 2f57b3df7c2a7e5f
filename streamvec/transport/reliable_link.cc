#include "streamvec/transport/reliable_link.h"

#include <cstring>
#include <utility>

namespace streamvec {
namespace {

// number (0: only an acknowledgement), then the last number received in order, then the message.
constexpr size_t kLinkHeader = 16;

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

Status ReliableLink::receive(std::string_view bytes, double, std::vector<std::string>& messages,
                             std::vector<std::string>& frames) {
  if (bytes.size() < kLinkHeader)
    return error(Code::kInvalidArgument, "a frame of ", bytes.size(), " bytes; the other side is no streamvec");
  uint64_t number = 0, acknowledged = 0;
  std::memcpy(&number, bytes.data(), 8);
  std::memcpy(&acknowledged, bytes.data() + 8, 8);
  if (acknowledged > sent_)
    return error(Code::kInvalidArgument, "a frame acknowledges message ", acknowledged, " of ", sent_);
  while (!unacknowledged_.empty() && unacknowledged_.front().number <= acknowledged) unacknowledged_.pop_front();
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
