#include "streamvec/source/location.h"

#include <gtest/gtest.h>

namespace streamvec {
namespace {

TEST(Location, ReadsEveryPartOfAName) {
  const auto location = Location::parse("NATS://me:s%40crt@Example.org:4222/news%2Feu?subject=a.%3E&count=7");
  ASSERT_TRUE(location.ok()) << location.status().message();
  EXPECT_EQ(location->scheme, "nats");
  EXPECT_EQ(location->user, "me");
  EXPECT_EQ(location->password, "s@crt");
  EXPECT_EQ(location->host, "example.org");
  EXPECT_EQ(location->port, 4222);
  EXPECT_EQ(location->path, "/news/eu");
  EXPECT_EQ(location->text("subject"), "a.>");
  EXPECT_EQ(*location->integer("count", 1, 0, 9), 7);
  EXPECT_EQ(*location->integer("absent", 3, 0, 9), 3);
}

TEST(Location, ReadsAnAddressInBracketsAndASchemeWithoutAHost) {
  EXPECT_EQ(Location::parse("redis://[::1]:6379/s")->host, "::1");
  EXPECT_EQ(Location::parse("redis://[::1]:6379/s")->port, 6379);
  const auto path = Location::parse("warc:/data/a.warc.gz");
  EXPECT_EQ(path->host, "");
  EXPECT_EQ(path->path, "/data/a.warc.gz");
}

TEST(Location, HidesPasswordsAndTokensInItsName) {
  EXPECT_EQ(Location::parse("ws://h?user=a@b&Access_Token=t")->name, "ws://h?user=a@b&Access_Token=***");
  EXPECT_EQ(presentable("nats://***@h/s?sasl.password=***"), "nats://***@h/s?sasl.password=***");
  EXPECT_EQ(Location::parse("nats://token@h/s?x=1")->name, "nats://***@h/s?x=1");
  EXPECT_EQ(Location::parse("kafka://h/t?sasl.username=me&sasl.password=secret&group=g")->name,
            "kafka://h/t?sasl.username=me&sasl.password=***&group=g");
  EXPECT_EQ(Location::parse("nats://me:secret@h/s")->name, "nats://me:***@h/s");
  EXPECT_EQ(Location::parse("nats://h:4222/s@t")->name, "nats://h:4222/s@t");
  const auto bad = Location::parse("nats://me:secret@h:0/s");
  EXPECT_EQ(bad.status().message().find("secret"), std::string::npos);
}

TEST(Location, SaysWhatIsWrong) {
  for (const char* name : {"", "no-scheme", ":x", "a b:c", "nats://", "nats://h:0/", "nats://h:65536/", "nats://h:x/",
                           "nats://[::1/", "nats://[::1]x/", "nats://h/%4", "nats://h/%zz", "nats://h/?a=%"}) {
    const auto location = Location::parse(name);
    ASSERT_FALSE(location.ok()) << name;
    EXPECT_EQ(location.status().code(), Code::kInvalidArgument) << name;
  }
  EXPECT_FALSE(Location::parse("nats://h/" + std::string(9000, 'a')).ok());
}

TEST(Location, NamesAKeyThatIsNotKnownAndANumberThatIsNone) {
  const auto location = Location::parse("nats://h/s?colour=red&count=11");
  const Status unknown = location->check_keys({"count", "subject"});
  EXPECT_NE(unknown.message().find("\"colour\""), std::string::npos);
  EXPECT_NE(unknown.message().find("count, subject"), std::string::npos);
  EXPECT_TRUE(location->check_keys({"count", "colour"}).ok());
  const auto count = location->integer("count", 1, 0, 9);
  EXPECT_EQ(count.status().code(), Code::kInvalidArgument);
  EXPECT_NE(count.status().message().find("count=11"), std::string::npos);
}

}  // namespace
}  // namespace streamvec
