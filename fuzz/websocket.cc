// WebSocket frames and handshake (source/live/websocket_frames.h, websocket_handshake.h): a byte gives the size of the
// pieces. Pieces give the messages and the verdict of the whole, texts are UTF-8, no message is larger than allowed, a
// frame of ours has the size it should have, and no answer without the right key is taken.
#include <algorithm>

#include "fuzz/fuzz.h"
#include "streamvec/source/live/websocket_frames.h"
#include "streamvec/source/live/websocket_handshake.h"

namespace streamvec {
namespace {

constexpr size_t kMessageBytesMax = 300;

struct Read {
  std::vector<WebSocketMessage> messages;
  Code code;
  int64_t oversized, not_utf8;
};

Read read(std::string_view bytes, size_t piece_size) {
  WebSocketParser parser(kMessageBytesMax);
  Read read{};
  Status status;
  for (size_t at = 0; at < bytes.size() && status.ok(); at += piece_size)
    status = parser.feed(bytes.substr(at, piece_size), read.messages);
  read.code = status.code();
  read.oversized = parser.oversized();
  read.not_utf8 = parser.not_utf8();
  return read;
}

std::string server_frame(uint8_t first, const std::string& payload) {
  std::string frame(1, static_cast<char>(first));
  if (payload.size() < 126) return frame + static_cast<char>(payload.size()) + payload;
  return frame + '\x7E' + static_cast<char>(payload.size() >> 8) + static_cast<char>(payload.size()) + payload;
}

void check_handshake(std::string_view bytes) {
  const Handshake handshake{.host = "a.example", .target = "/", .key = "dGhlIHNhbXBsZSBub25jZQ==", .authorization = ""};
  if (const auto head = head_bytes(bytes)) STREAMVEC_CHECK(*head <= bytes.size());
  if (handshake.check(bytes).ok())
    STREAMVEC_CHECK(bytes.find("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=") != std::string_view::npos);
}

}  // namespace

FuzzStart fuzz_start() {
  return {.seeds = {"\x03" + server_frame(0x81, "hello") + server_frame(0x89, "ping") + server_frame(0x01, "frag") +
                        server_frame(0x8A, "") + server_frame(0x80, "ment"),
                    "\x01" + server_frame(0x82, std::string(200, '\x7F')) +
                        server_frame(0x88,
                                     "\x03\xE8"
                                     "bye"),
                    "\x02" + server_frame(0x81, std::string(400, 'x')) + server_frame(0x81, "\xFF") +
                        server_frame(0x81, "after"),
                    "\x07\x81\x7F" + std::string(6, '\0') + "\x01\x2C" + std::string(300, 'y'),
                    "\x09HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
                    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
                    "\x09HTTP/1.1 302 Found\r\nLocation: wss://b.example/\r\n\r\n"},
          .words = {"\x81\x00", "\x88\x02\x03\xE8", "\x81\x7E\x01\x00", "\x81\x7F", "\xC1", "HTTP/1.1 101 ", "\r\n\r\n",
                    "upgrade:", "websocket"}};
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  FuzzInput input(data, size);
  const size_t piece_size = 1 + input.byte();
  const std::string_view bytes = input.rest();
  const Read whole = read(bytes, std::max<size_t>(1, bytes.size())), pieces = read(bytes, piece_size);
  STREAMVEC_CHECK(whole.code == pieces.code && whole.oversized == pieces.oversized &&
                  whole.not_utf8 == pieces.not_utf8);
  STREAMVEC_CHECK_EQ(whole.messages.size(), pieces.messages.size());
  for (size_t i = 0; i < whole.messages.size(); ++i) {
    const WebSocketMessage &a = whole.messages[i], &b = pieces.messages[i];
    STREAMVEC_CHECK(a.kind == b.kind && a.payload == b.payload && a.close_code == b.close_code);
    STREAMVEC_CHECK(a.payload.size() <= kMessageBytesMax && a.kind != WebSocketOpcode::kContinuation);
    if (a.kind == WebSocketOpcode::kText) STREAMVEC_CHECK(is_utf8(a.payload));
  }
  STREAMVEC_CHECK_EQ(valid_utf8(bytes), is_utf8(bytes));
  const size_t header_size = bytes.size() < 126 ? 6 : bytes.size() < 65'536 ? 8 : 14;
  STREAMVEC_CHECK_EQ(websocket_frame(WebSocketOpcode::kText, bytes, 7).size(), bytes.size() + header_size);
  check_handshake(bytes);
  return 0;
}
