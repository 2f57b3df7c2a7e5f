// Addresses: those that are listened on, who can reach them, and what of them nobody else is to read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "streamvec/core/status.h"

namespace streamvec {

struct HostPort {
  std::string host;  // without brackets
  uint16_t port = 0;
};

// "host:port", of IPv6 "[host]:port"; port 0 stands for any free one. kInvalidArgument for anything else.
Result<HostPort> parse_host_port(const std::string& address);
// The host of "host:port" without brackets. kInvalidArgument as above.
Result<std::string> host_of(const std::string& address);
// Whether only this machine can reach it: localhost, 127.x.y.z, ::1.
bool is_loopback(std::string_view host);
// A text without the names and passwords of the web addresses in it: "nats://user:secret@host/x" is "nats://host/x".
std::string without_credentials(std::string_view text);
// Takes as long for a wrong token as for the right one of that length.
bool same_token(std::string_view a, std::string_view b);

}  // namespace streamvec
