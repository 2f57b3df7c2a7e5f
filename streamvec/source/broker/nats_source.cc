#include "streamvec/source/broker/nats_source.h"

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>
#include <vector>

#include "streamvec/core/json.h"
#include "streamvec/source/broker/nats_handles.h"
#include "streamvec/source/broker/part.h"
#include "streamvec/source/broker/reconnect.h"
#include "streamvec/source/live/connection.h"
#include "streamvec/source/live/record_intake.h"
#include "streamvec/source/location.h"

namespace streamvec {
namespace {

using Json = nlohmann::json;

constexpr int64_t kNanosecondsPerSecond = 1'000'000'000,
                  kBatchBytes = int64_t{72} << 20;  // a message has 64 MiB at most
constexpr int kBatch = 256, kRequestWaitMs = 1'000, kRequestSeconds = 30;
constexpr size_t kMarksMax = 65'536;
constexpr size_t kSplits = 64;  // of a shared stream, by sequence; another number would not find its cursors again
constexpr int64_t kNoLimit = 1'000'000'000;  // the client library leaves out -1, and the server then takes 1,000

using namespace nats;

struct Settings {
  Location location;
  std::string stream, subject, durable;
  Part part;
  int64_t pending_max = 0;
  bool tls = false, shared = false;
};

// How the consumer is told what is safe.
enum class Acknowledge { kNothing, kUpTo, kEach };

class NatsStream : public Source {
 public:
  NatsStream(Settings settings, RecordFormat format) : settings_(std::move(settings)), intake_(std::move(format)) {
    places_.splits.resize(kSplits, 0);
  }
  ~NatsStream() override { hang_up(); }

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
  struct Mark {  // a message that was delivered and is not acknowledged
    uint64_t sequence;
    std::string reply;
  };

  Status subscribe();
  Status connect();
  Status inspect_stream();
  Status make_consumer();
  Status await_deliveries(const char* consumer);
  Status fetch(int count, Deadline deadline, std::vector<Document>& out);
  Status request();
  Status take_status(natsMsg* message, std::string_view status);
  Status take(natsMsg* message, std::vector<Document>& out);
  Status seek_splits(const std::string& cursor);
  bool is_ours(uint64_t sequence) const;
  std::string cursor();
  void mark(uint64_t sequence, const char* reply);
  Status acknowledge_up_to(uint64_t sequence);
  Status lose(Status status);
  void hang_up();
  Status failure(natsStatus status, std::string_view doing) const;
  static Result<uint64_t> sequence_of(const std::string& cursor, int64_t* bytes);

  const Settings settings_;
  RecordIntake intake_;
  Reconnect reconnect_;
  Closed closed_;
  Server server_;
  Jetstream jetstream_;
  Inbox inbox_;
  Subscription subscription_;
  std::string request_subject_;
  int outstanding_ = 0;  // messages of the last request that may still come
  Deadline::Clock::time_point request_ends_{};
  bool stream_seen_ = false;
  Acknowledge acknowledge_ = Acknowledge::kNothing;
  Splits splits_;
  SharedCursor places_;     // of a shared stream: the last message that was read of each split
  uint64_t handed_ = 0;     // sequence of the last message taken: everything up to it is passed over
  uint64_t committed_ = 0;  // everything up to it is safe
  uint64_t delivery_ = 0;   // the consumer's own count of deliveries, which has no holes
  std::deque<Mark> marks_;
  int64_t bytes_read_ = 0, gone_ = 0;
};

Status NatsStream::failure(natsStatus status, std::string_view doing) const {
  const char* detail = nats_GetLastError(nullptr);
  const std::string why = std::string(natsStatus_GetText(status)) + (detail != nullptr && *detail != '\0' ? ": " : "") +
                          (detail != nullptr ? detail : "");
  const Code code = status == NATS_CONNECTION_AUTH_FAILED       ? Code::kUnauthenticated
                    : status == NATS_NOT_PERMITTED              ? Code::kPermissionDenied
                    : status == NATS_SSL_ERROR                  ? Code::kFailedPrecondition
                    : status == NATS_SECURE_CONNECTION_WANTED   ? Code::kFailedPrecondition
                    : status == NATS_SECURE_CONNECTION_REQUIRED ? Code::kFailedPrecondition
                                                                : Code::kUnavailable;
  return error(code, name(), ": ", doing, " failed: ", why,
               status == NATS_SECURE_CONNECTION_REQUIRED ? "; add tls=1" : "");
}

Result<uint64_t> NatsStream::sequence_of(const std::string& cursor, int64_t* bytes) {
  const Json all = parse_json(cursor);
  if (!all.is_object() || !all.contains("sequence") || !all["sequence"].is_number_unsigned() ||
      !all.contains("bytes") || !all["bytes"].is_number_integer())
    return error(Code::kInvalidArgument, "not a cursor of a NATS stream: ", cursor.substr(0, 100));
  if (bytes != nullptr) *bytes = all["bytes"].get<int64_t>();
  return all["sequence"].get<uint64_t>();
}

// Begins with the least of what its splits lack, and passes over what others of them have.
Status NatsStream::seek_splits(const std::string& cursor) {
  SharedCursor places;
  if (!cursor.empty()) {
    STREAMVEC_ASSIGN_OR_RETURN(places, SharedCursor::parse(cursor));
  }
  if (places.splits.size() > kSplits)
    return error(Code::kInvalidArgument, "not a cursor of a shared NATS stream: ", cursor.substr(0, 100));
  places.splits.resize(kSplits, 0);
  hang_up();
  places_ = std::move(places);
  bytes_read_ = places_.bytes;
  int64_t least = *std::max_element(places_.splits.begin(), places_.splits.end());
  for (size_t split = 0; split < kSplits; ++split)
    if (splits_.has(split)) least = std::min(least, places_.splits[split]);
  handed_ = static_cast<uint64_t>(std::max<int64_t>(least, 0));
  return {};
}

Status NatsStream::seek(const std::string& cursor) {
  if (settings_.shared) return seek_splits(cursor);
  uint64_t sequence = 0;
  int64_t bytes = 0;
  if (!cursor.empty()) {
    STREAMVEC_ASSIGN_OR_RETURN(sequence, sequence_of(cursor, &bytes));
  }
  hang_up();
  marks_.clear();
  handed_ = committed_ = sequence;
  bytes_read_ = bytes;
  return {};
}

Result<int64_t> NatsStream::read(int64_t count_max, Deadline deadline, std::vector<Document>& out) {
  const size_t before = out.size();
  for (;;) {
    if (subscription_ == nullptr) {
      STREAMVEC_RETURN_IF_ERROR(reconnect_.wait(deadline));
      if (Status status = subscribe(); !status.ok()) return lose(std::move(status));
    }
    const auto batch = static_cast<int>(std::min<int64_t>(count_max, kBatch));
    if (Status status = fetch(batch, deadline, out); !status.ok()) {
      status = lose(std::move(status));
      if (out.size() == before) return status;
    }
    if (out.size() > before) return static_cast<int64_t>(out.size() - before);
    if (deadline.passed()) return error(Code::kDeadlineExceeded, "no message came from ", name(), " in time");
  }
}

Status NatsStream::lose(Status status) {
  hang_up();
  return reconnect_.failed(std::move(status));
}

// The client's reading thread looks a message's subscription up and locks it a little later, even if it was destroyed
// in between (3.4.1; mended in 3.6.1), which crashes. So that thread has to end first. Closing waits for it, unless the
// client is already closing by itself because the server fell silent; it calls when it is through.
void NatsStream::hang_up() {
  if (server_ != nullptr) {
    natsConnection_Close(server_.get());
    closed_.await();
  }
  subscription_.reset();
  jetstream_.reset();
  server_.reset();
}

Status NatsStream::subscribe() {
  STREAMVEC_RETURN_IF_ERROR(connect());
  STREAMVEC_RETURN_IF_ERROR(inspect_stream());
  STREAMVEC_RETURN_IF_ERROR(make_consumer());
  reconnect_.succeeded();
  return {};
}

Status NatsStream::connect() {
  const Location& location = settings_.location;
  natsOptions* made = nullptr;
  if (const natsStatus status = natsOptions_Create(&made); status != NATS_OK) return failure(status, "starting");
  const Options options(made);
  const Peer peer = {.host = location.host, .port = location.port != 0 ? location.port : 4222};
  natsOptions_SetURL(made, ("nats://" + peer.authority()).c_str());
  natsOptions_SetTimeout(made, 2'000);
  natsOptions_SetAllowReconnect(made, false);  // the consumer has to be made anew anyway
  natsOptions_SetPingInterval(made, 2'000);
  natsOptions_SetMaxPingsOut(made, 1);
  natsOptions_SetName(made, "streamvec");
  natsOptions_SetClosedCB(made, Closed::say, &closed_);
  if (!location.user.empty() && location.password.empty()) natsOptions_SetToken(made, location.user.c_str());
  if (!location.password.empty()) natsOptions_SetUserInfo(made, location.user.c_str(), location.password.c_str());
  if (settings_.tls) {
    natsStatus status = natsOptions_SetSecure(made, true);
    const std::string ca = location.text("ca");
    if (status == NATS_OK && !ca.empty()) status = natsOptions_LoadCATrustedCertificates(made, ca.c_str());
    if (status == NATS_OK) status = natsOptions_SetExpectedHostname(made, location.host.c_str());
    if (status != NATS_OK) return failure(status, "reading certificates");
  }
  natsConnection* connection = nullptr;
  const natsStatus status = natsConnection_Connect(&connection, made);
  if (status != NATS_OK) return failure(status, "connecting");
  server_.reset(connection);
  jsCtx* context = nullptr;
  if (const natsStatus made_context = natsConnection_JetStream(&context, connection, nullptr); made_context != NATS_OK)
    return failure(made_context, "starting JetStream");
  jetstream_.reset(context);
  return {};
}

Status NatsStream::inspect_stream() {
  jsStreamInfo* found = nullptr;
  jsErrCode code = static_cast<jsErrCode>(0);
  const natsStatus status = js_GetStreamInfo(&found, jetstream_.get(), settings_.stream.c_str(), nullptr, &code);
  const StreamInfo info(found);
  if (code == JSStreamNotFoundErr || (status == NATS_NOT_FOUND && code == 0))
    return error(stream_seen_ ? Code::kUnavailable : Code::kNotFound, name(), ": the server has no stream \"",
                 settings_.stream, "\"; `nats stream ls` lists those it has");
  if (status != NATS_OK) return failure(status, "looking at the stream");
  stream_seen_ = true;
  const jsStreamState& state = info->State;
  if (info->Config->Retention == js_InterestPolicy)
    return error(Code::kFailedPrecondition, name(), ": the stream drops messages by interest, so that a restart could ",
                 "not go back to its place; give it limits or workqueue retention, or read a mirror of it");
  const bool queue = info->Config->Retention == js_WorkQueuePolicy;
  if (queue && settings_.shared)
    return error(Code::kFailedPrecondition, name(), ": a work queue gives each message to one reader only, so that ",
                 "several cannot divide it by shared=1; give the stream limits retention");
  if (queue && settings_.part.count > 1)
    return error(Code::kFailedPrecondition, name(),
                 ": a work queue gives each message to one reader only, and part=", settings_.part.index, "/",
                 settings_.part.count, " would take those of the others from it; give the stream limits retention");
  acknowledge_ = queue ? Acknowledge::kEach : settings_.durable.empty() ? Acknowledge::kNothing : Acknowledge::kUpTo;
  const auto furthest = static_cast<uint64_t>(*std::max_element(places_.splits.begin(), places_.splits.end()));
  if (const uint64_t read = std::max(handed_, furthest); state.LastSeq < read)
    return error(Code::kFailedPrecondition, name(), ": the stream ends with message ", state.LastSeq, ", but message ",
                 read, " was read: it has been made anew; train into another directory");
  if (!queue && handed_ > 0 && state.FirstSeq > handed_ + 1)
    gone_ += static_cast<int64_t>(state.FirstSeq - handed_ - 1);
  return {};
}

// A consumer that begins where we stand. One of the same name that stands elsewhere gives way: its count of what was
// delivered is not ours, and what it holds back for a reader that died would come late and out of order.
Status NatsStream::make_consumer() {
  std::string consumer = settings_.durable;
  if (consumer.empty()) consumer = acknowledge_ == Acknowledge::kEach ? "streamvec" : "";
  if (!consumer.empty())
    js_DeleteConsumer(jetstream_.get(), settings_.stream.c_str(), consumer.c_str(), nullptr, nullptr);
  jsConsumerConfig config;
  jsConsumerConfig_Init(&config);
  if (!consumer.empty()) config.Durable = consumer.c_str();
  if (!settings_.subject.empty()) config.FilterSubject = settings_.subject.c_str();
  const bool queue = acknowledge_ == Acknowledge::kEach;
  config.DeliverPolicy = queue ? js_DeliverAll : js_DeliverByStartSequence;
  if (!queue) config.OptStartSeq = handed_ + 1;
  config.AckPolicy = queue ? js_AckExplicit : acknowledge_ == Acknowledge::kUpTo ? js_AckAll : js_AckNone;
  if (acknowledge_ != Acknowledge::kNothing) {
    config.AckWait = 3'600 * kNanosecondsPerSecond;  // checkpoints may be far apart
    config.MaxAckPending = queue ? settings_.pending_max : kNoLimit;
  }
  if (consumer.empty()) config.InactiveThreshold = 300 * kNanosecondsPerSecond;
  jsConsumerInfo* made = nullptr;
  const natsStatus status =
      js_AddConsumer(&made, jetstream_.get(), settings_.stream.c_str(), &config, nullptr, nullptr);
  if (status != NATS_OK) return failure(status, "making a consumer");
  const ConsumerInfo info(made);
  return await_deliveries(info->Name);
}

// The client's own fetch writes past its buffer when messages of an earlier request come late (3.4.1), so requests are
// sent and answered here.
Status NatsStream::await_deliveries(const char* consumer) {
  natsInbox* made = nullptr;
  if (const natsStatus status = natsInbox_Create(&made); status != NATS_OK) return failure(status, "subscribing");
  inbox_.reset(made);
  natsSubscription* subscription = nullptr;
  if (const natsStatus status = natsConnection_SubscribeSync(&subscription, server_.get(), made); status != NATS_OK)
    return failure(status, "subscribing");
  natsSubscription_SetPendingLimits(subscription, -1, -1);  // what was asked for has room
  subscription_.reset(subscription);
  request_subject_ = "$JS.API.CONSUMER.MSG.NEXT." + settings_.stream + "." + consumer;
  outstanding_ = 0;
  delivery_ = 0;
  marks_.clear();  // they were the old consumer's; a work queue delivers those messages again
  return {};
}

// Waits for one message and takes those that lie ready beside it.
Status NatsStream::fetch(int count, Deadline deadline, std::vector<Document>& out) {
  for (int i = 0; i < count; ++i) {
    if (outstanding_ == 0 || Deadline::Clock::now() > request_ends_) STREAMVEC_RETURN_IF_ERROR(request());
    natsMsg* got = nullptr;
    const int wait_ms = i == 0 ? milliseconds_left(deadline, kRequestWaitMs) : 0;
    const natsStatus status = natsSubscription_NextMsg(&got, subscription_.get(), wait_ms);
    const Message message(got);
    if (status == NATS_TIMEOUT) return {};
    if (status != NATS_OK) return failure(status, "reading");
    const char* word = nullptr;
    const bool is_status = natsMsg_GetDataLength(got) == 0 && natsMsgHeader_Get(got, "Status", &word) == NATS_OK;
    STREAMVEC_RETURN_IF_ERROR(is_status ? take_status(got, word) : take(got, out));
  }
  return {};
}

Status NatsStream::request() {
  const std::string wanted = "{\"batch\":" + std::to_string(kBatch) + ",\"max_bytes\":" + std::to_string(kBatchBytes) +
                             ",\"expires\":" + std::to_string(kRequestSeconds * kNanosecondsPerSecond) + "}";
  const natsStatus status = natsConnection_PublishRequest(server_.get(), request_subject_.c_str(), inbox_.get(),
                                                          wanted.data(), static_cast<int>(wanted.size()));
  if (status != NATS_OK) return failure(status, "asking for messages");
  outstanding_ = kBatch;
  request_ends_ = Deadline::Clock::now() + std::chrono::seconds(kRequestSeconds + 2);
  return {};
}

// The server's word on a request: 404 and 408 end it without fault, 409 also when its bytes are used up.
Status NatsStream::take_status(natsMsg* message, std::string_view status) {
  const char* why = nullptr;
  if (natsMsgHeader_Get(message, "Description", &why) != NATS_OK || why == nullptr) why = "";
  if (status == "100") return {};
  outstanding_ = 0;
  if (status == "404" || status == "408") return {};
  if (status == "409" && std::string_view(why).find("MaxBytes") != std::string_view::npos) return {};
  return error(Code::kUnavailable, name(), ": the server answers ", status, " ", why);
}

Status NatsStream::take(natsMsg* message, std::vector<Document>& out) {
  jsMsgMetaData* found = nullptr;
  if (natsMsg_GetMetaData(&found, message) != NATS_OK)
    return error(Code::kUnavailable, name(), ": a message has no place");
  const std::unique_ptr<jsMsgMetaData, Destroy<jsMsgMetaData_Destroy>> meta(found);
  outstanding_ = std::max(0, outstanding_ - 1);
  if (meta->Sequence.Consumer != ++delivery_)
    return error(Code::kUnavailable, name(), ": messages were lost on the way; they are asked for again");
  const uint64_t sequence = meta->Sequence.Stream;
  mark(sequence, natsMsg_GetReply(message));
  if (sequence <= committed_) return acknowledge_up_to(committed_);
  if (sequence <= handed_) return {};
  if (settings_.subject.empty() && acknowledge_ != Acknowledge::kEach && handed_ > 0 && sequence > handed_ + 1 &&
      delivery_ > 1)
    gone_ += static_cast<int64_t>(sequence - handed_ - 1);
  handed_ = sequence;
  bytes_read_ += natsMsg_GetDataLength(message);
  if (!is_ours(sequence)) return {};
  Document document;
  if (!intake_.take({natsMsg_GetData(message), static_cast<size_t>(natsMsg_GetDataLength(message))}, document))
    return {};
  if (document.time_s == 0) document.time_s = meta->Timestamp / kNanosecondsPerSecond;
  document.cursor = cursor();
  out.push_back(std::move(document));
  return {};
}

bool NatsStream::is_ours(uint64_t sequence) const {
  if (!settings_.shared) return settings_.part.has(sequence);
  return splits_.has(sequence % kSplits) && static_cast<int64_t>(sequence) > places_.splits[sequence % kSplits];
}

// Messages come in their order: all of its splits are read up to the last one.
std::string NatsStream::cursor() {
  if (!settings_.shared)
    return "{\"sequence\":" + std::to_string(handed_) + ",\"bytes\":" + std::to_string(bytes_read_) + "}";
  for (size_t split = 0; split < kSplits; ++split)
    if (splits_.has(split)) places_.splits[split] = std::max(places_.splits[split], static_cast<int64_t>(handed_));
  places_.bytes = bytes_read_;
  return places_.text();
}

// Where one acknowledgement stands for all before it, every other mark can be spared.
void NatsStream::mark(uint64_t sequence, const char* reply) {
  if (acknowledge_ == Acknowledge::kNothing || reply == nullptr) return;
  marks_.push_back({sequence, reply});
  if (acknowledge_ != Acknowledge::kUpTo || marks_.size() <= kMarksMax) return;
  std::deque<Mark> thinned;
  for (size_t i = 1; i < marks_.size(); i += 2) thinned.push_back(std::move(marks_[i]));
  marks_ = std::move(thinned);
}

Status NatsStream::commit(const std::string& cursor) {
  if (settings_.shared) return {};  // nobody but the checkpoint knows how far each split is
  STREAMVEC_ASSIGN_OR_RETURN(const uint64_t sequence, sequence_of(cursor, nullptr));
  committed_ = std::max(committed_, sequence);
  if (server_ == nullptr) return {};
  STREAMVEC_RETURN_IF_ERROR(acknowledge_up_to(committed_));
  const natsStatus status = natsConnection_FlushTimeout(server_.get(), 2'000);
  return status == NATS_OK ? Status() : failure(status, "acknowledging");
}

Status NatsStream::acknowledge_up_to(uint64_t sequence) {
  const auto later =
      std::stable_partition(marks_.begin(), marks_.end(), [&](const Mark& mark) { return mark.sequence <= sequence; });
  const auto first = acknowledge_ == Acknowledge::kUpTo && later != marks_.begin() ? later - 1 : marks_.begin();
  for (auto mark = first; mark != later; ++mark)
    if (const natsStatus status = natsConnection_PublishString(server_.get(), mark->reply.c_str(), "+ACK");
        status != NATS_OK)
      return failure(status, "acknowledging");
  marks_.erase(marks_.begin(), later);
  return {};
}

std::vector<std::string> NatsStream::notes() const {
  std::vector<std::string> notes;
  if (gone_ > 0)
    notes.push_back(name() + ": " + std::to_string(gone_) +
                    " messages were gone from the stream before they were read");
  intake_.append_notes(name(), notes);
  return notes;
}

}  // namespace

Result<std::unique_ptr<Source>> NatsSource::open(const std::string& name) {
  Settings settings;
  STREAMVEC_ASSIGN_OR_RETURN(settings.location, Location::parse(name));
  const Location& location = settings.location;
  STREAMVEC_RETURN_IF_ERROR(
      RecordFormat::check_keys(location, {"subject", "durable", "part", "shared", "pending", "tls", "ca"}));
  STREAMVEC_ASSIGN_OR_RETURN(settings.part, Part::of(location));
  settings.stream = location.path.empty() ? "" : location.path.substr(1);
  settings.subject = location.text("subject");
  settings.durable = location.text("durable");
  STREAMVEC_ASSIGN_OR_RETURN(settings.shared, is_shared(location));
  if (settings.shared && !settings.durable.empty())
    return error(Code::kInvalidArgument, location.name, ": a consumer has one reader, and shared=1 several; leave out ",
                 "durable=, the cursors are in the checkpoint");
  if (location.host.empty() || settings.stream.empty() || settings.stream.find_first_of("./ *>") != std::string::npos)
    return error(Code::kInvalidArgument, location.name, ": write nats://HOST[:PORT]/STREAM");
  STREAMVEC_ASSIGN_OR_RETURN(settings.pending_max, location.integer("pending", 250'000, 1, 10'000'000));
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t tls, location.integer("tls", 0, 0, 1));
  settings.tls = tls == 1;
  STREAMVEC_ASSIGN_OR_RETURN(RecordFormat format, RecordFormat::from(location));
  return std::unique_ptr<Source>(std::make_unique<NatsStream>(std::move(settings), std::move(format)));
}

}  // namespace streamvec
