// Politeness: one at a time, delays, waits after failures, robots.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "streamvec/source/http/fetcher.h"
#include "streamvec/source/http/http_testing.h"

namespace streamvec {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Lt;

TEST(Fetcher, AHostIsAskedOneAtATimeWithADelay) {
  ScriptedServer server;
  server.set("/robots.txt", {.status = 404});
  Fetcher::Options options = testing_fetch_options();
  options.host_delay = milliseconds(60);
  for (int i = 0; i < 5; ++i) server.set("/" + std::to_string(i), {.body = "x", .wait = milliseconds(10)});
  // Once: where the server hears of a request late, the next one follows it sooner.
  EXPECT_TRUE(holds_once([&] {
    Fetcher fetcher(options);
    Fetcher::Channel one(fetcher), two(fetcher);  // two users share the host's delay
    const size_t before = server.requests().size();
    for (int i = 0; i < 5; ++i) (i % 2 == 0 ? one : two).submit({.url = url_of(server.url("/" + std::to_string(i)))});
    for (int i = 0; i < 5; ++i) EXPECT_TRUE((i % 2 == 0 ? one : two).take(Deadline::after(std::chrono::seconds(30))));
    EXPECT_EQ(server.connections_most(), 1);
    const std::vector<ScriptedRequest> requests = server.requests();
    EXPECT_EQ(requests.size(), before + 6);
    bool apart = true;
    for (size_t i = before + 1; i < requests.size(); ++i)
      apart = apart && requests[i].began - requests[i - 1].began >= milliseconds(40);
    return apart;
  }));
}

TEST(Fetcher, HostsDoNotWaitForEachOther) {
  ScriptedServer slow, quick;
  slow.set("/", {.body = "slow", .wait = milliseconds(3'000)});
  quick.page("/", "quick");
  Fetcher fetcher(testing_fetch_options());
  Fetcher::Channel channel(fetcher);
  channel.submit({.url = url_of(slow.url())});
  channel.submit({.url = url_of(quick.url())});
  EXPECT_EQ(channel.take(Deadline::after(std::chrono::seconds(30)))->body, "quick");
  EXPECT_EQ(channel.take(Deadline::after(std::chrono::seconds(30)))->body, "slow");
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
  // Each lies between half its full length and that; a little time has passed when it is read.
  EXPECT_TRUE(holds_once([&] {
    Fetcher fetcher(options);
    Fetcher::Channel channel(fetcher);
    bool long_enough = true;
    for (const double full : {.05, .1, .2, .2}) {
      const double wait =
          channel.get({.url = url_of(server.url())}, Deadline::after(std::chrono::seconds(30))).host_wait_s;
      EXPECT_LT(wait, full + .001);
      long_enough = long_enough && wait > full / 2 - .02;
    }
    const FetchResponse well =
        channel.get({.url = url_of(server.url("/well"))}, Deadline::after(std::chrono::seconds(30)));
    EXPECT_TRUE(well.host_answers);
    EXPECT_LT(well.host_wait_s, .02);
    return long_enough;
  }));
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
    return channel.get({.url = url_of(server.url(target))}, Deadline::after(std::chrono::seconds(30)));
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
  EXPECT_EQ(channel.get(request, Deadline::after(std::chrono::seconds(30))).status.code(), Code::kUnavailable);
  EXPECT_EQ(channel.get(request, Deadline::after(std::chrono::seconds(30))).body, "page");
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
    EXPECT_EQ(channel.get({.url = url_of(server.url())}, Deadline::after(std::chrono::seconds(30))).body, "page");
    EXPECT_EQ(
        channel.get({.url = url_of(server.url("/private"))}, Deadline::after(std::chrono::seconds(30))).status.code(),
        Code::kPermissionDenied);
  }
  EXPECT_EQ(server.count("/robots.txt"), 2u);
  EXPECT_EQ(server.count("/private"), 0u);
}

TEST(Fetcher, CrawlDelayIsHonouredUpToItsLimit) {
  ScriptedServer server;
  server.page("/", "page");
  server.set("/robots.txt", {.body = "User-agent: *\nCrawl-delay: 0.3\n"});
  const auto waits = [&](const Fetcher::Options& options, double least, double most) {
    return holds_once([&] {
      const double wait = fetch(server.url(), options).host_wait_s;
      EXPECT_LT(wait, most + 1e-4);
      return wait > least;
    });
  };
  Fetcher::Options options = testing_fetch_options();
  EXPECT_TRUE(waits(options, .2, .3));
  server.set("/robots.txt", {.body = "User-agent: *\nCrawl-delay: 86400\n"});
  options.crawl_delay_max = milliseconds(200);
  EXPECT_TRUE(waits(options, .1, .2));
}

TEST(Fetcher, CrawlDelayIsNotForgottenWhileAHostIsIdle) {
  ScriptedServer server;
  server.page("/", "page");
  server.set("/robots.txt", {.body = "User-agent: *\nCrawl-delay: 0.1\n"});
  Fetcher fetcher(testing_fetch_options());
  Fetcher::Channel channel(fetcher);
  const Deadline deadline = Deadline::after(std::chrono::seconds(30));
  EXPECT_TRUE(channel.get({.url = url_of(server.url())}, deadline).status.ok());
  std::this_thread::sleep_for(milliseconds(250));
  channel.submit({.url = url_of("http://127.0.0.1:1/")});  // wakes it, so that it forgets what is idle
  EXPECT_TRUE(channel.take(deadline));
  EXPECT_TRUE(holds_once([&] { return channel.get({.url = url_of(server.url())}, deadline).host_wait_s > .05; }));
}

}  // namespace
}  // namespace streamvec
