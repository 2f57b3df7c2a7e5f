#include "streamvec/source/broker/redis_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "streamvec/source/broker/broker_testing.h"

#ifdef STREAMVEC_REDIS
#include "streamvec/source/broker/redis_wire.h"

namespace streamvec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ServerProcess::Arguments redis_server(std::vector<std::string> extra = {}) {
  return [extra](int port, const std::string& directory) {
    std::vector<std::string> arguments = {
        "redis-server", "--bind", "127.0.0.1", "--port", std::to_string(port), "--dir", directory,
        "--appendonly", "yes",    "--save",    ""};
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    return arguments;
  };
}

// The other side.
class RedisClient {
 public:
  explicit RedisClient(const ServerProcess& server)
      : wire_({.host = "127.0.0.1", .port = server.port(), .private_ok = true}) {
    EXPECT_TRUE(wire_.open(Deadline::after(std::chrono::seconds(5))).ok());
  }
  std::vector<RedisReply> call(const std::vector<RedisCommand>& commands) {
    auto replies = wire_.call(commands, std::chrono::seconds(5));
    EXPECT_TRUE(replies.ok()) << replies.status().message();
    for (const RedisReply& reply : *replies) EXPECT_NE(reply->type, REDIS_REPLY_ERROR) << redis_text(*reply);
    return std::move(*replies);
  }
  void add_numbered(int first, int last) {
    std::vector<RedisCommand> commands;
    for (int number = first; number <= last; ++number)
      commands.push_back({"XADD", "news", "*", "text", "message " + std::to_string(number)});
    call(commands);
  }
  int64_t pending() { return call({{"XPENDING", "news", "readers"}})[0]->element[0]->integer; }

 private:
  RedisWire wire_;
};

std::unique_ptr<Source> open_redis(const ServerProcess& server, const std::string& rest = "/news",
                                   const std::string& login = "") {
  Result<std::unique_ptr<Source>> source = RedisSource::open("redis://" + login + server.authority() + rest);
  EXPECT_TRUE(source.ok()) << source.status().message();
  return std::move(*source);
}

TEST(RedisSource, ReadsTheStreamInItsOrderAndThenWaitsForMore) {
  ServerProcess server(redis_server());
  RedisClient client(server);
  client.add_numbered(1, 700);
  const auto source = open_redis(server);
  const std::vector<Document> documents = read_documents(*source, 700);
  ASSERT_EQ(documents.size(), 700u);
  for (int i = 0; i < 700; ++i) EXPECT_EQ(documents[static_cast<size_t>(i)].text, "message " + std::to_string(i + 1));
  EXPECT_GT(documents[0].time_s, 1'600'000'000);
  std::vector<Document> none;
  EXPECT_EQ(source->read(1, Deadline::after(std::chrono::milliseconds(100)), none).status().code(),
            Code::kDeadlineExceeded);
  EXPECT_TRUE(is_woken(*source, [&] { client.add_numbered(701, 701); }));
}

TEST(RedisSource, CountsEachEntryOnceThroughKillsOfReaderAndServer) {
  for (const std::string name : {"/news", "/news?group=readers"}) {
    ServerProcess server(redis_server({"--appendfsync", "always"}));
    RedisClient(server).add_numbered(1, 400);
    const auto counted = count_through_restarts([&] { return open_redis(server, name); }, 400,
                                                [&](int life) {
                                                  if (life % 6 != 3) return;
                                                  server.kill();
                                                  server.start();
                                                });
    expect_each_once(counted, 400);
  }
}

TEST(RedisSource, GoesOnWhenTheServerDiesInTheMiddleAndComesBack) {
  ServerProcess server(redis_server({"--appendfsync", "always"}));
  RedisClient(server).add_numbered(1, 50);
  const auto source = open_redis(server, "/news?group=readers");
  expect_all_in_order(*source, server, 50);
}

TEST(RedisSource, AcknowledgesOnlyWhatIsCommitted) {
  ServerProcess server(redis_server());
  RedisClient client(server);
  client.add_numbered(1, 3'000);
  std::string saved;
  {
    const auto source = open_redis(server, "/news?group=readers");
    const std::vector<Document> documents = read_documents(*source, 3'000);
    ASSERT_EQ(documents.size(), 3'000u);
    EXPECT_EQ(client.pending(), 3'000);
    ASSERT_TRUE(source->commit(documents[2'499].cursor).ok());
    EXPECT_EQ(client.pending(), 500);
    saved = documents[2'799].cursor;  // saved, and killed before it was committed
  }
  const auto source = open_redis(server, "/news?group=readers");
  ASSERT_TRUE(source->seek(saved).ok());
  const std::vector<Document> rest = read_documents(*source, 200);
  EXPECT_EQ(rest.at(0).text, "message 2801");
  ASSERT_TRUE(source->commit(rest.at(199).cursor).ok());
  EXPECT_EQ(client.pending(), 0) << "what the killed reader was given is acknowledged with it";
}

TEST(RedisSource, ReadersThatShareAGroupHaveEachEntryOnceAndWhatTheyOweAgain) {
  ServerProcess server(redis_server());
  RedisClient client(server);
  client.add_numbered(1, 40);
  const std::string group = "/news?group=readers&shared=1&consumer=";
  const auto a = open_redis(server, group + "a");
  auto b = open_redis(server, group + "b");
  std::vector<Document> of_a = read_documents(*a, 10), of_b = read_documents(*b, 10);
  std::set<std::string> texts;
  for (const auto* documents : {&of_a, &of_b})
    for (const Document& document : *documents) texts.insert(document.text);
  EXPECT_EQ(texts.size(), 20u);
  ASSERT_TRUE(b->commit(of_b.back().cursor).ok());
  EXPECT_EQ(client.pending(), 10) << "what the other was given is not ours to acknowledge";
  // A reader that comes back without a cursor is given again what it never acknowledged, then what nobody had.
  const auto again = open_redis(server, group + "a");
  const std::vector<Document> more = read_documents(*again, 20);
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(more[i].text, of_a[i].text);
  for (size_t i = 10; i < 20; ++i) EXPECT_TRUE(texts.insert(more[i].text).second) << more[i].text;
  // One with a cursor only what came after it.
  const auto later = open_redis(server, group + "a");
  ASSERT_TRUE(later->seek(more[14].cursor).ok());
  EXPECT_EQ(read_documents(*later, 1).at(0).text, more[15].text);
}

TEST(RedisSource, NotesWhatWasTrimmed) {
  ServerProcess server(redis_server());
  RedisClient client(server);
  client.add_numbered(1, 10);
  const auto source = open_redis(server);
  read_documents(*source, 10);
  EXPECT_TRUE(source->notes().empty());
  client.add_numbered(11, 50);
  client.call({{"XTRIM", "news", "MAXLEN", "=", "20"}});
  EXPECT_EQ(texts(read_documents(*source, 20)).at(0), "message 31");
  EXPECT_THAT(source->notes(), ElementsAre(HasSubstr("20 entries were gone")));
  client.call({{"XTRIM", "news", "MAXLEN", "=", "0"}});
  client.add_numbered(51, 53);
  const std::string saved = read_documents(*source, 3).at(2).cursor;
  EXPECT_THAT(source->notes(), ElementsAre(HasSubstr("20 entries were gone"))) << "what was read before is no loss";
  client.add_numbered(54, 60);
  client.call({{"XTRIM", "news", "MAXLEN", "=", "1"}});
  const auto later = open_redis(server);
  ASSERT_TRUE(later->seek(saved).ok());
  EXPECT_THAT(texts(read_documents(*later, 1)), ElementsAre("message 60"));
  EXPECT_THAT(later->notes(), ElementsAre(HasSubstr("6 entries were gone")));
  const auto fresh = open_redis(server);
  EXPECT_EQ(read_documents(*fresh, 1).size(), 1u);
  EXPECT_TRUE(fresh->notes().empty()) << "the beginning is what is there";
}

TEST(RedisSource, WaitsForAStreamThatIsNotThereAndRefusesOneMadeAnew) {
  ServerProcess server(redis_server());
  RedisClient client(server);
  const auto source = open_redis(server);
  std::vector<Document> documents;
  EXPECT_EQ(source->read(1, Deadline::after(std::chrono::milliseconds(50)), documents).status().code(),
            Code::kDeadlineExceeded);
  EXPECT_THAT(source->notes(), ElementsAre(HasSubstr("there is no stream \"news\" yet")));
  client.add_numbered(1, 2);
  EXPECT_EQ(read_documents(*source, 2).size(), 2u);
  client.call({{"DEL", "news"}, {"XADD", "news", "5-1", "text", "anew"}});
  EXPECT_EQ(first_error(*source).code(), Code::kFailedPrecondition);
  client.call({{"SET", "word", "x"}});
  EXPECT_EQ(first_error(*open_redis(server, "/word")).code(), Code::kFailedPrecondition);
}

TEST(RedisSource, FindsTheRecordInItsField) {
  ServerProcess server(redis_server());
  RedisClient client(server);
  client.call({{"XADD", "news", "1-1", "a", "1", "data", "by data"},
               {"XADD", "news", "1-2", "text", "by text", "data", "no"},
               {"XADD", "news", "1-3", "body", "the only one"},
               {"XADD", "news", "1-4", "a", "no", "b", "record"},
               {"XADD", "news", "1-5", "title", "Seoul", "body", "rain\nand \"wind\"", "key", "k5"}});
  EXPECT_THAT(texts(read_documents(*open_redis(server), 3)), ElementsAre("by data", "by text", "the only one"));
  EXPECT_THAT(texts(read_documents(*open_redis(server, "/news?field=body"), 2)),
              ElementsAre("the only one", "rain\nand \"wind\""));
  const std::vector<Document> all = read_documents(*open_redis(server, "/news?field=*&text=/title,/body&id=/key"), 2);
  EXPECT_EQ(all.at(1).text, "Seoul\nrain\nand \"wind\"");
  EXPECT_EQ(all.at(1).id, "k5");
  EXPECT_EQ(all.at(1).time_s, 0);
}

TEST(RedisSource, ShowsItsCredentials) {
  ServerProcess server(redis_server({"--requirepass", "secret"}));
  EXPECT_EQ(first_error(*open_redis(server)).code(), Code::kUnauthenticated);
  EXPECT_EQ(first_error(*open_redis(server, "/news", ":wrong@")).code(), Code::kUnauthenticated);
  std::vector<Document> none;
  const auto source = open_redis(server, "/news", "default:secret@");
  EXPECT_EQ(source->read(1, Deadline::after(std::chrono::milliseconds(50)), none).status().code(),
            Code::kDeadlineExceeded);
}

// The server speaks TLS only.
TEST(RedisSource, SpeaksTlsToAServerItTrusts) {
  const TestCertificate certificate;
  ServerProcess server([&](int port, const std::string& directory) -> std::vector<std::string> {
    return {"redis-server",
            "--bind",
            "127.0.0.1",
            "--port",
            "0",
            "--tls-port",
            std::to_string(port),
            "--dir",
            directory,
            "--save",
            "",
            "--tls-cert-file",
            certificate.certificate(),
            "--tls-key-file",
            certificate.key(),
            "--tls-auth-clients",
            "no"};
  });
  RedisWire wire(
      {.host = "127.0.0.1", .port = server.port(), .tls = true, .ca = certificate.certificate(), .private_ok = true});
  ASSERT_TRUE(wire.open(Deadline::after(std::chrono::seconds(5))).ok());
  ASSERT_TRUE(wire.call({{"XADD", "news", "*", "text", "sealed"}}, std::chrono::seconds(5)).ok());
  EXPECT_THAT(texts(read_documents(*open_redis(server, "/news?tls=1&ca=" + certificate.certificate()), 1)),
              ElementsAre("sealed"));
  EXPECT_EQ(first_error(*open_redis(server, "/news?tls=1")).code(), Code::kUnavailable) << "nobody vouches for it";
  EXPECT_EQ(first_error(*open_redis(server, "/news")).code(), Code::kUnavailable) << "no TLS";
}

TEST(RedisSource, NamesThatAreWrongAreRefusedWhenOpened) {
  for (const char* name : {"redis://host", "redis://host/", "redis:///S", "redis://h/S?colour=red", "redis://h/S?db=x",
                           "redis://h/S?group=g&shared=1", "redis://h/S?consumer=c&shared=1"})
    EXPECT_EQ(RedisSource::open(name).status().code(), Code::kInvalidArgument) << name;
}

}  // namespace
}  // namespace streamvec
#endif
