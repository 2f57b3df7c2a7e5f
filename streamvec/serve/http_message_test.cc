#include "streamvec/serve/http_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace streamvec {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(ParseTarget, DecodesPathAndQueryInOrder) {
  std::string path;
  std::vector<NameAndText> query;
  ASSERT_TRUE(parse_target("/api/nearest?word=caf%C3%A9+noir&k=3&word=a%26b&empty=&bare", path, query).ok());
  EXPECT_EQ(path, "/api/nearest");
  EXPECT_THAT(query, ElementsAre(Pair("word", "caf\xC3\xA9 noir"), Pair("k", "3"), Pair("word", "a&b"),
                                 Pair("empty", ""), Pair("bare", "")));
}

TEST(ParseTarget, TakesThePathAsItIsWritten) {
  std::string path;
  std::vector<NameAndText> query;
  ASSERT_TRUE(parse_target("/a+b/%C3%BC.js", path, query).ok());
  EXPECT_EQ(path, "/a+b/\xC3\xBC.js");
}

class BadTarget : public testing::TestWithParam<const char*> {};
TEST_P(BadTarget, IsRefused) {
  std::string path;
  std::vector<NameAndText> query;
  EXPECT_EQ(parse_target(GetParam(), path, query).code(), Code::kInvalidArgument) << GetParam();
}
INSTANTIATE_TEST_SUITE_P(Forms, BadTarget,
                         testing::Values("", "api", "*", "http://host/api", "/../etc/passwd", "/a/../b", "/a/..", "/.",
                                         "/a/./b", "/%2e%2e/etc/passwd", "/%2E%2e/x", "/..%2fetc", "/a%2fb", "/a%5cb",
                                         "/a\\..\\b", "//host/x", "/a//b", "/%252e%252e/x", "/a%00b", "/a%0ab", "/%",
                                         "/%4", "/%zz", "/a#b", "/x?a=%", "/x?a=%g1", "/\x7f"));

TEST(TakeAuthority, LeavesThePathOfAWholeAddress) {
  const auto taken = [](std::string_view target) {
    const std::string_view host = take_authority(target);
    return std::string(host) + " " + std::string(target);
  };
  EXPECT_EQ(taken("http://localhost:8080/api/model?a=b"), "localhost:8080 /api/model?a=b");
  EXPECT_EQ(taken("HTTPS://[::1]"), "[::1] /");
  for (const char* target : {"/api/model?from=http://x/", "ftp://localhost/x", "http:///x", "http://x?a=b", "*", ""})
    EXPECT_EQ(taken(target), std::string(" ") + target);
}

TEST(MediaType, IsTheTypeWithoutParametersOrCapitals) {
  EXPECT_EQ(media_type("Application/JSON ; charset=utf-8"), "application/json");
  EXPECT_EQ(media_type("application/jsonx"), "application/jsonx");
  EXPECT_EQ(media_type(""), "");
}

TEST(NamesTag, FindsATagInAListWeakOrNot) {
  for (const char* header : {"\"a\"", "W/\"a\"", "\"b\", \"a\"", "\"b\" ,W/\"a\" ", "*"})
    EXPECT_TRUE(names_tag(header, "\"a\"")) << header;
  for (const char* header : {"", "a", "\"ab\"", "\"b\", x\"a\"", ",", "**"})
    EXPECT_FALSE(names_tag(header, "\"a\"")) << header;
}

TEST(ErrorResponse, HasTheCodesNameAndGrpcsHttpStatus) {
  const HttpResponse response = error_response(error(Code::kNotFound, "no \"x\" \xff here"));
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.body, "{\"error\":{\"code\":\"NOT_FOUND\",\"message\":\"no \\\"x\\\" \xEF\xBF\xBD here\"}}\n");
}

TEST(ErrorResponse, SaysWhenToComeAgain) {
  EXPECT_THAT(error_response(503, "full").headers, ElementsAre(Pair("Retry-After", "1")));
  EXPECT_TRUE(error_response(400, "bad").headers.empty());
}

}  // namespace
}  // namespace streamvec
