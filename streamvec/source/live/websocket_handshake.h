// How a WebSocket begins (RFC 6455, section 4): an HTTP request that is answered with 101.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "streamvec/core/status.h"

namespace streamvec {

// An answer's head is not read further than this.
constexpr size_t kHandshakeBytesMax = size_t{16} << 10;

// FIPS 180-4. Only the handshake's formality needs it; nothing here is secret.
std::array<uint8_t, 20> sha1(std::string_view bytes);
std::string base64(std::string_view bytes);

struct Handshake {
  std::string host;           // "example.org:443"
  std::string target;         // "/subscribe?x=1"
  std::string key;            // base64 of 16 random bytes
  std::string authorization;  // "Basic ..."; "" for none

  std::string request() const;
  // `head` is the answer up to its empty line. kInvalidArgument: it is not the answer to this request; otherwise as
  // refusal() of live_name.h has it.
  Status check(std::string_view head) const;
};

// What Sec-WebSocket-Accept must be.
std::string websocket_accept(std::string_view key);
// The size of the head at the beginning of `bytes`, with its empty line; nothing while that has not come.
std::optional<size_t> head_bytes(std::string_view bytes);
// The value of a header line, "" when there is none; of several the values joined by commas.
std::string header_value(std::string_view head, std::string_view lower_case_name);

}  // namespace streamvec
