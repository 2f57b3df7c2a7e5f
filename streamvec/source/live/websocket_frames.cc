#include "streamvec/source/live/websocket_frames.h"

#include <algorithm>
#include <utility>

namespace streamvec {
namespace {

constexpr uint8_t kFinal = 0x80, kReserved = 0x70, kOpcode = 0x0F, kMasked = 0x80, kLength = 0x7F;
constexpr size_t kControlBytesMax = 125;
constexpr uint64_t kBelievable = 64;

uint8_t byte_at(std::string_view bytes, size_t at) {
  return static_cast<uint8_t>(bytes[at]);
}

// Network order.
uint64_t number_at(std::string_view bytes, size_t at, size_t size) {
  uint64_t number = 0;
  for (size_t i = 0; i < size; ++i) number = number << 8 | byte_at(bytes, at + i);
  return number;
}

void append_number(uint64_t number, size_t size, std::string& out) {
  for (size_t i = size; i-- > 0;) out += static_cast<char>(number >> (8 * i) & 0xFF);
}

bool is_control(WebSocketOpcode opcode) {
  return static_cast<uint8_t>(opcode) >= 8;
}

bool is_known(uint8_t opcode) {
  return opcode <= 2 || (opcode >= 8 && opcode <= 10);
}

// RFC 6455, 7.4: codes that may stand in a frame.
bool may_be_sent(uint16_t code) {
  if (code >= 3000) return code < 5000;
  return code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006;
}

size_t utf8_length(uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xC2) return 0;
  return lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
}

// The range of the second byte keeps out overlong forms, surrogates and what is past U+10FFFF.
bool second_byte_fits(uint8_t lead, uint8_t second) {
  const uint8_t least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  return second >= least && second <= most;
}

}  // namespace

bool valid_utf8(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const uint8_t lead = byte_at(bytes, at);
    const size_t length = utf8_length(lead);
    if (length == 0 || length > bytes.size() - at) return false;
    if (length > 1 && !second_byte_fits(lead, byte_at(bytes, at + 1))) return false;
    for (size_t i = 2; i < length; ++i)
      if ((byte_at(bytes, at + i) & 0xC0) != 0x80) return false;
    at += length;
  }
  return true;
}

std::string websocket_frame(WebSocketOpcode opcode, std::string_view payload, uint32_t mask) {
  std::string frame(1, static_cast<char>(kFinal | static_cast<uint8_t>(opcode)));
  if (payload.size() < 126) {
    frame += static_cast<char>(kMasked | payload.size());
  } else {
    const bool short_form = payload.size() <= 0xFFFF;
    frame += static_cast<char>(kMasked | (short_form ? 126 : 127));
    append_number(payload.size(), short_form ? 2 : 8, frame);
  }
  append_number(mask, 4, frame);
  for (size_t i = 0; i < payload.size(); ++i)
    frame += static_cast<char>(byte_at(payload, i) ^ static_cast<uint8_t>(mask >> (24 - 8 * (i % 4))));
  return frame;
}

std::string websocket_close_payload(uint16_t code, std::string_view reason) {
  std::string payload;
  append_number(code, 2, payload);
  payload += reason.substr(0, kControlBytesMax - 2);
  return payload;
}

Status WebSocketParser::feed(std::string_view bytes, std::vector<WebSocketMessage>& out) {
  for (;;) {
    if (!in_payload_) {
      while (!header_complete() && !bytes.empty()) {
        header_ += bytes.front();
        bytes.remove_prefix(1);
      }
      if (!header_complete()) return {};
      STREAMVEC_RETURN_IF_ERROR(begin_frame());
    }
    take_payload(bytes);
    if (payload_left_ > 0) return {};
    in_payload_ = false;
    header_.clear();
    STREAMVEC_RETURN_IF_ERROR(end_frame(out));
  }
}

bool WebSocketParser::header_complete() const {
  if (header_.size() < 2) return false;
  const uint8_t length = byte_at(header_, 1) & kLength;
  return header_.size() >= (length == 127 ? 10u : length == 126 ? 4u : 2u);
}

Status WebSocketParser::broken(uint16_t code, std::string_view what) {
  close_code_ = code;
  return error(Code::kInvalidArgument, "the server breaks the WebSocket protocol: ", what);
}

Status WebSocketParser::begin_frame() {
  const uint8_t first = byte_at(header_, 0), second = byte_at(header_, 1);
  const uint8_t short_length = second & kLength;
  if ((first & kReserved) != 0) return broken(kCloseProtocolError, "reserved bits are set");
  if (!is_known(first & kOpcode)) return broken(kCloseProtocolError, "a frame of unknown kind");
  if ((second & kMasked) != 0) return broken(kCloseProtocolError, "a server's frame is masked");
  final_ = (first & kFinal) != 0;
  opcode_ = static_cast<WebSocketOpcode>(first & kOpcode);
  payload_left_ = short_length < 126 ? short_length : number_at(header_, 2, header_.size() - 2);
  if ((short_length == 126 && payload_left_ < 126) || (short_length == 127 && payload_left_ <= 0xFFFF))
    return broken(kCloseProtocolError, "a length is written longer than it need be");
  if (is_control(opcode_) && (!final_ || payload_left_ > kControlBytesMax))
    return broken(kCloseProtocolError, "a control frame is cut into fragments or too long");
  if (!is_control(opcode_) && (opcode_ == WebSocketOpcode::kContinuation) != in_message_)
    return broken(kCloseProtocolError, "fragments of messages are mixed up");
  if (payload_left_ > kBelievable * message_bytes_max_) return broken(kCloseTooBig, "a frame is too long");
  if (!is_control(opcode_) && !in_message_) {
    in_message_ = true;
    skipping_ = false;
    message_kind_ = opcode_;
    message_.clear();
  }
  in_payload_ = true;
  return {};
}

void WebSocketParser::take_payload(std::string_view& bytes) {
  const auto taken = static_cast<size_t>(std::min<uint64_t>(payload_left_, bytes.size()));
  const std::string_view piece = bytes.substr(0, taken);
  if (is_control(opcode_)) {
    control_ += piece;
  } else if (!skipping_ && message_.size() + payload_left_ > message_bytes_max_) {
    ++oversized_;
    skipping_ = true;
    std::string().swap(message_);
  } else if (!skipping_) {
    message_ += piece;
  }
  payload_left_ -= taken;
  bytes.remove_prefix(taken);
}

Status WebSocketParser::end_frame(std::vector<WebSocketMessage>& out) {
  if (is_control(opcode_)) return end_control(out);
  if (!final_) return {};
  in_message_ = false;
  if (skipping_) return {};
  if (message_kind_ == WebSocketOpcode::kText && !valid_utf8(message_)) {
    ++not_utf8_;
    return {};
  }
  out.push_back({message_kind_, std::exchange(message_, {})});
  return {};
}

Status WebSocketParser::end_control(std::vector<WebSocketMessage>& out) {
  WebSocketMessage message = {opcode_, std::exchange(control_, {})};
  if (opcode_ == WebSocketOpcode::kClose) {
    if (message.payload.size() == 1) return broken(kCloseProtocolError, "a close frame of one byte");
    message.close_code = kCloseNoCode;
    if (!message.payload.empty()) {
      message.close_code = static_cast<uint16_t>(number_at(message.payload, 0, 2));
      message.payload.erase(0, 2);
      if (!may_be_sent(message.close_code)) return broken(kCloseProtocolError, "a close code that may not be sent");
    }
  }
  out.push_back(std::move(message));
  return {};
}

}  // namespace streamvec
