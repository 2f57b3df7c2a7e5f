#include "streamvec/source/http/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace streamvec {
namespace {

std::string normal(const std::string& text) {
  const Result<Url> url = Url::parse(text);
  return url.ok() ? url->text : "refused";
}

TEST(Url, SpellingsOfOneAddressHaveOneForm) {
  for (const char* text :
       {"http://example.org/a/b?q=1", "HTTP://EXAMPLE.org:80/a/b?q=1#part", "  http://example.org/a/b?q=1\n",
        "http://example.org./a/b?q=1", "http://example.org/a/./x/../b?q=1", "http://example.org/%61/b?q=%31",
        "http://exam\tple.org/a/b?q=1", "http://example.org/a/x/%2e%2E/b?q=1"})
    EXPECT_EQ(normal(text), "http://example.org/a/b?q=1") << text;
}

TEST(Url, EscapesAreUpperCaseAndOnlyWhereNeeded) {
  EXPECT_EQ(normal("http://a.org/%7euser/%2f%c3%a9?x=%2b"), "http://a.org/~user/%2F%C3%A9?x=%2B");
  EXPECT_EQ(normal("http://a.org/caf\xc3\xa9 b"), "http://a.org/caf%C3%A9%20b");
  EXPECT_EQ(normal("http://a.org/100%"), "http://a.org/100%");
  EXPECT_EQ(normal("http://a.org/%zz"), "http://a.org/%zz");
}

TEST(Url, NoEscapeComesAboutByUndoingAnother) {
  for (const std::string text : {"%4%41", "%%34%31", "%%41%41", "%4%zz%41%7E"})
    EXPECT_EQ(normal_escapes(normal_escapes(text)), normal_escapes(text)) << text;
  EXPECT_EQ(normal_escapes("%4%41 %41"), "%4%41 A");
}

TEST(Url, HostsBecomePunycodeAndAddressesDecimal) {
  EXPECT_EQ(normal("http://b\xc3\xbc"
                   "cher.example/"),
            "http://xn--bcher-kva.example/");
  EXPECT_EQ(normal("http://127\xe3\x80\x82"
                   "0.0.1/"),
            "http://127.0.0.1/");
  for (const char* text : {"http://127.0.0.1/", "http://2130706433/", "http://0x7f000001/", "http://0177.0.0.1/",
                           "http://127.1/", "http://0x7f.1/"})
    EXPECT_EQ(normal(text), "http://127.0.0.1/") << text;
  EXPECT_EQ(normal("http://[::FFFF:127.0.0.1]:81/"), normal("http://[::ffff:7f00:1]:81/"));
}

TEST(Url, AnAddressIsKnownThroughADotAtItsEndAndThroughWideDigits) {
  EXPECT_EQ(Url::parse("http://0177.1./x").value().host, "127.0.0.1");
  EXPECT_EQ(Url::parse("http://2130706433./").value().text, "http://127.0.0.1/");
  EXPECT_EQ(Url::parse("http://\uFF11\uFF12\uFF17.1/").value().host, "127.0.0.1");
  EXPECT_FALSE(Url::parse("http://a.example../").ok());
}

TEST(Url, OnlyHttpAndHttpsAreRead) {
  for (const char* text :
       {"file:///etc/passwd", "ftp://a.org/", "gopher://a.org/", "javascript:alert(1)", "data:text/html,x", "", "   ",
        "no scheme", "http://", "http://a.org:0/", "http://a.org:99999/", "http://a b/", "http://[::1%25eth0]/"})
    EXPECT_EQ(normal(text), "refused") << text;
}

TEST(Url, CredentialsAreRefused) {
  EXPECT_EQ(normal("http://user@a.org/"), "refused");
  EXPECT_EQ(normal("http://user:secret@a.org/"), "refused");
  EXPECT_EQ(normal("http://@a.org/"), "refused");
}

TEST(Url, LinksAreResolvedAgainstTheirPage) {
  const Url base = *Url::parse("https://a.org/news/today?x=1");
  EXPECT_EQ(base.resolve("story")->text, "https://a.org/news/story");
  EXPECT_EQ(base.resolve("/top")->text, "https://a.org/top");
  EXPECT_EQ(base.resolve("../up?y")->text, "https://a.org/up?y");
  EXPECT_EQ(base.resolve("//b.org/c")->text, "https://b.org/c");
  EXPECT_EQ(base.resolve("?y=2")->text, "https://a.org/news/today?y=2");
  EXPECT_EQ(base.resolve("")->text, "https://a.org/news/today?x=1");
  EXPECT_EQ(base.resolve("#part")->text, "https://a.org/news/today?x=1");
  EXPECT_FALSE(base.resolve("file:///etc/passwd").ok());
  EXPECT_FALSE(base.resolve("//user:secret@b.org/").ok());
}

TEST(Url, LongerThanTheLimitIsRefused) {
  EXPECT_EQ(normal("http://a.org/" + std::string(kUrlBytesMax, 'a')), "refused");
  EXPECT_EQ(normal("http://a.org/" + std::string(100'000, 'a')), "refused");
  EXPECT_EQ(normal("http://a.org/" + std::string(1'000, '\xff')), "refused");
}

TEST(Url, OriginAndAuthorityNameThePortUnlessItIsTheSchemes) {
  EXPECT_EQ(Url::parse("https://a.org:443/x")->origin(), "https://a.org");
  EXPECT_EQ(Url::parse("https://a.org:80/x")->origin(), "https://a.org:80");
  EXPECT_EQ(Url::parse("http://a.org/x")->authority(), "a.org");
  EXPECT_EQ(Url::parse("http://a.org:8080/x?y")->target(), "/x?y");
}

}  // namespace
}  // namespace streamvec
