#include "streamvec/core/address.h"

#include <gmock/gmock.h>

namespace streamvec {
namespace {

TEST(WithoutCredentials, LeavesOutWhatStandsBeforeTheHost) {
  EXPECT_EQ(without_credentials("nats://user:secret@host:4222/x"), "nats://host:4222/x");
  EXPECT_EQ(without_credentials("https://token@host"), "https://host");
  EXPECT_EQ(without_credentials("https://a@b:c@host/?q=1"), "https://host/?q=1");
}

TEST(WithoutCredentials, LeavesTheRestAsItIs) {
  for (const char* name : {"", "-", "corpus.txt", "me@host", "https://host/a@b", "https://host?x=a@b", "://", "a://"})
    EXPECT_EQ(without_credentials(name), name);
}

TEST(WithoutCredentials, FindsEveryAddressOfAMessage) {
  EXPECT_EQ(without_credentials("cannot reach nats://me:secret@h/s (then \"http://u@g\"), ask admin@h"),
            "cannot reach nats://h/s (then \"http://g\"), ask admin@h");
}

TEST(Loopback, IsWhatOnlyThisMachineCanReach) {
  for (const char* host : {"localhost", "127.0.0.1", "127.9.9.9", "::1"}) EXPECT_TRUE(is_loopback(host)) << host;
  for (const char* host : {"0.0.0.0", "::", "10.0.0.1", "127.evil.example", "localhost.example", ""})
    EXPECT_FALSE(is_loopback(host)) << host;
}

TEST(HostPort, HasAHostAndAPort) {
  const auto six = parse_host_port("[::1]:80");
  ASSERT_TRUE(six.ok());
  EXPECT_EQ(six->host, "::1");
  EXPECT_EQ(six->port, 80);
  for (const char* bad : {"", "host", "host:", ":80", "host:65536", "host:8x", "::1:80"})
    EXPECT_EQ(parse_host_port(bad).status().code(), Code::kInvalidArgument) << bad;
}

}  // namespace
}  // namespace streamvec
