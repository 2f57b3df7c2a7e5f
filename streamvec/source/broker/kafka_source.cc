#include "streamvec/source/broker/kafka_source.h"

#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "streamvec/core/json.h"
#include "streamvec/source/broker/part.h"
#include "streamvec/source/broker/reconnect.h"
#include "streamvec/source/live/connection.h"
#include "streamvec/source/live/record_intake.h"
#include "streamvec/source/location.h"

namespace streamvec {
namespace {

using Json = nlohmann::json;

constexpr size_t kBatch = 512;
constexpr int kPollMs = 1'000, kMetadataMs = 2'000, kCommitMs = 2'000;
constexpr std::chrono::seconds kLookAgain{60};

struct KafkaDeleter {
  void operator()(rd_kafka_t* kafka) const { rd_kafka_destroy_flags(kafka, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE); }
  void operator()(rd_kafka_conf_t* conf) const { rd_kafka_conf_destroy(conf); }
  void operator()(rd_kafka_topic_t* topic) const { rd_kafka_topic_destroy(topic); }
  void operator()(rd_kafka_queue_t* queue) const { rd_kafka_queue_destroy(queue); }
  void operator()(rd_kafka_event_t* event) const { rd_kafka_event_destroy(event); }
  void operator()(rd_kafka_message_t* message) const { rd_kafka_message_destroy(message); }
  void operator()(const rd_kafka_metadata_t* metadata) const { rd_kafka_metadata_destroy(metadata); }
  void operator()(rd_kafka_topic_partition_list_t* list) const { rd_kafka_topic_partition_list_destroy(list); }
};
using Kafka = std::unique_ptr<rd_kafka_t, KafkaDeleter>;
using Queue = std::unique_ptr<rd_kafka_queue_t, KafkaDeleter>;
using Event = std::unique_ptr<rd_kafka_event_t, KafkaDeleter>;
using Message = std::unique_ptr<rd_kafka_message_t, KafkaDeleter>;
using PartitionList = std::unique_ptr<rd_kafka_topic_partition_list_t, KafkaDeleter>;

struct Settings {
  Location location;
  std::string topic, group;
  Part part;
  bool shared = false;
  std::vector<std::pair<std::string, std::string>> properties;  // librdkafka's
};

// What a source knows of its place: the next offset of each partition, -1 for the beginning.
using Offsets = std::vector<int64_t>;

Result<Offsets> parse_cursor(const std::string& cursor, int64_t* bytes) {
  const Json all = parse_json(cursor);
  const auto whole = [](const Json& value) { return value.is_number_integer(); };
  if (!all.is_object() || !all.contains("offsets") || !all["offsets"].is_array() || !all.contains("bytes") ||
      !whole(all["bytes"]) || !std::all_of(all["offsets"].begin(), all["offsets"].end(), whole))
    return error(Code::kInvalidArgument, "not a cursor of a Kafka topic: ", cursor.substr(0, 100));
  if (bytes != nullptr) *bytes = all["bytes"].get<int64_t>();
  return all["offsets"].get<Offsets>();
}

class KafkaTopic : public Source {
 public:
  KafkaTopic(Settings settings, RecordFormat format) : settings_(std::move(settings)), intake_(std::move(format)) {}

  Result<int64_t> read(int64_t count_max, Deadline deadline, std::vector<Document>& out) override;
  Status seek(const std::string& cursor) override;
  Status commit(const std::string& cursor) override;
  void read_splits(Splits splits) override { splits_ = std::move(splits); }
  Capabilities capabilities() const override { return {.endless = true, .remote = true, .shared = settings_.shared}; }
  int64_t bytes_total() const override { return -1; }
  int64_t bytes_read() const override { return bytes_read_; }
  std::string name() const override { return settings_.location.name; }
  std::vector<std::string> notes() const override;

 private:
  Status start();
  Status look_for_partitions(int wait_ms);
  Status assign();
  Status fetch(size_t count, int wait_ms, std::vector<Document>& out);
  Status take(const rd_kafka_message_t& message, std::vector<Document>& out);
  Status take_error(const rd_kafka_message_t& message);
  Status go_to_what_is_left(int32_t partition);
  PartitionList partition_list() const;
  std::string cursor() const;
  Result<Offsets> offsets_of(const std::string& cursor, int64_t* bytes) const;
  bool is_ours(size_t partition) const { return settings_.part.has(partition) && splits_.has(partition); }
  static void on_error(rd_kafka_t* kafka, int code, const char* reason, void* self);

  const Settings settings_;
  RecordIntake intake_;
  Reconnect reconnect_;
  Kafka kafka_;
  Queue queue_;
  Splits splits_;
  Offsets next_;
  bool assigned_ = false, topic_seen_ = false;
  Deadline::Clock::time_point looked_at_{};
  Status trouble_;  // what librdkafka complained of since the last message
  int64_t bytes_read_ = 0, gone_ = 0;
};

Result<Offsets> KafkaTopic::offsets_of(const std::string& cursor, int64_t* bytes) const {
  if (!settings_.shared) return parse_cursor(cursor, bytes);
  STREAMVEC_ASSIGN_OR_RETURN(SharedCursor shared, SharedCursor::parse(cursor));
  if (bytes != nullptr) *bytes = shared.bytes;
  return std::move(shared.splits);
}

Status KafkaTopic::seek(const std::string& cursor) {
  Offsets offsets;
  int64_t bytes = 0;
  if (!cursor.empty()) {
    STREAMVEC_ASSIGN_OR_RETURN(offsets, offsets_of(cursor, &bytes));
  }
  queue_.reset();
  kafka_.reset();
  assigned_ = false;
  next_ = std::move(offsets);
  bytes_read_ = bytes;
  return {};
}

Result<int64_t> KafkaTopic::read(int64_t count_max, Deadline deadline, std::vector<Document>& out) {
  const size_t before = out.size();
  if (kafka_ == nullptr) STREAMVEC_RETURN_IF_ERROR(start());
  for (;;) {
    if (!assigned_ || Deadline::Clock::now() - looked_at_ > kLookAgain) {
      STREAMVEC_RETURN_IF_ERROR(reconnect_.wait(deadline));
      Status status = look_for_partitions(kMetadataMs);
      if (!status.ok() && (!assigned_ || status.code() != Code::kUnavailable))
        return reconnect_.failed(std::move(status));
    }
    const auto count = static_cast<size_t>(std::min<int64_t>(count_max, kBatch));
    STREAMVEC_RETURN_IF_ERROR(fetch(count, milliseconds_left(deadline, kPollMs), out));
    if (out.size() > before) return static_cast<int64_t>(out.size() - before);
    if (!deadline.passed()) continue;
    return trouble_.ok() ? error(Code::kDeadlineExceeded, "no message came from ", name(), " in time") : trouble_;
  }
}

// Called from rd_kafka_consume*, in the reader's own thread.
void KafkaTopic::on_error(rd_kafka_t*, int code, const char* reason, void* self) {
  auto& topic = *static_cast<KafkaTopic*>(self);
  const bool refused = code == RD_KAFKA_RESP_ERR__AUTHENTICATION && !topic.topic_seen_;
  topic.trouble_ = error(refused ? Code::kUnauthenticated : Code::kUnavailable, topic.name(), ": ", reason);
}

Status KafkaTopic::start() {
  std::unique_ptr<rd_kafka_conf_t, KafkaDeleter> conf(rd_kafka_conf_new());
  std::array<char, 512> why = {};
  for (const auto& [key, value] : settings_.properties)
    if (rd_kafka_conf_set(conf.get(), key.c_str(), value.c_str(), why.data(), why.size()) != RD_KAFKA_CONF_OK)
      return error(Code::kInvalidArgument, name(), ": ", why.data());
  rd_kafka_conf_set_log_cb(conf.get(), [](const rd_kafka_t*, int, const char*, const char*) {});
  rd_kafka_conf_set_error_cb(conf.get(), on_error);
  rd_kafka_conf_set_opaque(conf.get(), this);
  kafka_.reset(rd_kafka_new(RD_KAFKA_CONSUMER, conf.get(), why.data(), why.size()));
  if (kafka_ == nullptr) return error(Code::kInvalidArgument, name(), ": ", why.data());
  (void)conf.release();  // it is the client's now
  rd_kafka_poll_set_consumer(kafka_.get());
  queue_.reset(rd_kafka_queue_get_consumer(kafka_.get()));
  return {};
}

Status KafkaTopic::look_for_partitions(int wait_ms) {
  const std::unique_ptr<rd_kafka_topic_t, KafkaDeleter> topic(
      rd_kafka_topic_new(kafka_.get(), settings_.topic.c_str(), nullptr));
  if (topic == nullptr) return error(Code::kInvalidArgument, name(), ": ", settings_.topic, " is no topic's name");
  const rd_kafka_metadata_t* found = nullptr;
  const rd_kafka_resp_err_t failure = rd_kafka_metadata(kafka_.get(), 0, topic.get(), &found, wait_ms);
  looked_at_ = Deadline::Clock::now();
  if (failure != RD_KAFKA_RESP_ERR_NO_ERROR) {
    rd_kafka_poll(kafka_.get(), 0);
    return trouble_.ok() ? error(Code::kUnavailable, name(), ": ", rd_kafka_err2str(failure)) : trouble_;
  }
  const std::unique_ptr<const rd_kafka_metadata_t, KafkaDeleter> metadata(found);
  const rd_kafka_metadata_topic_t* described = metadata->topic_cnt == 1 ? &metadata->topics[0] : nullptr;
  if (described == nullptr || described->err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
      (described->err == RD_KAFKA_RESP_ERR_NO_ERROR && described->partition_cnt == 0))
    return error(topic_seen_ ? Code::kUnavailable : Code::kNotFound, name(), ": the brokers have no topic \"",
                 settings_.topic, "\"");
  if (described->err != RD_KAFKA_RESP_ERR_NO_ERROR)
    return error(Code::kUnavailable, name(), ": ", rd_kafka_err2str(described->err));
  const auto partitions = static_cast<size_t>(described->partition_cnt);
  if (partitions < next_.size())
    return error(Code::kFailedPrecondition, name(), ": the topic has ", partitions, " partitions, but ", next_.size(),
                 " were read: it has been made anew; train into another directory");
  topic_seen_ = true;
  const bool grown = partitions > next_.size();
  next_.resize(partitions, -1);
  return assigned_ && !grown ? Status() : assign();
}

PartitionList KafkaTopic::partition_list() const {
  PartitionList list(rd_kafka_topic_partition_list_new(static_cast<int>(next_.size())));
  for (size_t i = 0; i < next_.size(); ++i)
    if (is_ours(i))
      rd_kafka_topic_partition_list_add(list.get(), settings_.topic.c_str(), static_cast<int32_t>(i))->offset =
          next_[i] < 0 ? RD_KAFKA_OFFSET_BEGINNING : next_[i];
  return list;
}

Status KafkaTopic::assign() {
  const rd_kafka_resp_err_t failure = rd_kafka_assign(kafka_.get(), partition_list().get());
  assigned_ = failure == RD_KAFKA_RESP_ERR_NO_ERROR;
  if (!assigned_) return error(Code::kUnavailable, name(), ": ", rd_kafka_err2str(failure));
  reconnect_.succeeded();
  return {};
}

// Waits for one message and takes those that lie ready beside it. Those past an error are asked for again.
Status KafkaTopic::fetch(size_t count, int wait_ms, std::vector<Document>& out) {
  std::array<rd_kafka_message_t*, kBatch> messages;
  ssize_t got = rd_kafka_consume_batch_queue(queue_.get(), wait_ms, messages.data(), 1);
  if (got == 1 && count > 1)
    got += std::max<ssize_t>(0, rd_kafka_consume_batch_queue(queue_.get(), 0, messages.data() + 1, count - 1));
  Status status;
  for (ssize_t i = 0; i < got; ++i) {
    const Message message(messages[static_cast<size_t>(i)]);
    if (status.ok()) status = message->err != RD_KAFKA_RESP_ERR_NO_ERROR ? take_error(*message) : take(*message, out);
  }
  return status;
}

Status KafkaTopic::take_error(const rd_kafka_message_t& message) {
  switch (message.err) {
    case RD_KAFKA_RESP_ERR__PARTITION_EOF:
      trouble_ = {};
      return {};
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
    case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
      return go_to_what_is_left(message.partition);
    default:
      trouble_ = error(Code::kUnavailable, name(), ": ", rd_kafka_message_errstr(&message));
      return {};
  }
}

// The offset is outside of what the broker has.
Status KafkaTopic::go_to_what_is_left(int32_t partition) {
  int64_t low = 0, high = 0;
  const rd_kafka_resp_err_t failure =
      rd_kafka_query_watermark_offsets(kafka_.get(), settings_.topic.c_str(), partition, &low, &high, kMetadataMs);
  assigned_ = false;
  if (failure != RD_KAFKA_RESP_ERR_NO_ERROR) return error(Code::kUnavailable, name(), ": ", rd_kafka_err2str(failure));
  int64_t& next = next_.at(static_cast<size_t>(partition));
  if (next > high)
    return error(Code::kFailedPrecondition, name(), ": partition ", partition, " ends with offset ", high,
                 ", but everything before ", next, " was read: it has been made anew; train into another directory");
  if (next < low) gone_ += low - std::max<int64_t>(next, 0);
  next = std::max(next, low);
  return assign();
}

Status KafkaTopic::take(const rd_kafka_message_t& message, std::vector<Document>& out) {
  trouble_ = {};
  const auto partition = static_cast<size_t>(message.partition);
  if (partition >= next_.size() || message.offset < next_[partition]) return {};
  next_[partition] = message.offset + 1;
  bytes_read_ += static_cast<int64_t>(message.len);
  const std::string key(static_cast<const char*>(message.key), message.key == nullptr ? 0 : message.key_len);
  Document document;
  if (message.payload == nullptr && !key.empty()) {
    document.deleted = true;
  } else if (!intake_.take({static_cast<const char*>(message.payload), message.len}, document)) {
    return {};
  }
  if (document.id.empty()) document.id = key;
  if (document.time_s == 0)
    document.time_s = std::max<int64_t>(0, rd_kafka_message_timestamp(&message, nullptr)) / 1'000;
  document.cursor = cursor();
  out.push_back(std::move(document));
  return {};
}

std::string KafkaTopic::cursor() const {
  if (settings_.shared) return SharedCursor{next_, bytes_read_}.text();
  std::string text = "{\"offsets\":[";
  for (size_t i = 0; i < next_.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(next_[i]);
  return text + "],\"bytes\":" + std::to_string(bytes_read_) + "}";
}

// The broker's own record is for others to see, the checkpoint is what counts: nobody waits for it long.
Status KafkaTopic::commit(const std::string& cursor) {
  STREAMVEC_ASSIGN_OR_RETURN(const Offsets offsets, offsets_of(cursor, nullptr));
  if (settings_.group.empty() || kafka_ == nullptr) return {};
  const PartitionList list(rd_kafka_topic_partition_list_new(static_cast<int>(offsets.size())));
  for (size_t i = 0; i < offsets.size(); ++i)
    if (offsets[i] >= 0 && is_ours(i))
      rd_kafka_topic_partition_list_add(list.get(), settings_.topic.c_str(), static_cast<int32_t>(i))->offset =
          offsets[i];
  const Queue answers(rd_kafka_queue_new(kafka_.get()));
  rd_kafka_resp_err_t failure = rd_kafka_commit_queue(kafka_.get(), list.get(), answers.get(), nullptr, nullptr);
  if (failure == RD_KAFKA_RESP_ERR_NO_ERROR) {
    const Event answer(rd_kafka_queue_poll(answers.get(), kCommitMs));
    failure = answer == nullptr ? RD_KAFKA_RESP_ERR__TIMED_OUT : rd_kafka_event_error(answer.get());
  }
  if (failure == RD_KAFKA_RESP_ERR_NO_ERROR) return {};
  return error(Code::kUnavailable, name(), ": telling the group failed: ", rd_kafka_err2str(failure));
}

std::vector<std::string> KafkaTopic::notes() const {
  std::vector<std::string> notes;
  if (gone_ > 0)
    notes.push_back(name() + ": " + std::to_string(gone_) + " messages were gone from the topic before they were read");
  intake_.append_notes(name(), notes);
  return notes;
}

void add_security(const Location& location, bool tls, std::vector<std::pair<std::string, std::string>>& properties) {
  const bool login = !location.user.empty();
  if (tls || login) properties.emplace_back("security.protocol", login ? (tls ? "sasl_ssl" : "sasl_plaintext") : "ssl");
  if (tls && !location.text("ca").empty()) properties.emplace_back("ssl.ca.location", location.text("ca"));
  if (!login) return;
  properties.emplace_back("sasl.mechanism", location.text("sasl", "PLAIN"));
  properties.emplace_back("sasl.username", location.user);
  properties.emplace_back("sasl.password", location.password);
}

}  // namespace

Result<std::unique_ptr<Source>> KafkaSource::open(const std::string& name) {
  Settings settings;
  STREAMVEC_ASSIGN_OR_RETURN(settings.location, Location::parse(name));
  Location& location = settings.location;
  settings.topic = location.path.empty() ? "" : location.path.substr(1);
  settings.group = location.text("group");
  if (location.host.empty() || settings.topic.empty())
    return error(Code::kInvalidArgument, location.name, ": write kafka://HOST[:PORT]/TOPIC");
  const Peer peer = {.host = location.host, .port = location.port != 0 ? location.port : 9092};
  settings.properties = {{"bootstrap.servers", peer.authority()},
                         {"group.id", settings.group.empty() ? "streamvec" : settings.group},
                         {"client.id", "streamvec"},
                         {"enable.auto.commit", "false"},
                         {"enable.auto.offset.store", "false"},
                         {"enable.partition.eof", "true"},
                         {"auto.offset.reset", "error"},
                         {"allow.auto.create.topics", "false"},
                         {"queued.max.messages.kbytes", "16384"},
                         {"reconnect.backoff.max.ms", "5000"}};
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t tls, location.integer("tls", 0, 0, 1));
  add_security(location, tls == 1, settings.properties);
  for (const auto& [key, value] : location.query)
    if (key.find('.') != std::string::npos) settings.properties.emplace_back(key, value);
  std::erase_if(location.query, [](const auto& setting) { return setting.first.find('.') != std::string::npos; });
  STREAMVEC_RETURN_IF_ERROR(RecordFormat::check_keys(location, {"group", "part", "shared", "tls", "ca", "sasl"}));
  STREAMVEC_ASSIGN_OR_RETURN(settings.part, Part::of(location));
  STREAMVEC_ASSIGN_OR_RETURN(settings.shared, is_shared(location));
  STREAMVEC_ASSIGN_OR_RETURN(RecordFormat format, RecordFormat::from(location));
  return std::unique_ptr<Source>(std::make_unique<KafkaTopic>(std::move(settings), std::move(format)));
}

}  // namespace streamvec
