// Which addresses of the network a fetch may connect to.
#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>

namespace streamvec {

// What keeps `address` from being a public one: "loopback", "private", "link-local", "shared (carrier NAT)",
// "multicast", "unspecified", "reserved", "documentation", "IPv4 inside IPv6" (mapped, compatible, NAT64, 6to4,
// Teredo, which could lead to any of the former), "no internet address"; "" for a public one. After IANA's registries
// of special-purpose addresses; of IPv6 only 2000::/3 is public. It looks at the address itself, so no spelling of a
// name gets around it.
std::string_view special_address(const sockaddr& address);

// "127.0.0.1", "::1"; "?" for another family.
std::string address_text(const sockaddr& address);

}  // namespace streamvec
