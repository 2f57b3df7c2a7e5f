// The frames of a WebSocket (RFC 6455, section 5), from the client's side.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"

namespace streamvec {

enum class WebSocketOpcode : uint8_t {
  kContinuation = 0,
  kText = 1,
  kBinary = 2,
  kClose = 8,
  kPing = 9,
  kPong = 10,
};

// A whole message: the fragments of one are joined.
struct WebSocketMessage {
  WebSocketOpcode kind;     // never kContinuation
  std::string payload;      // of kClose: the reason only
  uint16_t close_code = 0;  // of kClose; 1005 when the server gave none
};

constexpr uint16_t kCloseNormal = 1000, kCloseProtocolError = 1002, kCloseNoCode = 1005, kCloseTooBig = 1009;

// One frame as a client sends it: whole (FIN) and masked with `mask`.
std::string websocket_frame(WebSocketOpcode opcode, std::string_view payload, uint32_t mask);
// The payload of a close frame.
std::string websocket_close_payload(uint16_t code, std::string_view reason);
// Whether `bytes` are UTF-8: no overlong forms, no surrogates, nothing past U+10FFFF.
bool valid_utf8(std::string_view bytes);

// Takes a server's bytes in pieces of any size and gives the messages they complete. Not thread-safe.
// A message of more than `message_bytes_max` is passed over, and so is a text that is not UTF-8; both are counted.
// (The RFC would close the connection. A client that comes back to its place would meet the same message again.)
// A frame that says it has more than 64 times that many bytes is not believed.
class WebSocketParser {
 public:
  explicit WebSocketParser(size_t message_bytes_max) : message_bytes_max_(message_bytes_max) {}

  // kInvalidArgument when the server breaks the protocol: send a close frame with close_code() and hang up.
  // `out` holds what came before.
  Status feed(std::string_view bytes, std::vector<WebSocketMessage>& out);
  uint16_t close_code() const { return close_code_; }
  int64_t oversized() const { return oversized_; }
  int64_t not_utf8() const { return not_utf8_; }

 private:
  bool header_complete() const;
  Status begin_frame();
  void take_payload(std::string_view& bytes);
  Status end_frame(std::vector<WebSocketMessage>& out);
  Status end_control(std::vector<WebSocketMessage>& out);
  Status broken(uint16_t code, std::string_view what);

  size_t message_bytes_max_;
  std::string header_;       // of the frame that is coming
  bool in_payload_ = false;  // the header is read
  uint64_t payload_left_ = 0;
  bool final_ = false;
  WebSocketOpcode opcode_ = WebSocketOpcode::kContinuation;
  std::string control_;  // payload of a control frame, which may come between fragments
  std::string message_;  // the fragments so far
  bool in_message_ = false, skipping_ = false;
  WebSocketOpcode message_kind_ = WebSocketOpcode::kText;
  uint16_t close_code_ = kCloseNormal;
  int64_t oversized_ = 0, not_utf8_ = 0;
};

}  // namespace streamvec
