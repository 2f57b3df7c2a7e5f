// mock_kafka TOPIC PARTITIONS: librdkafka's mock cluster as a process of its own, so that several programs can read
// from it over TCP on loopback. It is no Kafka: what a real broker keeps on disk, replicates or refuses is not in it.
// Prints a broker's address, HOST:PORT, as its first line. A line of standard input is PARTITION, a tab and a document,
// which it produces; an empty line is answered, with how many documents the topic has, when all of them are stored.
// Ends when its input does; leaves with 1 and a line that says why when something failed, with 2 when it is misused.
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

namespace {

constexpr int kStoreMs = 60'000;

int leave(int code, const std::string& why) {
  std::fprintf(stderr, "mock_kafka: %s\n", why.c_str());
  return code;
}

// -1 for what is no number from 0 on.
int32_t number_of(const std::string& text) {
  int32_t number = -1;
  const char* end = text.data() + text.size();
  return std::from_chars(text.data(), end, number).ptr == end ? number : -1;
}

void count_stored(rd_kafka_t*, const rd_kafka_message_t* message, void* stored) {
  if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) ++*static_cast<int64_t*>(stored);
}

// Produces what the input says. `stored` is counted meanwhile by count_stored(), in this thread.
int produce(rd_kafka_t* producer, const std::string& topic, const int64_t& stored) {
  for (std::string line; std::getline(std::cin, line);) {
    if (line.empty()) {
      if (rd_kafka_flush(producer, kStoreMs) != RD_KAFKA_RESP_ERR_NO_ERROR) return leave(1, "storing took too long");
      std::cout << stored << std::endl;
      continue;
    }
    const size_t tab = line.find('\t');
    const int32_t partition = tab == std::string::npos ? -1 : number_of(line.substr(0, tab));
    if (partition < 0) return leave(2, "a line is PARTITION, a tab and a document, not " + line.substr(0, 100));
    std::string text = line.substr(tab + 1);
    const rd_kafka_resp_err_t failure = rd_kafka_producev(
        producer, RD_KAFKA_V_TOPIC(topic.c_str()), RD_KAFKA_V_PARTITION(partition),
        RD_KAFKA_V_VALUE(text.data(), text.size()), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
    if (failure != RD_KAFKA_RESP_ERR_NO_ERROR) return leave(1, rd_kafka_err2str(failure));
    rd_kafka_poll(producer, 0);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int32_t partitions = argc == 3 ? number_of(argv[2]) : -1;
  if (partitions < 1) return leave(2, "give a topic and how many partitions it has");
  const std::string topic = argv[1];
  int64_t stored = 0;
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  rd_kafka_conf_set(conf, "test.mock.num.brokers", "2", nullptr, 0);
  rd_kafka_conf_set(conf, "linger.ms", "0", nullptr, 0);
  rd_kafka_conf_set_log_cb(conf, [](const rd_kafka_t*, int, const char*, const char*) {});
  rd_kafka_conf_set_dr_msg_cb(conf, count_stored);
  rd_kafka_conf_set_opaque(conf, &stored);
  std::array<char, 512> why = {};
  const std::unique_ptr<rd_kafka_t, decltype(&rd_kafka_destroy)> producer(
      rd_kafka_new(RD_KAFKA_PRODUCER, conf, why.data(), why.size()), &rd_kafka_destroy);
  if (producer == nullptr) return leave(1, why.data());
  rd_kafka_mock_cluster_t* brokers = rd_kafka_handle_mock_cluster(producer.get());
  const rd_kafka_resp_err_t failure = rd_kafka_mock_topic_create(brokers, topic.c_str(), partitions, 1);
  if (failure != RD_KAFKA_RESP_ERR_NO_ERROR) return leave(1, rd_kafka_err2str(failure));
  const std::string addresses = rd_kafka_mock_cluster_bootstraps(brokers);
  std::cout << addresses.substr(0, addresses.find(',')) << std::endl;
  return produce(producer.get(), topic, stored);
}
