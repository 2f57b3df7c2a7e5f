// No broker can be had here: librdkafka's own mock cluster stands in for one.
#include "streamvec/source/broker/kafka_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "streamvec/source/broker/broker_testing.h"

#ifdef STREAMVEC_KAFKA
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

namespace streamvec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A cluster of two mock brokers and a producer that writes to it.
class Cluster {
 public:
  explicit Cluster(int partitions = 3) {
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    set(conf, "test.mock.num.brokers", "2");
    set(conf, "bootstrap.servers", "mock");
    set(conf, "linger.ms", "0");
    set(conf, "batch.num.messages", "20");  // what a mock broker drops, it drops by batch
    rd_kafka_conf_set_log_cb(conf, [](const rd_kafka_t*, int, const char*, const char*) {});
    producer_ = rd_kafka_new(RD_KAFKA_PRODUCER, conf, nullptr, 0);
    cluster_ = rd_kafka_handle_mock_cluster(producer_);
    EXPECT_EQ(rd_kafka_mock_topic_create(cluster_, "news", partitions, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  ~Cluster() { rd_kafka_destroy(producer_); }

  std::string authority() const {
    const std::string all = rd_kafka_mock_cluster_bootstraps(cluster_);
    return all.substr(0, all.find(','));
  }
  void produce(const std::string& key, const std::string& text, int partition) {
    const auto failure = rd_kafka_producev(
        producer_, RD_KAFKA_V_TOPIC("news"), RD_KAFKA_V_PARTITION(partition), RD_KAFKA_V_KEY(key.data(), key.size()),
        RD_KAFKA_V_VALUE(text.empty() ? nullptr : const_cast<char*>(text.data()), text.size()),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
    EXPECT_EQ(failure, RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  void produce_numbered(int first, int last, int partitions = 3) {
    for (int number = first; number <= last; ++number)
      produce("", "message " + std::to_string(number), number % partitions);
    settle();
  }
  void settle() { EXPECT_EQ(rd_kafka_flush(producer_, 10'000), RD_KAFKA_RESP_ERR_NO_ERROR); }
  void set_down(bool down) {
    for (const int32_t broker : {1, 2})
      down ? rd_kafka_mock_broker_set_down(cluster_, broker) : rd_kafka_mock_broker_set_up(cluster_, broker);
  }
  // What the broker knows of a group, in partition 0.
  int64_t committed(const std::string& group) {
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", authority().c_str());
    set(conf, "group.id", group.c_str());
    rd_kafka_t* client = rd_kafka_new(RD_KAFKA_CONSUMER, conf, nullptr, 0);
    rd_kafka_topic_partition_list_t* list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, "news", 0);
    EXPECT_EQ(rd_kafka_committed(client, list, 5'000), RD_KAFKA_RESP_ERR_NO_ERROR);
    const int64_t offset = list->elems[0].offset;
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy(client);
    return offset;
  }

 private:
  static void set(rd_kafka_conf_t* conf, const char* key, const char* value) {
    EXPECT_EQ(rd_kafka_conf_set(conf, key, value, nullptr, 0), RD_KAFKA_CONF_OK);
  }
  rd_kafka_t* producer_ = nullptr;
  rd_kafka_mock_cluster_t* cluster_ = nullptr;
};

std::unique_ptr<Source> open_kafka(const Cluster& cluster, const std::string& rest = "/news") {
  Result<std::unique_ptr<Source>> source = KafkaSource::open("kafka://" + cluster.authority() + rest);
  EXPECT_TRUE(source.ok()) << source.status().message();
  return std::move(*source);
}

TEST(KafkaSource, ReadsEveryPartitionAndThenWaitsForMore) {
  Cluster cluster;
  cluster.produce_numbered(1, 300);
  const auto source = open_kafka(cluster);
  std::map<std::string, int> counted;
  for (const Document& document : read_documents(*source, 300)) ++counted[document.text];
  expect_each_once(counted, 300);
  std::vector<Document> none;
  EXPECT_EQ(source->read(1, Deadline::after(std::chrono::milliseconds(100)), none).status().code(),
            Code::kDeadlineExceeded);
  cluster.produce_numbered(301, 301);
  const std::vector<Document> more = read_documents(*source, 1);
  EXPECT_THAT(texts(more), ElementsAre("message 301"));
  EXPECT_GT(more.at(0).time_s, 1'600'000'000);
  EXPECT_THAT(more.at(0).cursor, HasSubstr("{\"offsets\":[100,101,100],\"bytes\":"));
}

TEST(KafkaSource, ReadersOfPartsHaveEveryPartitionOnce) {
  Cluster cluster;
  cluster.produce_numbered(1, 300);
  std::map<std::string, int> counted;
  for (const auto& [part, messages] : {std::pair("/news?part=0/2", 200), std::pair("/news?part=1/2", 100)}) {
    const auto source = open_kafka(cluster, part);
    for (const Document& document : read_documents(*source, messages)) ++counted[document.text];
    std::vector<Document> none;
    EXPECT_EQ(source->read(1, Deadline::after(std::chrono::milliseconds(300)), none).status().code(),
              Code::kDeadlineExceeded)
        << part << " reads more than its partitions: " << testing::PrintToString(texts(none));
  }
  expect_each_once(counted, 300);
}

TEST(KafkaSource, ReadersThatShareItHaveEachMessageOnceWhoeverComesAndGoes) {
  Cluster cluster;
  std::map<std::string, int> counted;
  SharedCursor places;
  int produced = 0;
  for (const std::vector<uint64_t>& readers : {std::vector<uint64_t>{}, {1, 2}, {2, 3}}) {
    cluster.produce_numbered(produced + 1, produced + 90);
    produced += 90;
    const std::string begin = places.splits.empty() ? "" : places.text();
    for (const uint64_t reader : readers.empty() ? std::vector<uint64_t>{0} : readers) {
      const auto source = open_kafka(cluster, "/news?shared=1");
      EXPECT_TRUE(source->capabilities().shared);
      source->read_splits({reader, readers});
      ASSERT_TRUE(source->seek(begin).ok());
      int64_t own = 0;  // of the 90, a third in each partition
      for (const uint64_t partition : {0, 1, 2}) own += Splits{reader, readers}.has(partition) ? 30 : 0;
      const std::vector<Document> documents = read_documents(*source, own);
      for (const Document& document : documents) ++counted[document.text];
      if (!documents.empty()) places.merge(*SharedCursor::parse(documents.back().cursor));
    }
    expect_each_once(counted, produced);
  }
}

TEST(KafkaSource, CountsEachMessageOnceThroughKillsOfTheReader) {
  Cluster cluster;
  cluster.produce_numbered(1, 300);
  expect_each_once(count_through_restarts([&] { return open_kafka(cluster); }, 300, [](int) {}), 300);
}

TEST(KafkaSource, GoesOnWhenTheBrokersAreAwayForAWhile) {
  Cluster cluster;
  cluster.produce_numbered(1, 60);
  const auto source = open_kafka(cluster, "/news?reconnect.backoff.ms=20&reconnect.backoff.max.ms=100");
  std::map<std::string, int> counted;
  for (const Document& document : read_documents(*source, 60)) ++counted[document.text];
  cluster.set_down(true);
  const Status status = first_error(*source);
  EXPECT_EQ(status.code(), Code::kUnavailable) << status.message();
  cluster.set_down(false);
  cluster.produce_numbered(61, 90);
  for (const Document& document : read_documents(*source, 30)) ++counted[document.text];
  expect_each_once(counted, 90);
}

TEST(KafkaSource, TellsTheGroupWhatIsCommitted) {
  Cluster cluster(1);
  cluster.produce_numbered(1, 20, 1);
  auto source = open_kafka(cluster, "/news?group=readers");
  const std::vector<Document> documents = read_documents(*source, 20);
  ASSERT_EQ(documents.size(), 20u);
  EXPECT_LT(cluster.committed("readers"), 0);
  EXPECT_EQ(source->commit("nonsense").code(), Code::kInvalidArgument);
  ASSERT_TRUE(source->commit(documents[11].cursor).ok());
  source.reset();
  EXPECT_EQ(cluster.committed("readers"), 12) << "though it is the last that the source does";
  const auto other = open_kafka(cluster, "/news?group=readers");
  EXPECT_EQ(read_documents(*other, 1).at(0).text, "message 1") << "the cursor decides, not the group";
}

TEST(KafkaSource, NotesWhatRetentionTook) {
  Cluster cluster(1);
  cluster.produce_numbered(1, 3, 1);
  const std::string saved = read_documents(*open_kafka(cluster), 3).at(2).cursor;
  for (int i = 0; i < 200; ++i) cluster.produce("", std::string(50'000, 'x'), 0);  // a mock partition keeps 5 MB
  cluster.settle();
  const auto source = open_kafka(cluster);
  ASSERT_TRUE(source->seek(saved).ok());
  EXPECT_EQ(read_documents(*source, 10).size(), 10u);
  EXPECT_THAT(source->notes(), ElementsAre(HasSubstr("messages were gone from the topic")));
}

TEST(KafkaSource, KeysNameDocumentsAndTombstonesWithdrawThem) {
  Cluster cluster(1);
  cluster.produce("k1", "{\"text\":\"one\"}", 0);
  cluster.produce("k2", "{broken", 0);
  cluster.produce("k1", "", 0);
  cluster.settle();
  const auto source = open_kafka(cluster, "/news?format=json");
  const std::vector<Document> documents = read_documents(*source, 2);
  ASSERT_EQ(documents.size(), 2u);
  EXPECT_EQ(documents[0].text, "one");
  EXPECT_EQ(documents[0].id, "k1");
  EXPECT_TRUE(documents[1].deleted);
  EXPECT_EQ(documents[1].id, "k1");
  EXPECT_THAT(source->notes(), ElementsAre(HasSubstr("1 records could not be read")));
}

TEST(KafkaSource, ATopicMadeAnewIsRefused) {
  Cluster cluster(1);
  cluster.produce_numbered(1, 3, 1);
  const auto source = open_kafka(cluster);
  ASSERT_TRUE(source->seek("{\"offsets\":[50],\"bytes\":1}").ok());
  EXPECT_EQ(first_error(*source).code(), Code::kFailedPrecondition);
  const auto wider = open_kafka(cluster);
  ASSERT_TRUE(wider->seek("{\"offsets\":[1,1],\"bytes\":1}").ok());
  EXPECT_EQ(first_error(*wider).code(), Code::kFailedPrecondition);
  for (const char* cursor : {"x", "{}", "{\"offsets\":[\"a\"],\"bytes\":1}", "{\"offsets\":1,\"bytes\":1}"})
    EXPECT_EQ(wider->seek(cursor).code(), Code::kInvalidArgument) << cursor;
}

TEST(KafkaSource, BrokersThatCannotBeReachedAreUnavailableAndClosingIsQuick) {
  const int port = free_port();
  Result<std::unique_ptr<Source>> source = KafkaSource::open("kafka://127.0.0.1:" + std::to_string(port) + "/news");
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(first_error(**source).code(), Code::kUnavailable);
  const auto begin = Deadline::Clock::now();
  source->reset();
  EXPECT_LT(Deadline::Clock::now() - begin, std::chrono::seconds(10));
}

// A broker that says which requests it knows, answers nothing else, and keeps what it heard.
class DeafBroker {
 public:
  DeafBroker() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 16), 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    authority_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this] { hear(); });
  }
  ~DeafBroker() {
    thread_.join();
    ::close(listener_);
  }
  const std::string& authority() const { return authority_; }
  // All that came within a second from the first who connected.
  std::string heard() {
    thread_.join();
    thread_ = std::thread([] {});
    return heard_;
  }

 private:
  void hear() {
    pollfd wanted = {listener_, POLLIN, 0};
    if (::poll(&wanted, 1, 10'000) != 1) return;
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    wanted.fd = socket;
    for (char room[4096]; ::poll(&wanted, 1, 1'000) == 1;) {
      const ssize_t size = ::recv(socket, room, sizeof room, 0);
      if (size <= 0) break;
      const std::string request(room, static_cast<size_t>(size));
      heard_ += request;
      if (request.substr(4, 2) == std::string("\0\x12", 2)) answer_versions(socket, request.substr(8, 4));
    }
    ::close(socket);
  }
  // ApiVersions 3: Metadata 0 to 1, SaslHandshake 0 to 1, ApiVersions 0 to 3.
  static void answer_versions(int socket, const std::string& correlation) {
    const std::string body = correlation + std::string(
                                               "\0\0\4"
                                               "\0\3\0\0\0\1\0"
                                               "\0\x11\0\0\0\1\0"
                                               "\0\x12\0\0\0\3\0"
                                               "\0\0\0\0\0",
                                               29);
    const std::string answer = std::string("\0\0\0", 3) + static_cast<char>(body.size()) + body;
    EXPECT_EQ(::send(socket, answer.data(), answer.size(), MSG_NOSIGNAL), static_cast<ssize_t>(answer.size()));
  }

  int listener_;
  std::string authority_, heard_;
  std::thread thread_;
};

// What a reader tells a broker before anything else.
std::string first_words(const std::string& login, const std::string& rest) {
  DeafBroker broker;
  const auto source = KafkaSource::open("kafka://" + login + broker.authority() + rest);
  EXPECT_TRUE(source.ok()) << source.status().message();
  std::vector<Document> none;
  EXPECT_FALSE((*source)->read(1, Deadline::after(std::chrono::milliseconds(100)), none).ok());
  return broker.heard();
}

TEST(KafkaSource, TlsAndLoginReachTheBroker) {
  EXPECT_THAT(first_words("", "/news?tls=1"), StartsWith("\x16\x03")) << "a TLS handshake";
  EXPECT_THAT(first_words("me:secret@", "/news?tls=1"), StartsWith("\x16\x03"));
  EXPECT_THAT(first_words("me:secret@", "/news"), HasSubstr("PLAIN"));
  EXPECT_THAT(first_words("me:secret@", "/news?sasl=SCRAM-SHA-256"), HasSubstr("SCRAM-SHA-256"));
}

TEST(KafkaSource, SecuritySettingsThatCannotBeAreNamed) {
  const auto failure = [](const std::string& name) {
    const auto source = KafkaSource::open("kafka://" + name);
    EXPECT_TRUE(source.ok()) << source.status().message();
    return first_error(**source);
  };
  const Status no_file = failure("127.0.0.1:1/news?tls=1&ca=/nowhere.pem");
  EXPECT_EQ(no_file.code(), Code::kInvalidArgument);
  EXPECT_THAT(no_file.message(), HasSubstr("/nowhere.pem"));
  const Status no_mechanism = failure("me:secret@127.0.0.1:1/news?sasl=ROT13");
  EXPECT_EQ(no_mechanism.code(), Code::kInvalidArgument);
  EXPECT_THAT(no_mechanism.message(), HasSubstr("ROT13"));
  EXPECT_EQ(failure("127.0.0.1:1/news?ssl.no.such=1").code(), Code::kInvalidArgument);
}

TEST(KafkaSource, NamesThatAreWrongAreRefusedWhenOpenedOrFirstRead) {
  for (const char* name : {"kafka://host", "kafka://host/", "kafka:///t", "kafka://h/t?colour=red", "kafka://h/t?tls=2",
                           "kafka://h/t?part=2/2", "kafka://h/t?part=1", "kafka://h/t?part=0/2x",
                           "kafka://h/t?shared=1&part=0/2", "kafka://h/t?shared=2"})
    EXPECT_EQ(KafkaSource::open(name).status().code(), Code::kInvalidArgument) << name;
  EXPECT_EQ(first_error(**KafkaSource::open("kafka://h/t?no.such.thing=1")).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace streamvec
#endif
