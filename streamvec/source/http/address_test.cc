#include "streamvec/source/http/address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <string>

namespace streamvec {
namespace {

std::string_view special(const std::string& text) {
  sockaddr_in6 address6 = {};
  address6.sin6_family = AF_INET6;
  if (inet_pton(AF_INET6, text.c_str(), &address6.sin6_addr) == 1)
    return special_address(reinterpret_cast<const sockaddr&>(address6));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  EXPECT_EQ(inet_pton(AF_INET, text.c_str(), &address.sin_addr), 1) << text;
  return special_address(reinterpret_cast<const sockaddr&>(address));
}

TEST(SpecialAddress, NamesEveryRangeThatIsNotPublic) {
  const std::pair<const char*, const char*> cases[] = {{"0.0.0.0", "unspecified"},
                                                       {"0.1.2.3", "unspecified"},
                                                       {"10.0.0.1", "private"},
                                                       {"10.255.255.255", "private"},
                                                       {"100.64.0.1", "shared (carrier NAT)"},
                                                       {"100.127.255.255", "shared (carrier NAT)"},
                                                       {"127.0.0.1", "loopback"},
                                                       {"127.255.0.9", "loopback"},
                                                       {"169.254.169.254", "link-local"},
                                                       {"172.16.0.1", "private"},
                                                       {"172.31.255.255", "private"},
                                                       {"192.0.0.8", "reserved"},
                                                       {"192.0.2.1", "documentation"},
                                                       {"192.88.99.1", "reserved"},
                                                       {"192.168.1.1", "private"},
                                                       {"198.18.0.1", "reserved"},
                                                       {"198.19.255.255", "reserved"},
                                                       {"198.51.100.7", "documentation"},
                                                       {"203.0.113.7", "documentation"},
                                                       {"224.0.0.1", "multicast"},
                                                       {"239.1.1.1", "multicast"},
                                                       {"240.0.0.1", "reserved"},
                                                       {"255.255.255.255", "reserved"},
                                                       {"::", "unspecified"},
                                                       {"::1", "loopback"},
                                                       {"::ffff:127.0.0.1", "IPv4 inside IPv6"},
                                                       {"::ffff:8.8.8.8", "IPv4 inside IPv6"},
                                                       {"::127.0.0.1", "IPv4 inside IPv6"},
                                                       {"64:ff9b::7f00:1", "IPv4 inside IPv6"},
                                                       {"64:ff9b:1::a00:1", "IPv4 inside IPv6"},
                                                       {"100::1", "reserved"},
                                                       {"2001::1", "IPv4 inside IPv6"},
                                                       {"2001:10::1", "reserved"},
                                                       {"2001:db8::1", "documentation"},
                                                       {"2002:7f00:1::", "IPv4 inside IPv6"},
                                                       {"3fff::1", "documentation"},
                                                       {"5f00::1", "reserved"},
                                                       {"fc00::1", "private"},
                                                       {"fd12:3456::1", "private"},
                                                       {"fe80::1", "link-local"},
                                                       {"febf::1", "link-local"},
                                                       {"fec0::1", "private"},
                                                       {"ff02::1", "multicast"},
                                                       {"4000::1", "reserved"}};
  for (const auto& [address, what] : cases) EXPECT_EQ(special(address), what) << address;
}

TEST(SpecialAddress, PublicNeighboursOfThoseRangesArePublic) {
  for (const char* address :
       {"1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
        "169.253.255.255", "172.15.255.255", "172.32.0.0", "192.167.255.255", "198.17.255.255", "198.20.0.0",
        "223.255.255.255", "2001:200::1", "2606:4700::1111", "2003::1", "3ffe::1", "2a00::1"})
    EXPECT_EQ(special(address), "") << address;
}

TEST(SpecialAddress, OtherFamiliesAreNoInternet) {
  sockaddr_un local = {};
  local.sun_family = AF_UNIX;
  EXPECT_EQ(special_address(reinterpret_cast<const sockaddr&>(local)), "no internet address");
}

}  // namespace
}  // namespace streamvec
