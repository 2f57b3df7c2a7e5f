#include "streamvec/source/http/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <cstring>

namespace streamvec {
namespace {

struct Range4 {
  uint32_t first;
  int bits;
  std::string_view what;
};
constexpr uint32_t ip4(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return a << 24 | b << 16 | c << 8 | d;
}
constexpr Range4 kRanges4[] = {
    {ip4(0, 0, 0, 0), 8, "unspecified"},
    {ip4(10, 0, 0, 0), 8, "private"},
    {ip4(100, 64, 0, 0), 10, "shared (carrier NAT)"},
    {ip4(127, 0, 0, 0), 8, "loopback"},
    {ip4(169, 254, 0, 0), 16, "link-local"},
    {ip4(172, 16, 0, 0), 12, "private"},
    {ip4(192, 0, 0, 0), 24, "reserved"},
    {ip4(192, 0, 2, 0), 24, "documentation"},
    {ip4(192, 88, 99, 0), 24, "reserved"},
    {ip4(192, 168, 0, 0), 16, "private"},
    {ip4(198, 18, 0, 0), 15, "reserved"},
    {ip4(198, 51, 100, 0), 24, "documentation"},
    {ip4(203, 0, 113, 0), 24, "documentation"},
    {ip4(224, 0, 0, 0), 4, "multicast"},
    {ip4(240, 0, 0, 0), 4, "reserved"},
};

std::string_view special4(uint32_t address) {
  for (const Range4& range : kRanges4)
    if ((address ^ range.first) >> (32 - range.bits) == 0) return range.what;
  return "";
}

struct Range6 {
  std::array<uint8_t, 16> first;
  int bits;
  std::string_view what;
};
constexpr Range6 kRanges6[] = {
    {{}, 128, "unspecified"},
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, "loopback"},
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, "IPv4 inside IPv6"},
    {{}, 96, "IPv4 inside IPv6"},
    {{0x00, 0x64, 0xff, 0x9b}, 32, "IPv4 inside IPv6"},  // NAT64: 64:ff9b::/96 and 64:ff9b:1::/48
    {{0x20, 0x01, 0x0d, 0xb8}, 32, "documentation"},
    {{0x20, 0x01, 0x00, 0x00}, 32, "IPv4 inside IPv6"},  // Teredo
    {{0x20, 0x01}, 23, "reserved"},
    {{0x20, 0x02}, 16, "IPv4 inside IPv6"},  // 6to4
    {{0x3f, 0xff}, 20, "documentation"},
    {{0xfc}, 7, "private"},
    {{0xfe, 0x80}, 10, "link-local"},
    {{0xfe, 0xc0}, 10, "private"},
    {{0xff}, 8, "multicast"},
};

bool within(const uint8_t* address, const Range6& range) {
  const size_t whole = static_cast<size_t>(range.bits) / 8;
  if (std::memcmp(address, range.first.data(), whole) != 0) return false;
  const int rest = range.bits % 8;
  return rest == 0 || (address[whole] ^ range.first[whole]) >> (8 - rest) == 0;
}

std::string_view special6(const uint8_t* address) {
  for (const Range6& range : kRanges6)
    if (within(address, range)) return range.what;
  return address[0] >> 5 == 1 ? "" : "reserved";
}

}  // namespace

std::string_view special_address(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in inet;
    std::memcpy(&inet, &address, sizeof inet);
    return special4(ntohl(inet.sin_addr.s_addr));
  }
  if (address.sa_family != AF_INET6) return "no internet address";
  sockaddr_in6 inet6;
  std::memcpy(&inet6, &address, sizeof inet6);
  return special6(inet6.sin6_addr.s6_addr);
}

std::string address_text(const sockaddr& address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address.sa_family == AF_INET)
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof text);
  if (address.sa_family == AF_INET6)
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, text, sizeof text);
  return text;
}

}  // namespace streamvec
