// Hosts that mean harm: what a fetch never does, whatever it is answered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "streamvec/core/clock.h"
#include "streamvec/source/http/brotli_testing.h"
#include "streamvec/source/http/fetcher.h"
#include "streamvec/source/http/http_testing.h"
#include "streamvec/source/testing_files.h"

namespace streamvec {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Lt;
TEST(Fetcher, ABombEndsAtTheLimitOfDecodedBytes) {
  ScriptedServer server;
  Fetcher::Options options = testing_fetch_options();
  options.body_bytes_max = 1 << 20;
  const std::string zeros(64 << 20, '\0');
  server.set("/gzip", {.body = gzip_bytes(zeros), .headers = {"Content-Encoding: gzip"}});
  server.set("/br", {.body = brotli_bytes(zeros), .headers = {"Content-Encoding: br"}});
  server.set("/zstd", {.body = zstd_bytes(zeros), .headers = {"Content-Encoding: zstd"}});
  for (const std::string target : {"/gzip", "/br", "/zstd"}) {
    const FetchResponse response = fetch(server.url(target), options);
    EXPECT_EQ(response.status.code(), Code::kResourceExhausted) << target << response.status.message();
    EXPECT_LT(response.bytes, 1 << 20);
    EXPECT_TRUE(response.body.empty());
  }
}

TEST(Fetcher, ABodyOfExactlyTheLimitIsRead) {
  ScriptedServer server;
  Fetcher::Options options = testing_fetch_options();
  options.body_bytes_max = 100'000;
  server.set("/fits", {.body = std::string(100'000, 'x')});
  server.set("/over", {.body = std::string(100'001, 'x')});
  server.set("/fits-gzip", {.body = gzip_bytes(std::string(100'000, 'x')), .headers = {"Content-Encoding: gzip"}});
  server.set("/over-gzip", {.body = gzip_bytes(std::string(100'001, 'x')), .headers = {"Content-Encoding: gzip"}});
  EXPECT_EQ(fetch(server.url("/fits"), options).body.size(), 100'000u);
  EXPECT_EQ(fetch(server.url("/fits-gzip"), options).body.size(), 100'000u);
  EXPECT_EQ(fetch(server.url("/over"), options).status.code(), Code::kResourceExhausted);
  EXPECT_EQ(fetch(server.url("/over-gzip"), options).status.code(), Code::kResourceExhausted);
}

TEST(Fetcher, AnEndlessBodyEndsAtTheLimit) {
  ScriptedServer server;
  server.set("/", {.body = std::string(64 << 10, 'x'), .endless = true});
  const FetchResponse response = fetch(server.url());
  EXPECT_EQ(response.status.code(), Code::kResourceExhausted);
  EXPECT_THAT(response.bytes, AllOf(Gt(int64_t{8} << 20), Lt(int64_t{9} << 20)));
}

TEST(Fetcher, ADripEndsAtTheTimeout) {
  ScriptedServer server;
  Fetcher::Options options = testing_fetch_options();
  options.timeout = milliseconds(200);
  server.set("/", {.body = std::string(100'000, 'x'), .drip = milliseconds(10)});
  const Clock::time_point begin = Clock::now();
  const FetchResponse response = fetch(server.url(), options);
  EXPECT_EQ(response.status.code(), Code::kDeadlineExceeded) << response.status.message();
  EXPECT_LT(seconds_since(begin), 60) << "all of it would take a quarter of an hour";
}

TEST(Fetcher, TheTimeoutCoversAllRedirectsTogether) {
  ScriptedServer server;
  Fetcher::Options options = testing_fetch_options();
  options.timeout = milliseconds(400);
  for (const char* step : {"/1", "/2", "/3", "/4"})
    server.set(
        step,
        {.status = 302, .headers = {"Location: /" + std::to_string(step[1] - '0' + 1)}, .wait = milliseconds(150)});
  EXPECT_EQ(fetch(server.url("/1"), options).status.code(), Code::kDeadlineExceeded);
}

TEST(Fetcher, AFloodOfHeadersEndsAtTheLimit) {
  ScriptedServer server;
  std::vector<std::string> headers;
  for (int i = 0; i < 5'000; ++i) headers.push_back("X-Flood-" + std::to_string(i) + ": " + std::string(50, 'x'));
  server.set("/many", {.body = "x", .headers = headers});
  server.set("/long", {.body = "x", .headers = {"X-Long: " + std::string(90'000, 'x')}});
  std::string interim;
  for (int i = 0; i < 5'000; ++i) interim += "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n";
  server.set("/interim", {.raw = interim + "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"});
  for (const std::string target : {"/many", "/long", "/interim"})
    EXPECT_EQ(fetch(server.url(target)).status.code(), Code::kResourceExhausted) << target;
}

TEST(Fetcher, FollowsFiveRedirectsAndNotSix) {
  ScriptedServer server;
  for (int i = 0; i < 10; ++i)
    server.set("/" + std::to_string(i), {.status = 301, .headers = {"Location: " + std::to_string(i + 1)}});
  server.page("/10", "arrived");
  const FetchResponse five = fetch(server.url("/5"));
  ASSERT_TRUE(five.status.ok()) << five.status.message();
  EXPECT_EQ(five.body, "arrived");
  EXPECT_EQ(five.url.text, server.url("/10"));
  const FetchResponse six = fetch(server.url("/4"));
  EXPECT_EQ(six.status.code(), Code::kFailedPrecondition);
  EXPECT_THAT(six.status.message(), HasSubstr("redirects"));
}

TEST(Fetcher, ALoopOfRedirectsEnds) {
  ScriptedServer server;
  server.set("/a", {.status = 302, .headers = {"Location: /b"}});
  server.set("/b", {.status = 302, .headers = {"Location: /a"}});
  EXPECT_EQ(fetch(server.url("/a")).status.code(), Code::kFailedPrecondition);
  EXPECT_EQ(server.count("/a") + server.count("/b"), 6u);
}

TEST(Fetcher, RedirectsToOtherSchemesAndCredentialsAreRefused) {
  ScriptedServer server;
  for (const char* to : {"file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1:70/", "scp://127.0.0.1/x",
                         "http://user:secret@127.0.0.1/", "javascript:alert(1)"}) {
    server.set("/", {.status = 302, .headers = {"Location: " + std::string(to)}});
    const FetchResponse response = fetch(server.url());
    EXPECT_EQ(response.status.code(), Code::kInvalidArgument) << to;
    EXPECT_TRUE(response.body.empty());
  }
}

TEST(Fetcher, PrivateAddressesAreRefusedInEverySpelling) {
  ScriptedServer server;
  server.page("/", "secret");
  Fetcher::Options options = testing_fetch_options();
  options.private_hosts.clear();
  const std::string port = ":" + std::to_string(server.port()) + "/";
  for (const char* host : {"127.0.0.1",
                           "127.1",
                           "2130706433",
                           "0x7f000001",
                           "0177.0.0.1",
                           "0x7f.0.0.1",
                           "017700000001",
                           "localhost",
                           "LOCALHOST",
                           "localhost.",
                           "127.0.0.1.",
                           "0.0.0.0",
                           "0",
                           "[::1]",
                           "[::]",
                           "[::ffff:127.0.0.1]",
                           "[::ffff:7f00:1]",
                           "[0:0:0:0:0:ffff:127.0.0.1]",
                           "[::127.0.0.1]",
                           "[64:ff9b::7f00:1]",
                           "[2002:7f00:1::]",
                           "10.0.0.1",
                           "192.168.0.1",
                           "172.16.0.1",
                           "169.254.169.254",
                           "100.64.0.1",
                           "224.0.0.1",
                           "255.255.255.255",
                           "[fe80::1]",
                           "[fd00::1]",
                           "[ff02::1]",
                           "127。0。0。1",
                           "①②⑦.⓪.⓪.①",
                           "%31%32%37.0.0.1"}) {
    const Result<Url> url = Url::parse("http://" + std::string(host) + port);
    if (!url.ok()) continue;  // refused before it is a URL
    const FetchResponse response = fetch(url->text, options);
    EXPECT_FALSE(response.status.ok()) << host;
    EXPECT_TRUE(response.body.empty()) << host;
  }
  EXPECT_EQ(fetch(server.url(), options).status.code(), Code::kPermissionDenied);
  EXPECT_THAT(fetch("http://localhost" + port, options).status.message(), HasSubstr("loopback"));
  EXPECT_TRUE(server.requests().empty());
}

TEST(Fetcher, ARedirectToAPrivateAddressIsRefused) {
  ScriptedServer outside, inside;
  inside.page("/", "secret");
  Fetcher::Options options = testing_fetch_options();
  options.private_hosts = {outside.host()};
  for (const std::string& to : {inside.url(), "http://localhost:" + std::to_string(inside.port()) + "/",
                                "http://[::ffff:127.0.0.1]:" + std::to_string(inside.port()) + "/"}) {
    outside.set("/", {.status = 302, .headers = {"Location: " + to}});
    const FetchResponse response = fetch(outside.url(), options);
    EXPECT_EQ(response.status.code(), Code::kPermissionDenied) << to;
    EXPECT_TRUE(response.body.empty());
  }
  EXPECT_TRUE(inside.requests().empty());
}

TEST(Fetcher, ANameThatIsReboundToAPrivateAddressIsRefused) {
  ScriptedServer inside;
  inside.page("/", "secret");
  Fetcher::Options options = testing_fetch_options();
  options.private_hosts.clear();
  options.robots = false;
  options.timeout = options.connect_timeout = milliseconds(150);
  // First a public address, which does not answer here; then loopback; then both at once.
  auto asked = std::make_shared<int>(0);
  options.resolve = [asked](const std::string& host) -> std::string {
    EXPECT_EQ(host, "rebound.example");
    const char* answers[] = {"203.0.113.1", "127.0.0.1", "[::1],127.0.0.1", "[::ffff:127.0.0.1]"};
    return answers[std::min((*asked)++, 3)];
  };
  Fetcher fetcher(options);
  Fetcher::Channel channel(fetcher);
  const FetchRequest request = {.url = url_of("http://rebound.example:" + std::to_string(inside.port()) + "/")};
  for (int i = 0; i < 5; ++i) {
    const FetchResponse response = channel.get(request, Deadline::after(std::chrono::seconds(5)));
    EXPECT_EQ(response.status.code(), Code::kPermissionDenied) << response.status.message();
    EXPECT_NE(response.status.message().find("--allow-private rebound.example"), std::string::npos)
        << response.status.message();
  }
  EXPECT_TRUE(inside.requests().empty());
}

TEST(Fetcher, AHostIsAllowedByItsNameAndPortAlone) {
  ScriptedServer allowed, other;
  allowed.page("/", "open");
  other.page("/", "secret");
  Fetcher::Options options = testing_fetch_options();
  options.private_hosts = {allowed.host()};
  EXPECT_EQ(fetch(allowed.url(), options).body, "open");
  EXPECT_EQ(fetch(other.url(), options).status.code(), Code::kPermissionDenied);
  options.private_hosts = {"127.0.0.1"};
  EXPECT_EQ(fetch(other.url(), options).body, "secret");
}

TEST(Fetcher, ProxiesOfTheEnvironmentAreNotUsed) {
  ScriptedServer proxy, server;
  server.page("/", "direct");
  ::setenv("http_proxy", proxy.url().c_str(), 1);
  ::setenv("ALL_PROXY", proxy.url().c_str(), 1);
  EXPECT_EQ(fetch(server.url()).body, "direct");
  ::unsetenv("http_proxy");
  ::unsetenv("ALL_PROXY");
  EXPECT_TRUE(proxy.requests().empty());
}

}  // namespace
}  // namespace streamvec
