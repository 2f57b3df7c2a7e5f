#include "streamvec/serve/access.h"

#include <gtest/gtest.h>

#include <fstream>

namespace streamvec {
namespace {

constexpr const char* kQueryToken = "0123456789abcdef-query";
constexpr const char* kMetricsToken = "0123456789abcdef-metrics";
constexpr const char* kOldToken = "0123456789abcdef-old";
constexpr int64_t kNow = 1'000'000;

HttpRequest request_with(std::vector<NameAndText> headers) {
  HttpRequest request;
  request.method = "GET";
  request.headers = std::move(headers);
  return request;
}

Access with_tokens() {
  Access::Options options;
  options.tokens = {make_token(kQueryToken).value(), make_token(kMetricsToken, Role::kMetrics).value(),
                    make_token(kOldToken, Role::kQuery, kNow).value()};
  return Access(options);
}

TEST(Access, GivesEveryCallToAllWhereNothingIsAskedFor) {
  EXPECT_EQ(Access({}).role_of(request_with({}), Role::kNobody, kNow), Role::kQuery);
}

TEST(Access, GoesByTheTokenInHeaderOrCookie) {
  const Access access = with_tokens();
  const auto role = [&](std::vector<NameAndText> headers) {
    return access.role_of(request_with(std::move(headers)), Role::kNobody, kNow);
  };
  EXPECT_EQ(role({{"authorization", std::string("Bearer ") + kQueryToken}}), Role::kQuery);
  EXPECT_EQ(role({{"authorization", std::string("bearer ") + kMetricsToken}}), Role::kMetrics);
  EXPECT_EQ(role({{"cookie", std::string("a=b; streamvec_token=") + kQueryToken + "; c=d"}}), Role::kQuery);
  EXPECT_EQ(role({}), Role::kNobody);
  EXPECT_EQ(role({{"authorization", "Bearer "}}), Role::kNobody);
  EXPECT_EQ(role({{"authorization", std::string("Basic ") + kQueryToken}}), Role::kNobody);
  EXPECT_EQ(role({{"authorization", std::string("Bearer ") + kQueryToken + "x"}}), Role::kNobody);
  EXPECT_EQ(role({{"authorization", "Bearer 0123456789abcdef-quer"}}), Role::kNobody);
  EXPECT_EQ(role({{"cookie", std::string("xstreamvec_token=") + kQueryToken}}), Role::kNobody);
  EXPECT_EQ(role({{"authorization", "Bearer wrong"}, {"cookie", std::string("streamvec_token=") + kQueryToken}}),
            Role::kNobody)
      << "what is said aloud counts";
}

TEST(Access, ForgetsTokensThatHaveExpired) {
  const HttpRequest request = request_with({{"authorization", std::string("Bearer ") + kOldToken}});
  EXPECT_EQ(with_tokens().role_of(request, Role::kNobody, kNow - 1), Role::kQuery);
  EXPECT_EQ(with_tokens().role_of(request, Role::kNobody, kNow), Role::kNobody);
}

TEST(Access, KnowsUntilWhenATokenIsValid) {
  const Access access = with_tokens();
  const HttpRequest old = request_with({{"authorization", std::string("Bearer ") + kOldToken}});
  const HttpRequest lasting = request_with({{"cookie", std::string("streamvec_token=") + kQueryToken}});
  EXPECT_EQ(access.expiry_of(old, kNow - 1), kNow);
  EXPECT_EQ(access.expiry_of(lasting, kNow - 1), 0);
  EXPECT_EQ(access.expiry_of_authorization(std::string("Bearer ") + kOldToken, kNow - 1), kNow);
  EXPECT_EQ(access.expiry_of_authorization("Bearer wrong", kNow), 0);
}

TEST(Access, LeavesTheCookiesOfOtherPortsAlone) {
  Access access = with_tokens();
  access.use_port(8081);
  const auto role = [&](const std::string& cookies) {
    return access.role_of(request_with({{"cookie", cookies}}), Role::kNobody, kNow);
  };
  EXPECT_EQ(role(std::string("streamvec_token_8080=other; streamvec_token_8081=") + kQueryToken), Role::kQuery);
  EXPECT_EQ(role(std::string("streamvec_token_8080=") + kQueryToken), Role::kNobody);
}

TEST(Access, TakesTheLesserOfTokenAndCertificate) {
  Access::Options options;
  options.tokens = {make_token(kQueryToken).value()};
  options.certificates = true;
  const HttpRequest request = request_with({{"authorization", std::string("Bearer ") + kQueryToken}});
  EXPECT_EQ(Access(options).role_of(request, Role::kMetrics, kNow), Role::kMetrics);
  EXPECT_EQ(Access(options).role_of(request, Role::kNobody, kNow), Role::kNobody);
  EXPECT_EQ(Access(options).role_of(request_with({}), Role::kQuery, kNow), Role::kNobody);
}

TEST(Access, SaysWhoIsNotKnownAndWhoMayNot) {
  HttpRequest request = request_with({});
  EXPECT_EQ(with_tokens().check_role(request, Role::kMetrics)->status, 401);
  request.role = Role::kMetrics;
  EXPECT_EQ(with_tokens().check_role(request, Role::kQuery)->status, 403);
  EXPECT_FALSE(with_tokens().check_role(request, Role::kMetrics));
}

TEST(Access, RefusesNamesThatAreNotOurs) {
  Access::Options options;
  options.hosts = {"words.example.org"};
  const Access access(options);
  const auto status = [&](std::vector<NameAndText> headers) {
    const auto refusal = access.check_site(request_with(std::move(headers)), false, false);
    return refusal ? refusal->status : 200;
  };
  for (const char* host : {"localhost", "localhost:8080", "LOCALHOST", "127.0.0.1:8080", "[::1]:8080", "10.0.0.7",
                           "words.example.org", "words.example.org.:443"})
    EXPECT_EQ(status({{"host", host}}), 200) << host;
  for (const char* host : {"", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "localhost:80@evil",
                           "localhost:", "localhost:x", "words.example.org.evil", "[evil]", "1.2.3"})
    EXPECT_EQ(status({{"host", host}}), 421) << host;
  EXPECT_EQ(status({}), 421);
  EXPECT_EQ(status({{"host", "localhost"}, {"host", "localhost"}}), 421);
}

TEST(Access, TakesNamesAndSitesHoweverTheyAreWritten) {
  Access::Options options;
  options.hosts = {"Words.Example", "other.example:8080"};
  options.origins = {"https://Friend.Example/"};
  const Access access(options);
  for (const char* host : {"words.example", "WORDS.example:80", "other.example", "other.example:8080"}) {
    const HttpRequest request = request_with({{"host", host}, {"origin", "https://friend.example"}});
    EXPECT_FALSE(access.check_site(request, false, false)) << host;
    EXPECT_EQ(access.allowed_origin(request), "https://friend.example");
  }
}

TEST(Access, TakesPagesOfItsOwnBehindAProxyThatSpeaksTls) {
  const auto status = [](const char* site) {
    const HttpRequest request =
        request_with({{"host", "localhost"}, {"origin", "https://localhost"}, {"sec-fetch-site", site}});
    const auto refusal = Access({}).check_site(request, false, false);
    return refusal ? refusal->status : 200;
  };
  EXPECT_EQ(status("same-origin"), 200);
  EXPECT_EQ(status("same-site"), 403);
  EXPECT_EQ(status("cross-site"), 403);
}

TEST(Access, RefusesPagesOfOtherSites) {
  Access::Options options;
  options.origins = {"https://friend.example"};
  const Access access(options);
  const auto status = [&](std::vector<NameAndText> headers, bool is_page = false) {
    headers.push_back({"host", "localhost:8080"});
    const auto refusal = access.check_site(request_with(std::move(headers)), false, is_page);
    return refusal ? refusal->status : 200;
  };
  EXPECT_EQ(status({{"origin", "http://localhost:8080"}}), 200);
  EXPECT_EQ(status({{"origin", "https://friend.example"}}), 200);
  for (const char* origin : {"null", "http://evil.example", "https://localhost:8080", "http://localhost:8081",
                             "http://localhost:8080.evil", "https://friend.example.evil"})
    EXPECT_EQ(status({{"origin", origin}}), 403) << origin;
  EXPECT_EQ(status({{"sec-fetch-site", "same-origin"}}), 200);
  EXPECT_EQ(status({{"sec-fetch-site", "none"}}), 200);
  EXPECT_EQ(status({{"sec-fetch-site", "cross-site"}}), 403);
  EXPECT_EQ(status({{"sec-fetch-site", "same-site"}}), 403);
  EXPECT_EQ(status({{"sec-fetch-site", "cross-site"}, {"sec-fetch-mode", "navigate"}}, true), 200)
      << "a link to a page";
  EXPECT_EQ(status({{"sec-fetch-site", "cross-site"}, {"sec-fetch-mode", "navigate"}}), 403);
}

TEST(Origins, ThatNoBrowserSendsAreRefused) {
  for (const char* origin : {"https://example.org", "http://Example.org:8080/", "app://x", "http://[::1]:80", "null"})
    EXPECT_TRUE(check_origin(origin).ok()) << origin;
  for (const char* origin : {"", "foo", "example.org", "https://", "https:///", "://x", "https://example.org/app", "*",
                             "https://a b", "https://me@example.org"})
    EXPECT_EQ(check_origin(origin).code(), Code::kInvalidArgument) << origin;
}

TEST(Tokens, AreReadWithRoleAndExpiry) {
  const std::string path = testing::TempDir() + "/tokens";
  std::ofstream(path) << "# ours\n\n" << kQueryToken << "\n" << kMetricsToken << " metrics 2024-05-01\n";
  const auto tokens = read_tokens(path);
  ASSERT_TRUE(tokens.ok()) << tokens.status().message();
  ASSERT_EQ(tokens->size(), 2u);
  EXPECT_EQ((*tokens)[1].role, Role::kMetrics);
  EXPECT_EQ((*tokens)[1].expires_s, 1'714'521'600);
}

TEST(Tokens, ThatCouldBeGuessedAreRefusedWithoutBeingShown) {
  const std::string path = testing::TempDir() + "/short_tokens";
  for (const char* line : {"hunter2\n", "0123456789abcdef0 owner\n", "0123456789abcdef0 query soon\n", "\n",
                           "0123456789abcdef0 query 2024-05-01 more\n"}) {
    std::ofstream(path) << line;
    const auto tokens = read_tokens(path);
    ASSERT_FALSE(tokens.ok()) << line;
    EXPECT_EQ(tokens.status().message().find("hunter2"), std::string::npos);
  }
}

}  // namespace
}  // namespace streamvec
