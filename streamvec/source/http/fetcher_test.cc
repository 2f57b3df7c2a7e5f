#include "streamvec/source/http/fetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "streamvec/core/clock.h"
#include "streamvec/source/http/brotli_testing.h"
#include "streamvec/source/http/http_testing.h"
#include "streamvec/source/testing_files.h"
#include "streamvec/source/testing_servers.h"

namespace streamvec {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
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

TEST(Fetcher, ACertificateOfAnotherHostIsNotEnough) {
  ScriptedServer server;
  server.page("/", "secret");
  const TestCertificate certificate("DNS:elsewhere.example,IP:127.0.0.2");
  ServerProcess front(tls_front(certificate, server.port()));
  Fetcher::Options options = testing_fetch_options();
  options.ca = certificate.certificate();
  EXPECT_FALSE(fetch("https://" + front.authority() + "/", options).status.ok());
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
  EXPECT_LT(seconds_since(begin), 60) << "all of it would take a quarter of an hour";
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
  EXPECT_EQ(channel.get({.url = url_of(server.url())}, Deadline::after(std::chrono::seconds(30))).body, "page");
  EXPECT_EQ(server.count("/drip?2"), 0u);
}

}  // namespace
}  // namespace streamvec
