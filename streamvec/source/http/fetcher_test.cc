#include "streamvec/source/http/fetcher.h"

#include <brotli/encode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "streamvec/source/http/http_testing.h"
#include "streamvec/source/testing_servers.h"

namespace streamvec {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Lt;
using Clock = std::chrono::steady_clock;

std::string brotli_bytes(const std::string& text) {
  size_t size = BrotliEncoderMaxCompressedSize(text.size()) + 64;
  std::string out(size, '\0');
  EXPECT_TRUE(BrotliEncoderCompress(5, BROTLI_DEFAULT_WINDOW, BROTLI_MODE_TEXT, text.size(),
                                    reinterpret_cast<const uint8_t*>(text.data()), &size,
                                    reinterpret_cast<uint8_t*>(out.data())));
  out.resize(size);
  return out;
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

TEST(Fetcher, FetchesAPageAsAnHonestClient) {
  ScriptedServer server;
  server.set(
      "/page?x=1",
      {.body = "hello", .headers = {"Content-Type: text/plain", "ETag: \"v1\"", "Cache-Control: public, max-age=600"}});
  const FetchResponse response = fetch(server.url("/page?x=1#part"));
  ASSERT_TRUE(response.status.ok()) << response.status.message();
  EXPECT_EQ(response.body, "hello");
  EXPECT_EQ(response.http_status, 200);
  EXPECT_EQ(response.content_type, "text/plain");
  EXPECT_EQ(response.etag, "\"v1\"");
  EXPECT_EQ(response.max_age_s, 600);
  EXPECT_EQ(response.url.text, server.url("/page?x=1"));
  EXPECT_THAT(response.robots, HasSubstr("404"));
  const ScriptedRequest request = server.requests("/page?x=1").at(0);
  EXPECT_THAT(request.header("User-Agent"), ::testing::StartsWith("streamvec/"));
  EXPECT_EQ(request.header("Accept-Encoding"), "gzip, br, zstd");
  EXPECT_EQ(request.header("Cookie"), "");
  EXPECT_EQ(request.header("Authorization"), "");
}

TEST(Fetcher, SpeaksHttp2OverTlsWhereTheHostOffersIt) {
  ScriptedServer server;
  const std::string text = sample_text(300'000);
  server.set("/page", {.body = gzip_bytes(text), .headers = {"Content-Encoding: gzip", "ETag: \"v2\""}});
  server.set("/moved", {.status = 301, .headers = {"Location: /page"}});
  const TestCertificate certificate;
  ServerProcess front(tls_front(certificate, server.port()));
  Fetcher::Options options = testing_fetch_options();
  options.ca = certificate.certificate();
  Fetcher fetcher(options);
  Fetcher::Channel channel(fetcher);
  const Url url = url_of("https://" + front.authority() + "/moved");
  for (int i = 0; i < 3; ++i) {
    const FetchResponse response = channel.get({.url = url}, Deadline::after(std::chrono::seconds(10)));
    ASSERT_TRUE(response.status.ok()) << response.status.message();
    EXPECT_EQ(response.http_version, 2);
    EXPECT_EQ(response.http_status, 200);
    EXPECT_EQ(response.body, text);
    EXPECT_EQ(response.etag, "\"v2\"");
  }
  EXPECT_EQ(fetch(server.url("/page")).http_version, 1) << "without TLS nobody offers it";
}

TEST(Fetcher, AHostThatNobodyVouchesForIsNotRead) {
  ScriptedServer server;
  server.page("/", "secret");
  const TestCertificate certificate, other;
  ServerProcess front(tls_front(certificate, server.port()));
  Fetcher::Options options = testing_fetch_options();
  for (const std::string& ca : {std::string(), other.certificate()}) {
    options.ca = ca;
    const FetchResponse response = fetch("https://" + front.authority() + "/", options);
    EXPECT_FALSE(response.status.ok());
    EXPECT_TRUE(response.body.empty());
  }
  EXPECT_EQ(server.requests().size(), 0u);
}

TEST(Fetcher, DecodesGzipBrotliAndZstd) {
  ScriptedServer server;
  const std::string text = sample_text(300'000);
  server.set("/gzip", {.body = gzip_bytes(text), .headers = {"Content-Encoding: gzip"}});
  server.set("/br", {.body = brotli_bytes(text), .headers = {"Content-Encoding: br"}});
  server.set("/zstd", {.body = zstd_bytes(text), .headers = {"Content-Encoding: zstd"}});
  for (const std::string target : {"/gzip", "/br", "/zstd"}) {
    const FetchResponse response = fetch(server.url(target));
    ASSERT_TRUE(response.status.ok()) << response.status.message();
    EXPECT_EQ(response.body, text) << target;
    EXPECT_LT(response.bytes, 200'000);
  }
}

TEST(Fetcher, ACompressedBodyCutShortOrDamagedIsDataLoss) {
  ScriptedServer server;
  const std::string text = sample_text(300'000);
  const std::pair<std::string, std::string> encodings[] = {
      {"gzip", gzip_bytes(text)}, {"br", brotli_bytes(text)}, {"zstd", zstd_bytes(text)}};
  for (const auto& [encoding, whole] : encodings) {
    server.set("/short", {.body = whole.substr(0, whole.size() / 2), .headers = {"Content-Encoding: " + encoding}});
    EXPECT_EQ(fetch(server.url("/short")).status.code(), Code::kDataLoss) << encoding;
    server.set("/plain", {.body = "this was never compressed", .headers = {"Content-Encoding: " + encoding}});
    EXPECT_EQ(fetch(server.url("/plain")).status.code(), Code::kDataLoss) << encoding;
  }
  server.set("/odd", {.body = "x", .headers = {"Content-Encoding: compress"}});
  EXPECT_THAT(fetch(server.url("/odd")).status.message(), HasSubstr("compress"));
}

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
  EXPECT_LT(seconds_since(begin), 3.0);
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

TEST(Fetcher, AsksOnlyForWhatChanged) {
  ScriptedServer server;
  server.handle("/", [](const ScriptedRequest& request) -> ScriptedAnswer {
    const bool same = request.header("If-None-Match") == "\"v1\"" &&
                      request.header("If-Modified-Since") == "Wed, 01 May 2024 12:00:00 GMT";
    return {.status = same ? 304 : 200, .body = same ? "" : "content"};
  });
  Fetcher fetcher(testing_fetch_options());
  Fetcher::Channel channel(fetcher);
  const Deadline deadline = Deadline::after(std::chrono::seconds(5));
  EXPECT_EQ(channel.get({.url = url_of(server.url())}, deadline).body, "content");
  const FetchResponse same = channel.get(
      {.url = url_of(server.url()), .etag = "\"v1\"", .last_modified = "Wed, 01 May 2024 12:00:00 GMT"}, deadline);
  EXPECT_TRUE(same.status.ok());
  EXPECT_EQ(same.http_status, 304);
}

TEST(Fetcher, StatusesBecomeCodes) {
  ScriptedServer server;
  const std::pair<int, Code> cases[] = {
      {404, Code::kNotFound},         {410, Code::kNotFound},          {401, Code::kPermissionDenied},
      {403, Code::kPermissionDenied}, {451, Code::kPermissionDenied},  {418, Code::kFailedPrecondition},
      {408, Code::kUnavailable},      {429, Code::kUnavailable},       {500, Code::kUnavailable},
      {503, Code::kUnavailable},      {304, Code::kFailedPrecondition}};
  for (const auto& [status, code] : cases) {
    server.set("/", {.status = status});
    EXPECT_EQ(fetch(server.url()).status.code(), code) << status;
  }
}

TEST(Fetcher, ResetsGarbageAndAnswersCutShortAreErrorsOfThatFetch) {
  ScriptedServer server;
  server.set("/reset", {.body = std::string(10'000, 'x'), .reset = true});
  server.set("/short", {.body = "half", .length = 100});
  server.set("/garbage", {.raw = std::string("\x01\x02\x03 this is no HTTP\r\n\r\n")});
  server.set("/nothing", {.raw = "\r\n"});
  server.set("/status", {.raw = "HTTP/1.1 200 OK\r\n"});
  server.set("/headers", {.raw = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Le"});
  for (const std::string target : {"/reset", "/short", "/garbage", "/nothing", "/status", "/headers"}) {
    const FetchResponse response = fetch(server.url(target));
    EXPECT_TRUE(response.status.code() == Code::kUnavailable || response.status.code() == Code::kDataLoss)
        << target << " " << response.status.message();
    EXPECT_TRUE(response.body.empty());
  }
}

TEST(Fetcher, AHostIsAskedOneAtATimeWithADelay) {
  ScriptedServer server;
  server.set("/robots.txt", {.status = 404});
  Fetcher::Options options = testing_fetch_options();
  options.host_delay = milliseconds(60);
  for (int i = 0; i < 5; ++i) server.set("/" + std::to_string(i), {.body = "x", .wait = milliseconds(10)});
  Fetcher fetcher(options);
  Fetcher::Channel one(fetcher), two(fetcher);  // two users share the host's delay
  for (int i = 0; i < 5; ++i) (i % 2 == 0 ? one : two).submit({.url = url_of(server.url("/" + std::to_string(i)))});
  for (int i = 0; i < 5; ++i) ASSERT_TRUE((i % 2 == 0 ? one : two).take(Deadline::after(std::chrono::seconds(5))));
  EXPECT_EQ(server.connections_most(), 1);
  const std::vector<ScriptedRequest> requests = server.requests();
  ASSERT_EQ(requests.size(), 6u);
  for (size_t i = 1; i < requests.size(); ++i)
    EXPECT_GE(requests[i].began - requests[i - 1].began, milliseconds(40)) << i;
}

TEST(Fetcher, HostsDoNotWaitForEachOther) {
  ScriptedServer slow, quick;
  slow.set("/", {.body = "slow", .wait = milliseconds(1'500)});
  quick.page("/", "quick");
  Fetcher fetcher(testing_fetch_options());
  Fetcher::Channel channel(fetcher);
  channel.submit({.url = url_of(slow.url())});
  channel.submit({.url = url_of(quick.url())});
  EXPECT_EQ(channel.take(Deadline::after(std::chrono::seconds(5)))->body, "quick");
  EXPECT_EQ(channel.take(Deadline::after(std::chrono::seconds(5)))->body, "slow");
}

TEST(Fetcher, RetryAfterIsKeptToInSecondsAndAsADate) {
  const auto date = [](int seconds) {
    const std::time_t time = std::time(nullptr) + seconds;
    char text[64];
    std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", std::gmtime(&time));
    return std::string(text);
  };
  ScriptedServer server;
  server.set("/seconds", {.status = 429, .headers = {"Retry-After: 100"}});
  server.set("/date", {.status = 503, .headers = {"Retry-After: " + date(200)}});
  server.set("/years", {.status = 503, .headers = {"Retry-After: 999999999999"}});
  server.set("/past", {.status = 503, .headers = {"Retry-After: " + date(-200)}});
  server.set("/nonsense", {.status = 503, .headers = {"Retry-After: later"}});
  EXPECT_THAT(fetch(server.url("/seconds")).host_wait_s, AllOf(Gt(99), Lt(100.1)));
  EXPECT_THAT(fetch(server.url("/date")).host_wait_s, AllOf(Gt(197), Lt(200.1)));
  EXPECT_THAT(fetch(server.url("/years")).host_wait_s, AllOf(Gt(3'599), Lt(3'600.1)));
  EXPECT_LT(fetch(server.url("/past")).host_wait_s, 1);
  EXPECT_LT(fetch(server.url("/nonsense")).host_wait_s, 1);
}

TEST(Fetcher, WaitsGrowWithFailuresInARowAndASuccessEndsThem) {
  ScriptedServer server;
  Fetcher::Options options = testing_fetch_options();
  options.backoff_first = milliseconds(50);
  options.backoff_max = milliseconds(200);
  server.set("/", {.status = 500});
  server.page("/well", "well");
  Fetcher fetcher(options);
  Fetcher::Channel channel(fetcher);
  std::vector<double> waits;
  for (int i = 0; i < 4; ++i)
    waits.push_back(channel.get({.url = url_of(server.url())}, Deadline::after(std::chrono::seconds(5))).host_wait_s);
  // Each lies between half its full length and that; a little time has passed when it is read.
  const double full[] = {.05, .1, .2, .2};
  for (size_t i = 0; i < 4; ++i) EXPECT_THAT(waits[i], AllOf(Gt(full[i] / 2 - .02), Lt(full[i] + .001)));
  const FetchResponse well =
      channel.get({.url = url_of(server.url("/well"))}, Deadline::after(std::chrono::seconds(5)));
  EXPECT_TRUE(well.host_answers);
  EXPECT_LT(well.host_wait_s, .02);
}

TEST(Fetcher, AnotherSeedGivesOtherWaits) {
  ScriptedServer server;
  server.set("/", {.status = 500});
  Fetcher::Options options = testing_fetch_options();
  options.backoff_first = milliseconds(30'000);
  options.backoff_max = milliseconds(30'000);
  const double first = fetch(server.url(), options).host_wait_s, again = fetch(server.url(), options).host_wait_s;
  options.seed = 2;
  EXPECT_NEAR(first, again, .5);
  EXPECT_GT(std::abs(first - fetch(server.url(), options).host_wait_s), .5);
}

TEST(Fetcher, RobotsTxtIsReadOnceAndObeyed) {
  ScriptedServer server;
  server.set("/robots.txt", {.body = "User-agent: streamvec\nDisallow: /private\n"});
  server.page("/private/x", "private");
  server.page("/public", "public");
  server.set("/moved", {.status = 302, .headers = {"Location: /private/x"}});
  Fetcher fetcher(testing_fetch_options());
  Fetcher::Channel channel(fetcher);
  const auto get = [&](const std::string& target) {
    return channel.get({.url = url_of(server.url(target))}, Deadline::after(std::chrono::seconds(5)));
  };
  EXPECT_EQ(get("/public").robots, "allowed by robots.txt");
  EXPECT_EQ(get("/private/x").status.code(), Code::kPermissionDenied);
  EXPECT_EQ(get("/p%72ivate/x").status.code(), Code::kPermissionDenied);
  EXPECT_EQ(get("/public/%2e%2e/private/x").status.code(), Code::kPermissionDenied);
  EXPECT_EQ(get("/moved").status.code(), Code::kPermissionDenied);  // a hop is a request like any other
  EXPECT_EQ(server.count("/robots.txt"), 1u);
  EXPECT_EQ(server.count("/private/x"), 0u);
}

TEST(Fetcher, RobotsTxtThatIsNotThereAllowsAndOneThatFailsForbids) {
  const std::pair<int, bool> cases[] = {{404, true},  {403, true},  {410, true},
                                        {429, false}, {500, false}, {503, false}};
  for (const auto& [status, allowed] : cases) {
    ScriptedServer server;
    server.set("/robots.txt", {.status = status});
    server.page("/", "page");
    const FetchResponse response = fetch(server.url());
    EXPECT_EQ(response.status.ok(), allowed) << status;
    if (!allowed) {
      EXPECT_EQ(response.status.code(), Code::kUnavailable);
      EXPECT_THAT(response.status.message(), HasSubstr("robots.txt"));
    }
    EXPECT_EQ(server.count("/"), allowed ? 1u : 0u) << status;
  }
}

TEST(Fetcher, RobotsTxtThatTakesTooLongForbids) {
  ScriptedServer server;
  server.set("/robots.txt", {.body = "User-agent: *\n", .wait = milliseconds(2'000)});
  server.page("/", "page");
  Fetcher::Options options = testing_fetch_options();
  options.timeout = milliseconds(150);
  EXPECT_EQ(fetch(server.url(), options).status.code(), Code::kUnavailable);
  EXPECT_EQ(server.count("/"), 0u);
}

TEST(Fetcher, AHostIsReadAgainOnceItsRobotsTxtIsWell) {
  ScriptedServer server;
  server.sequence("/robots.txt", {{.status = 500}, {.status = 200, .body = "User-agent: *\nAllow: /\n"}});
  server.page("/", "page");
  Fetcher fetcher(testing_fetch_options());
  Fetcher::Channel channel(fetcher);
  const FetchRequest request = {.url = url_of(server.url())};
  EXPECT_EQ(channel.get(request, Deadline::after(std::chrono::seconds(5))).status.code(), Code::kUnavailable);
  EXPECT_EQ(channel.get(request, Deadline::after(std::chrono::seconds(5))).body, "page");
}

TEST(Fetcher, RobotsTxtIsFollowedThroughFiveRedirectsAndToOtherHosts) {
  ScriptedServer server, other;
  server.set("/robots.txt", {.status = 301, .headers = {"Location: " + other.url("/1")}});
  for (int i = 1; i < 5; ++i)
    other.set("/" + std::to_string(i), {.status = 302, .headers = {"Location: /" + std::to_string(i + 1)}});
  other.set("/5", {.body = "User-agent: *\nDisallow: /private\n"});
  server.page("/private", "private");
  EXPECT_EQ(fetch(server.url("/private")).status.code(), Code::kPermissionDenied);
  other.set("/5", {.status = 302, .headers = {"Location: /6"}});
  EXPECT_THAT(fetch(server.url("/private")).robots, HasSubstr("redirects too often"));
}

TEST(Fetcher, ALargeRobotsTxtIsReadUpToItsLimit) {
  ScriptedServer server;
  server.set("/robots.txt",
             {.body = "User-agent: *\nDisallow: /private\n" + std::string(1 << 20, '#'), .endless = true});
  server.page("/private", "private");
  server.page("/", "page");
  EXPECT_EQ(fetch(server.url("/private")).status.code(), Code::kPermissionDenied);
  EXPECT_EQ(fetch(server.url()).body, "page");
}

TEST(Fetcher, RulesAreAskedForAgainWhenTheyAreOldAndKeptWhileTheyCannotBeHad) {
  ScriptedServer server;
  server.sequence("/robots.txt", {{.body = "User-agent: *\nDisallow: /private\n"}, {.status = 500}});
  server.page("/", "page");
  server.page("/private", "private");
  Fetcher::Options options = testing_fetch_options();
  options.robots_lifetime = milliseconds(1);
  Fetcher fetcher(options);
  Fetcher::Channel channel(fetcher);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(channel.get({.url = url_of(server.url())}, Deadline::after(std::chrono::seconds(5))).body, "page");
    EXPECT_EQ(
        channel.get({.url = url_of(server.url("/private"))}, Deadline::after(std::chrono::seconds(5))).status.code(),
        Code::kPermissionDenied);
  }
  EXPECT_EQ(server.count("/robots.txt"), 2u);
  EXPECT_EQ(server.count("/private"), 0u);
}

TEST(Fetcher, CrawlDelayIsHonouredUpToItsLimit) {
  ScriptedServer server;
  server.page("/", "page");
  server.set("/robots.txt", {.body = "User-agent: *\nCrawl-delay: 0.3\n"});
  EXPECT_THAT(fetch(server.url()).host_wait_s, AllOf(Gt(.2), Lt(.3001)));
  server.set("/robots.txt", {.body = "User-agent: *\nCrawl-delay: 86400\n"});
  Fetcher::Options options = testing_fetch_options();
  options.crawl_delay_max = milliseconds(200);
  EXPECT_THAT(fetch(server.url(), options).host_wait_s, AllOf(Gt(.1), Lt(.2001)));
}

TEST(Fetcher, CrawlDelayIsNotForgottenWhileAHostIsIdle) {
  ScriptedServer server;
  server.page("/", "page");
  server.set("/robots.txt", {.body = "User-agent: *\nCrawl-delay: 0.1\n"});
  Fetcher fetcher(testing_fetch_options());
  Fetcher::Channel channel(fetcher);
  const Deadline deadline = Deadline::after(std::chrono::seconds(5));
  EXPECT_TRUE(channel.get({.url = url_of(server.url())}, deadline).status.ok());
  std::this_thread::sleep_for(milliseconds(250));
  channel.submit({.url = url_of("http://127.0.0.1:1/")});  // wakes it, so that it forgets what is idle
  EXPECT_TRUE(channel.take(deadline));
  EXPECT_GT(channel.get({.url = url_of(server.url())}, deadline).host_wait_s, .05);
}

TEST(Fetcher, EndsAtOnceWithTransfersUnderWay) {
  ScriptedServer server;
  server.set("/", {.body = std::string(100'000, 'x'), .drip = milliseconds(10)});
  const Clock::time_point begin = Clock::now();
  {
    Fetcher fetcher(testing_fetch_options());
    Fetcher::Channel channel(fetcher);
    channel.submit({.url = url_of(server.url())});
    EXPECT_FALSE(channel.take(Deadline::after(milliseconds(100))));
  }
  EXPECT_LT(seconds_since(begin), 2.0);
}

TEST(Fetcher, AClosedChannelLetsTheNextOneIn) {
  ScriptedServer server;
  server.set("/drip", {.body = std::string(100'000, 'x'), .drip = milliseconds(10)});
  server.page("/", "page");
  Fetcher fetcher(testing_fetch_options());
  {
    Fetcher::Channel leaving(fetcher);
    leaving.submit({.url = url_of(server.url("/drip"))});
    leaving.submit({.url = url_of(server.url("/drip?2"))});
    EXPECT_FALSE(leaving.take(Deadline::after(milliseconds(50))));
  }
  Fetcher::Channel channel(fetcher);
  EXPECT_EQ(channel.get({.url = url_of(server.url())}, Deadline::after(std::chrono::seconds(2))).body, "page");
  EXPECT_EQ(server.count("/drip?2"), 0u);
}

}  // namespace
}  // namespace streamvec
