#include "streamvec/source/broker/nats_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "streamvec/source/broker/broker_testing.h"

#ifdef STREAMVEC_NATS
#include <nats/nats.h>

namespace streamvec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ServerProcess::Arguments nats_server(const std::string& extra = "") {
  return [extra](int port, const std::string& directory) {
    std::vector<std::string> arguments = {"nats-server",        "-a",  "127.0.0.1", "-p",
                                          std::to_string(port), "-js", "-sd",       directory};
    for (size_t at = 0; at < extra.size();) {
      const size_t end = std::min(extra.find(' ', at), extra.size());
      arguments.push_back(extra.substr(at, end - at));
      at = end + 1;
    }
    return arguments;
  };
}

// The other side: makes streams, publishes, looks at consumers.
class NatsClient {
 public:
  // `ca`: a file of certificates; then TLS is spoken.
  explicit NatsClient(const ServerProcess& server, const std::string& login = "", const std::string& ca = "") {
    natsOptions* options = nullptr;
    EXPECT_EQ(natsOptions_Create(&options), NATS_OK);
    natsOptions_SetURL(options, ("nats://" + login + server.authority()).c_str());
    if (!ca.empty()) {
      EXPECT_EQ(natsOptions_SetSecure(options, true), NATS_OK);
      EXPECT_EQ(natsOptions_LoadCATrustedCertificates(options, ca.c_str()), NATS_OK);
    }
    for (int i = 0; i < 3'000 && natsConnection_Connect(&connection_, options) != NATS_OK; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    natsOptions_Destroy(options);
    EXPECT_NE(connection_, nullptr);
    EXPECT_EQ(natsConnection_JetStream(&context_, connection_, nullptr), NATS_OK);
  }
  ~NatsClient() {
    jsCtx_Destroy(context_);
    natsConnection_Destroy(connection_);
  }
  void add_stream(const char* subject = "news.>", jsRetentionPolicy retention = js_LimitsPolicy,
                  int64_t messages_max = -1) {
    jsStreamConfig config;
    jsStreamConfig_Init(&config);
    config.Name = "NEWS";
    config.Subjects = &subject;
    config.SubjectsLen = 1;
    config.Retention = retention;
    config.MaxMsgs = messages_max;
    EXPECT_EQ(js_AddStream(nullptr, context_, &config, nullptr, nullptr), NATS_OK);
  }
  void publish(const std::string& text, const char* subject = "news.world") {
    EXPECT_EQ(js_PublishAsync(context_, subject, text.data(), static_cast<int>(text.size()), nullptr), NATS_OK);
  }
  void publish_numbered(int first, int last) {
    for (int number = first; number <= last; ++number) publish("message " + std::to_string(number));
    settle();
  }
  void settle() { EXPECT_EQ(js_PublishAsyncComplete(context_, nullptr), NATS_OK); }
  uint64_t messages() {
    jsStreamInfo* info = nullptr;
    EXPECT_EQ(js_GetStreamInfo(&info, context_, "NEWS", nullptr, nullptr), NATS_OK);
    const uint64_t count = info->State.Msgs;
    jsStreamInfo_Destroy(info);
    return count;
  }
  uint64_t acknowledged(const char* consumer) {
    jsConsumerInfo* info = nullptr;
    EXPECT_EQ(js_GetConsumerInfo(&info, context_, "NEWS", consumer, nullptr, nullptr), NATS_OK);
    const uint64_t sequence = info == nullptr ? 0 : info->AckFloor.Stream;
    jsConsumerInfo_Destroy(info);
    return sequence;
  }
  void remove_stream() { EXPECT_EQ(js_DeleteStream(context_, "NEWS", nullptr, nullptr), NATS_OK); }

 private:
  natsConnection* connection_ = nullptr;
  jsCtx* context_ = nullptr;
};

std::unique_ptr<Source> open_nats(const ServerProcess& server, const std::string& rest = "/NEWS",
                                  const std::string& login = "") {
  Result<std::unique_ptr<Source>> source = NatsSource::open("nats://" + login + server.authority() + rest);
  EXPECT_TRUE(source.ok()) << source.status().message();
  return std::move(*source);
}

TEST(NatsSource, ReadsTheStreamInItsOrderAndThenWaitsForMore) {
  ServerProcess server(nats_server());
  NatsClient client(server);
  client.add_stream();
  client.publish_numbered(1, 600);
  const auto source = open_nats(server);
  const std::vector<Document> documents = read_documents(*source, 600);
  ASSERT_EQ(documents.size(), 600u);
  for (int i = 0; i < 600; ++i) EXPECT_EQ(documents[static_cast<size_t>(i)].text, "message " + std::to_string(i + 1));
  EXPECT_GT(documents[0].time_s, 1'600'000'000);
  std::vector<Document> none;
  EXPECT_EQ(source->read(1, Deadline::after(std::chrono::milliseconds(100)), none).status().code(),
            Code::kDeadlineExceeded);
  client.publish_numbered(601, 601);
  EXPECT_THAT(texts(read_documents(*source, 1)), ElementsAre("message 601"));
  EXPECT_TRUE(source->capabilities().endless && source->capabilities().pausable);
}

TEST(NatsSource, ReadersOfPartsHaveEachMessageOnce) {
  ServerProcess server(nats_server());
  NatsClient client(server);
  client.add_stream();
  client.publish_numbered(1, 30);
  std::map<std::string, int> counted;
  for (const char* part : {"/NEWS?part=0/3", "/NEWS?part=1/3", "/NEWS?part=2/3"})
    for (const Document& document : read_documents(*open_nats(server, part), 10)) ++counted[document.text];
  expect_each_once(counted, 30);
}

TEST(NatsSource, SharedByNobodyElseItReadsAllAndGoesOn) {
  ServerProcess server(nats_server());
  NatsClient client(server);
  client.add_stream();
  client.publish_numbered(1, 100);
  expect_each_once(count_through_restarts([&] { return open_nats(server, "/NEWS?shared=1"); }, 100, [](int) {}), 100);
}

TEST(NatsSource, ReadersThatShareItHaveEachMessageOnceWhoeverComesAndGoes) {
  ServerProcess server(nats_server());
  NatsClient client(server);
  client.add_stream();
  std::map<std::string, int> counted;
  SharedCursor places;
  int published = 0;
  for (const std::vector<uint64_t>& readers : {std::vector<uint64_t>{1, 2, 3}, {1, 3}, {1, 3, 4, 5}, {6}}) {
    client.publish_numbered(published + 1, published + 200);
    published += 200;
    const std::string begin = places.splits.empty() ? "" : places.text();
    for (const uint64_t reader : readers) {
      const auto source = open_nats(server, "/NEWS?shared=1");
      EXPECT_TRUE(source->capabilities().shared);
      source->read_splits({reader, readers});
      ASSERT_TRUE(source->seek(begin).ok());
      int64_t own = 0;  // of the 200, by 64 splits of their sequence
      for (int sequence = published - 199; sequence <= published; ++sequence)
        own += Splits{reader, readers}.has(static_cast<uint64_t>(sequence % 64)) ? 1 : 0;
      const std::vector<Document> documents = read_documents(*source, own);
      for (const Document& document : documents) ++counted[document.text];
      if (!documents.empty()) places.merge(*SharedCursor::parse(documents.back().cursor));
    }
    expect_each_once(counted, published);
  }
}

TEST(NatsSource, WhatCannotBeSharedIsRefused) {
  for (const char* setting : {"shared=1&part=0/2", "shared=1&durable=d", "shared=2"}) {
    const Status refused = NatsSource::open(std::string("nats://h/NEWS?") + setting).status();
    EXPECT_EQ(refused.code(), Code::kInvalidArgument) << setting;
  }
  ServerProcess server(nats_server());
  NatsClient client(server);
  client.add_stream("news.>", js_WorkQueuePolicy);
  EXPECT_EQ(first_error(*open_nats(server, "/NEWS?shared=1")).code(), Code::kFailedPrecondition);
}

TEST(NatsSource, PartsOfAWorkQueueAreRefused) {
  ServerProcess server(nats_server());
  NatsClient client(server);
  client.add_stream("news.>", js_WorkQueuePolicy);
  EXPECT_EQ(first_error(*open_nats(server, "/NEWS?part=0/2")).code(), Code::kFailedPrecondition);
}

TEST(NatsSource, HandsOutWhatIsThereWithoutWaitingForAFullBatch) {
  ServerProcess server(nats_server());
  NatsClient client(server);
  client.add_stream();
  client.publish_numbered(1, 3);
  const auto source = open_nats(server);
  std::vector<Document> documents;
  while (documents.size() < 3)
    ASSERT_TRUE(source->read(100, Deadline::after(std::chrono::seconds(20)), documents).ok());
  EXPECT_TRUE(is_woken(*source, [&] { client.publish_numbered(4, 4); }));
}

TEST(NatsSource, CountsEachMessageOnceThroughKillsOfReaderAndServer) {
  ServerProcess server(nats_server());
  auto client = std::make_unique<NatsClient>(server);
  client->add_stream();
  client->publish_numbered(1, 400);
  const auto counted = count_through_restarts([&] { return open_nats(server, "/NEWS?durable=reader"); }, 400,
                                              [&](int life) {
                                                if (life % 6 != 3) return;
                                                client.reset();
                                                server.kill();
                                                server.start();
                                                client = std::make_unique<NatsClient>(server);
                                              });
  expect_each_once(counted, 400);
}

// Long messages: while the client copies one, its subscription must not go.
TEST(NatsSource, CanBeLeftWhileMessagesArrive) {
  ServerProcess server(nats_server());
  NatsClient client(server);
  client.add_stream();
  for (int i = 0; i < 16; ++i) client.publish(std::string(1'000'000, 'a'));
  client.settle();
  for (int life = 0; life < 20; ++life) EXPECT_EQ(read_documents(*open_nats(server), 1).size(), 1u);
}

TEST(NatsSource, GoesOnWhenTheServerDiesInTheMiddleAndComesBack) {
  ServerProcess server(nats_server());
  {
    NatsClient client(server);
    client.add_stream();
    client.publish_numbered(1, 50);
  }
  const auto source = open_nats(server);
  expect_all_in_order(*source, server, 50);
}

TEST(NatsSource, AcknowledgesOnlyWhatIsCommitted) {
  ServerProcess server(nats_server());
  NatsClient client(server);
  client.add_stream();
  client.publish_numbered(1, 30);
  const auto source = open_nats(server, "/NEWS?durable=reader");
  const std::vector<Document> documents = read_documents(*source, 20);
  ASSERT_EQ(documents.size(), 20u);
  EXPECT_EQ(client.acknowledged("reader"), 0u);
  ASSERT_TRUE(source->commit(documents[11].cursor).ok());
  for (int i = 0; i < 3'000 && client.acknowledged("reader") != 12; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(client.acknowledged("reader"), 12u);
  EXPECT_EQ(source->commit("nonsense").code(), Code::kInvalidArgument);
}

TEST(NatsSource, ANamedConsumerHandsOutAnyNumberBeforeTheyAreCommitted) {
  ServerProcess server(nats_server());
  NatsClient client(server);
  client.add_stream();
  client.publish_numbered(1, 1'200);
  EXPECT_EQ(read_documents(*open_nats(server, "/NEWS?durable=reader"), 1'200).size(), 1'200u);
}

TEST(NatsSource, AWorkQueueLosesMessagesOnlyAsTheyAreCommitted) {
  ServerProcess server(nats_server());
  NatsClient client(server);
  client.add_stream("news.>", js_WorkQueuePolicy);
  client.publish_numbered(1, 300);
  const auto counted = count_through_restarts([&] { return open_nats(server); }, 300,
                                              [&](int life) {
                                                if (life == 2) {
                                                  EXPECT_LT(client.messages(), 300u);
                                                  EXPECT_GT(client.messages(), 100u);
                                                }
                                              });
  expect_each_once(counted, 300);
}

TEST(NatsSource, NotesWhatRetentionTook) {
  ServerProcess server(nats_server());
  NatsClient client(server);
  client.add_stream("news.>", js_LimitsPolicy, 20);
  client.publish_numbered(1, 10);
  std::string saved;
  {
    const auto source = open_nats(server);
    saved = read_documents(*source, 10).at(9).cursor;
  }
  client.publish_numbered(11, 50);
  const auto source = open_nats(server);
  ASSERT_TRUE(source->seek(saved).ok());
  EXPECT_EQ(texts(read_documents(*source, 20)).at(0), "message 31");
  EXPECT_THAT(source->notes(), ElementsAre(HasSubstr("20 messages were gone")));
}

TEST(NatsSource, AMissingStreamIsNamedAndARemadeOneRefused) {
  ServerProcess server(nats_server());
  NatsClient client(server);
  const Status missing = first_error(*open_nats(server));
  EXPECT_EQ(missing.code(), Code::kNotFound) << missing.message();
  EXPECT_THAT(missing.message(), HasSubstr("NEWS"));
  client.add_stream();
  client.publish_numbered(1, 10);
  const std::string saved = read_documents(*open_nats(server), 10).at(9).cursor;
  client.remove_stream();
  client.add_stream();
  client.publish_numbered(1, 3);
  const auto source = open_nats(server);
  ASSERT_TRUE(source->seek(saved).ok());
  EXPECT_EQ(first_error(*source).code(), Code::kFailedPrecondition);
}

TEST(NatsSource, ReadsOnlyTheSubjectAskedForAndPassesOverBadRecords) {
  ServerProcess server(nats_server());
  NatsClient client(server);
  client.add_stream();
  client.publish("{\"text\":\"one\",\"id\":\"a\"}", "news.world");
  client.publish("{\"text\":\"sport\",\"id\":\"b\"}", "news.sport");
  client.publish("{broken", "news.world");
  client.publish("{\"text\":\"two\",\"id\":\"c\"}", "news.world");
  client.settle();
  const auto source = open_nats(server, "/NEWS?subject=news.world&format=json&id=/id");
  const std::vector<Document> documents = read_documents(*source, 2);
  EXPECT_THAT(texts(documents), ElementsAre("one", "two"));
  EXPECT_EQ(documents[1].id, "c");
  EXPECT_THAT(source->notes(), ElementsAre(HasSubstr("1 records could not be read")));
  const auto other = open_nats(server, "/NEWS?subject=news.world&format=json&id=/id");
  ASSERT_TRUE(other->seek(documents[0].cursor).ok());
  EXPECT_EQ(other->bytes_read(), static_cast<int64_t>(std::string("{\"text\":\"one\",\"id\":\"a\"}").size()));
  EXPECT_THAT(texts(read_documents(*other, 1)), ElementsAre("two"));
  EXPECT_EQ(other->bytes_read(), source->bytes_read());
}

TEST(NatsSource, ShowsItsCredentials) {
  ServerProcess server(nats_server("--user me --pass secret"));
  NatsClient client(server, "me:secret@");
  client.add_stream();
  client.publish_numbered(1, 1);
  EXPECT_EQ(first_error(*open_nats(server)).code(), Code::kUnauthenticated);
  EXPECT_EQ(first_error(*open_nats(server, "/NEWS", "me:wrong@")).code(), Code::kUnauthenticated);
  EXPECT_EQ(read_documents(*open_nats(server, "/NEWS", "me:secret@"), 1).size(), 1u);
}

TEST(NatsSource, SpeaksTlsToAServerItTrusts) {
  const TestCertificate certificate, other;
  const std::string ca = certificate.certificate();
  ServerProcess server(nats_server("--tls --tlscert " + ca + " --tlskey " + certificate.key()));
  NatsClient client(server, "", ca);
  client.add_stream();
  client.publish_numbered(1, 2);
  EXPECT_THAT(texts(read_documents(*open_nats(server, "/NEWS?tls=1&ca=" + ca), 2)),
              ElementsAre("message 1", "message 2"));
  EXPECT_FALSE(first_error(*open_nats(server, "/NEWS?tls=1")).ok()) << "nobody vouches for it";
  EXPECT_FALSE(first_error(*open_nats(server, "/NEWS?tls=1&ca=" + other.certificate())).ok()) << "another does";
  EXPECT_THAT(first_error(*open_nats(server)).message(), HasSubstr("certificate")) << "TLS because the server wants it";
}

TEST(NatsSource, ACertificateOfAnotherHostIsNotEnough) {
  const TestCertificate certificate("DNS:elsewhere.example,IP:127.0.0.2");
  ServerProcess server(nats_server("--tls --tlscert " + certificate.certificate() + " --tlskey " + certificate.key()));
  const Status refused = first_error(*open_nats(server, "/NEWS?tls=1&ca=" + certificate.certificate()));
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition) << refused.message();
}

TEST(NatsSource, AServerThatStopsAnsweringIsNoticed) {
  ServerProcess server(nats_server());
  NatsClient client(server);
  client.add_stream();
  client.publish_numbered(1, 1);
  auto source = open_nats(server);
  EXPECT_EQ(read_documents(*source, 1).size(), 1u);
  server.signal(SIGSTOP);
  const auto begin = Deadline::Clock::now();
  const Status status = first_error(*source);
  EXPECT_EQ(status.code(), Code::kUnavailable) << status.message();
  EXPECT_LT(Deadline::Clock::now() - begin, std::chrono::seconds(10));
  source.reset();  // without an answer, too
  server.signal(SIGCONT);
}

TEST(NatsSource, NamesThatAreWrongAreRefusedWhenOpened) {
  for (const char* name :
       {"nats://host", "nats://host/", "nats:///S", "nats://h/a.b", "nats://h/S?colour=red", "nats://h/S?tls=2"})
    EXPECT_EQ(NatsSource::open(name).status().code(), Code::kInvalidArgument) << name;
}

}  // namespace
}  // namespace streamvec
#endif
