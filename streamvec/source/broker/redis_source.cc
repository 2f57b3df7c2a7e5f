#include "streamvec/source/broker/redis_source.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "streamvec/core/json.h"
#include "streamvec/source/broker/reconnect.h"
#include "streamvec/source/broker/redis_wire.h"
#include "streamvec/source/live/record_intake.h"
#include "streamvec/source/location.h"

namespace streamvec {
namespace {

using Json = nlohmann::json;

constexpr int64_t kBatch = 512;
constexpr int kBlockMs = 1'000;
constexpr std::chrono::milliseconds kPatience{5'000};

// "1526919030474-55": milliseconds, then a count.
struct EntryId {
  uint64_t ms = 0, count = 0;
  auto operator<=>(const EntryId&) const = default;
  std::string text() const { return std::to_string(ms) + "-" + std::to_string(count); }
};

std::optional<EntryId> parse_id(std::string_view text) {
  EntryId id;
  const char* end = text.data() + text.size();
  const auto [dash, failure] = std::from_chars(text.data(), end, id.ms);
  if (failure != std::errc() || dash == end || *dash != '-') return {};
  const auto [last, second_failure] = std::from_chars(dash + 1, end, id.count);
  if (second_failure != std::errc() || last != end) return {};
  return id;
}

struct Settings {
  Location location;
  Peer peer;
  std::string key, field, group, consumer;
  bool shared = false;
  int64_t database = 0;
};

bool is_array(const redisReply* reply, size_t size_min) {
  return reply != nullptr && reply->type == REDIS_REPLY_ARRAY && reply->elements >= size_min;
}

// The value of a key in a reply that is a flat list of keys and values.
const redisReply* field_of(const redisReply& reply, std::string_view key) {
  for (size_t i = 0; i + 1 < reply.elements; i += 2)
    if (redis_text(*reply.element[i]) == key) return reply.element[i + 1];
  return nullptr;
}

class RedisStream : public Source {
 public:
  RedisStream(Settings settings, RecordFormat format) : settings_(std::move(settings)), intake_(std::move(format)) {}

  Result<int64_t> read(int64_t count_max, Deadline deadline, std::vector<Document>& out) override;
  Status seek(const std::string& cursor) override;
  Status commit(const std::string& cursor) override;
  Capabilities capabilities() const override { return {.endless = true, .remote = true}; }
  int64_t bytes_total() const override { return -1; }
  int64_t bytes_read() const override { return bytes_read_; }
  std::string name() const override { return settings_.location.name; }
  std::vector<std::string> notes() const override;

 private:
  Status open(Deadline deadline);
  Status introduce();
  Status set_group();
  Status fetch(int64_t count, Deadline deadline, std::vector<Document>& out);
  RedisCommand read_command(int64_t count, int block_ms) const;
  Status inspect(const redisReply& info);
  Status take_entries(const redisReply& reply, std::vector<Document>& out);
  void take_entry(const EntryId& id, const redisReply& fields, std::vector<Document>& out);
  std::string record_of(const redisReply& fields) const;
  Status refused(const redisReply& reply, std::string_view doing) const;
  Status lose(Status status);
  static Result<EntryId> id_of(const std::string& cursor, int64_t* bytes, int64_t* position);

  const Settings settings_;
  RecordIntake intake_;
  Reconnect reconnect_;
  std::unique_ptr<RedisWire> wire_;
  bool introduced_ = false, missing_ = false;
  bool again_ = false;  // of a shared group: what this consumer was given before is read first
  EntryId handed_;
  int64_t bytes_read_ = 0;
  int64_t position_ = 0;  // how many entries were ever added up to `handed_`, as far as that is known
  int64_t gone_ = 0;
};

Result<EntryId> RedisStream::id_of(const std::string& cursor, int64_t* bytes, int64_t* position) {
  const Json all = parse_json(cursor);
  const auto whole = [&](const char* key) { return all.contains(key) && all[key].is_number_integer(); };
  if (all.is_object() && all.contains("id") && all["id"].is_string() && whole("bytes") && whole("position")) {
    *bytes = all["bytes"].get<int64_t>();
    *position = all["position"].get<int64_t>();
    if (const auto id = parse_id(all["id"].get<std::string>())) return *id;
  }
  return error(Code::kInvalidArgument, "not a cursor of a Redis stream: ", cursor.substr(0, 100));
}

Status RedisStream::seek(const std::string& cursor) {
  EntryId id;
  int64_t bytes = 0, position = 0;
  if (!cursor.empty()) {
    STREAMVEC_ASSIGN_OR_RETURN(id, id_of(cursor, &bytes, &position));
  }
  handed_ = id;
  bytes_read_ = bytes;
  position_ = position;
  introduced_ = false;
  wire_.reset();
  return {};
}

Result<int64_t> RedisStream::read(int64_t count_max, Deadline deadline, std::vector<Document>& out) {
  const size_t before = out.size();
  for (;;) {
    if (!introduced_) STREAMVEC_RETURN_IF_ERROR(open(deadline));
    if (Status status = fetch(std::min(count_max, kBatch), deadline, out); !status.ok()) {
      status = lose(std::move(status));
      if (out.size() == before) return status;
    }
    if (out.size() > before) return static_cast<int64_t>(out.size() - before);
    if (deadline.passed()) return error(Code::kDeadlineExceeded, "no entry came from ", name(), " in time");
  }
}

Status RedisStream::lose(Status status) {
  wire_.reset();
  introduced_ = false;
  return reconnect_.failed(std::move(status));
}

Status RedisStream::open(Deadline deadline) {
  if (wire_ == nullptr) {
    STREAMVEC_RETURN_IF_ERROR(reconnect_.wait(deadline));
    wire_ = std::make_unique<RedisWire>(settings_.peer);
  }
  Status status = wire_->open(deadline);
  if (status.code() == Code::kDeadlineExceeded) return status;
  if (status.ok()) status = introduce();
  if (!status.ok()) return lose(error(status.code(), name(), ": ", status.message()));
  introduced_ = true;
  return {};
}

Status RedisStream::refused(const redisReply& reply, std::string_view doing) const {
  return error(redis_error_code(reply), doing, ": the server says ", redis_text(reply));
}

Status RedisStream::introduce() {
  const Location& location = settings_.location;
  std::vector<RedisCommand> commands;
  if (!location.password.empty() && !location.user.empty())
    commands.push_back({"AUTH", location.user, location.password});
  else if (!location.password.empty())
    commands.push_back({"AUTH", location.password});
  if (settings_.database != 0) commands.push_back({"SELECT", std::to_string(settings_.database)});
  commands.push_back({"PING"});
  STREAMVEC_ASSIGN_OR_RETURN(const std::vector<RedisReply> replies, wire_->call(commands, kPatience));
  for (const RedisReply& reply : replies)
    if (reply->type == REDIS_REPLY_ERROR) return refused(*reply, "connecting");
  if (!settings_.group.empty()) STREAMVEC_RETURN_IF_ERROR(set_group());
  reconnect_.succeeded();
  return {};
}

// The group is made to stand where we stand: what it gave to a reader that died is given again. One that others share
// stands where they have brought it.
Status RedisStream::set_group() {
  const std::string at = settings_.shared ? EntryId().text() : handed_.text();
  again_ = settings_.shared;
  STREAMVEC_ASSIGN_OR_RETURN(
      std::vector<RedisReply> replies,
      wire_->call({{"XGROUP", "CREATE", settings_.key, settings_.group, at, "MKSTREAM"}}, kPatience));
  const bool is_there = redis_text(*replies[0]).starts_with("BUSYGROUP");
  if (is_there && settings_.shared) return {};
  if (is_there) {
    STREAMVEC_ASSIGN_OR_RETURN(replies,
                               wire_->call({{"XGROUP", "SETID", settings_.key, settings_.group, at}}, kPatience));
  }
  return replies[0]->type == REDIS_REPLY_ERROR ? refused(*replies[0], "setting the group") : Status();
}

RedisCommand RedisStream::read_command(int64_t count, int block_ms) const {
  RedisCommand command = {"XREAD"};
  if (!settings_.group.empty()) command = {"XREADGROUP", "GROUP", settings_.group, settings_.consumer};
  for (const std::string& part : {std::string("COUNT"), std::to_string(count), std::string("BLOCK"),
                                  std::to_string(block_ms), std::string("STREAMS"), settings_.key})
    command.push_back(part);
  command.push_back(settings_.group.empty() || again_ ? handed_.text() : ">");
  return command;
}

// The stream is looked at in the same breath, so that what was trimmed ahead of us is not missed.
Status RedisStream::fetch(int64_t count, Deadline deadline, std::vector<Document>& out) {
  const int block_ms = std::max(1, milliseconds_left(deadline, kBlockMs));
  STREAMVEC_ASSIGN_OR_RETURN(const std::vector<RedisReply> replies,
                             wire_->call({{"XINFO", "STREAM", settings_.key}, read_command(count, block_ms)},
                                         kPatience + std::chrono::milliseconds(block_ms)));
  for (const RedisReply& reply : replies) {
    if (reply->type != REDIS_REPLY_ERROR) continue;
    const std::string text = redis_text(*reply);
    if (text.find("no such key") != std::string::npos) continue;
    if (text.starts_with("NOGROUP")) return error(Code::kUnavailable, name(), ": the group is gone; it is made again");
    const Status status = refused(*reply, "reading");
    return error(status.code(), name(), ": ", status.message());
  }
  missing_ = replies[0]->type == REDIS_REPLY_ERROR;
  if (!missing_) STREAMVEC_RETURN_IF_ERROR(inspect(*replies[0]));
  const size_t before = out.size();
  STREAMVEC_RETURN_IF_ERROR(take_entries(*replies[1], out));
  if (again_ && out.size() == before) again_ = false;
  return {};
}

Status RedisStream::inspect(const redisReply& info) {
  const auto id_in = [&](std::string_view key) {
    const redisReply* value = field_of(info, key);
    return value == nullptr ? std::nullopt : parse_id(redis_text(*value));
  };
  const redisReply *added = field_of(info, "entries-added"), *length = field_of(info, "length");
  const std::optional<EntryId> last = id_in("last-generated-id"), first = id_in("recorded-first-entry-id");
  if (last && *last < handed_)
    return error(Code::kFailedPrecondition, name(), ": the stream ends with ", last->text(), ", but ", handed_.text(),
                 " was read: it has been made anew; train into another directory");
  if (added == nullptr || length == nullptr || !first || settings_.shared) return {};
  // Once nothing is left of what was read, all that is gone beyond it was never read.
  if (length->integer > 0 && *first <= handed_) return {};
  const int64_t removed = added->integer - length->integer;
  if (handed_ > EntryId()) gone_ += std::max<int64_t>(0, removed - position_);
  position_ = std::max(position_, removed);
  return {};
}

// [[key, [[id, [field, value, ...]], ...]]]
Status RedisStream::take_entries(const redisReply& reply, std::vector<Document>& out) {
  if (!is_array(&reply, 1) || !is_array(reply.element[0], 2) || !is_array(reply.element[0]->element[1], 0)) return {};
  const redisReply& entries = *reply.element[0]->element[1];
  for (size_t i = 0; i < entries.elements; ++i) {
    const redisReply* entry = entries.element[i];
    const std::optional<EntryId> id = is_array(entry, 2) ? parse_id(redis_text(*entry->element[0])) : std::nullopt;
    if (!id) return error(Code::kUnavailable, name(), ": the server's reply cannot be understood");
    if (*id > handed_) take_entry(*id, *entry->element[1], out);
  }
  return {};
}

void RedisStream::take_entry(const EntryId& id, const redisReply& fields, std::vector<Document>& out) {
  handed_ = id;
  ++position_;
  const std::string record = is_array(&fields, 2) ? record_of(fields) : "";
  bytes_read_ += static_cast<int64_t>(record.size());
  Document document;
  if (!intake_.take(record, document)) return;
  constexpr uint64_t kYear1973 = 100'000'000'000;  // smaller ids are counts, not times
  if (document.time_s == 0 && id.ms > kYear1973) document.time_s = static_cast<int64_t>(id.ms / 1'000);
  document.cursor = "{\"id\":\"" + id.text() + "\",\"position\":" + std::to_string(position_) +
                    ",\"bytes\":" + std::to_string(bytes_read_) + "}";
  out.push_back(std::move(document));
}

std::string RedisStream::record_of(const redisReply& fields) const {
  if (settings_.field == "*") {
    Json all = Json::object();
    for (size_t i = 0; i + 1 < fields.elements; i += 2)
      all[redis_text(*fields.element[i])] = redis_text(*fields.element[i + 1]);
    return json_text(all);
  }
  const redisReply* value = nullptr;
  if (!settings_.field.empty()) {
    value = field_of(fields, settings_.field);
  } else if ((value = field_of(fields, "text")) == nullptr && (value = field_of(fields, "data")) == nullptr) {
    if (fields.elements == 2) value = fields.element[1];
  }
  return value == nullptr ? "" : redis_text(*value);
}

// The server knows what it gave and is owed; what is up to the cursor is safe, whoever it was given to.
Status RedisStream::commit(const std::string& cursor) {
  int64_t bytes = 0, position = 0;
  STREAMVEC_ASSIGN_OR_RETURN(const EntryId id, id_of(cursor, &bytes, &position));
  if (settings_.group.empty() || !introduced_) return {};
  for (;;) {
    RedisCommand owed = {"XPENDING", settings_.key, settings_.group, "-", id.text(), "1000"};
    if (settings_.shared) owed.push_back(settings_.consumer);
    Result<std::vector<RedisReply>> pending = wire_->call({owed}, kPatience);
    if (!pending.ok()) return lose(pending.status());
    if (pending->front()->type == REDIS_REPLY_ERROR) return refused(*pending->front(), "acknowledging");
    const redisReply& entries = *pending->front();
    if (!is_array(&entries, 1)) return {};
    RedisCommand acknowledge = {"XACK", settings_.key, settings_.group};
    for (size_t i = 0; i < entries.elements; ++i)
      if (is_array(entries.element[i], 1)) acknowledge.push_back(redis_text(*entries.element[i]->element[0]));
    Result<std::vector<RedisReply>> done = wire_->call({acknowledge}, kPatience);
    if (!done.ok()) return lose(done.status());
    if (done->front()->type != REDIS_REPLY_INTEGER || done->front()->integer == 0)
      return refused(*done->front(), "acknowledging");
  }
}

std::vector<std::string> RedisStream::notes() const {
  std::vector<std::string> notes;
  if (gone_ > 0)
    notes.push_back(name() + ": " + std::to_string(gone_) + " entries were gone from the stream before they were read");
  if (missing_) notes.push_back(name() + ": there is no stream \"" + settings_.key + "\" yet");
  intake_.append_notes(name(), notes);
  return notes;
}

}  // namespace

Result<std::unique_ptr<Source>> RedisSource::open(const std::string& name) {
  Settings settings;
  STREAMVEC_ASSIGN_OR_RETURN(settings.location, Location::parse(name));
  const Location& location = settings.location;
  STREAMVEC_RETURN_IF_ERROR(
      RecordFormat::check_keys(location, {"field", "group", "consumer", "shared", "db", "tls", "ca"}));
  settings.key = location.path.empty() ? "" : location.path.substr(1);
  if (location.host.empty() || settings.key.empty())
    return error(Code::kInvalidArgument, location.name, ": write redis://HOST[:PORT]/KEY");
  settings.field = location.text("field");
  settings.group = location.text("group");
  settings.consumer = location.text("consumer", "streamvec");
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t shared, location.integer("shared", 0, 0, 1));
  settings.shared = shared == 1;
  if (settings.shared && (settings.group.empty() || location.text("consumer").empty()))
    return error(Code::kInvalidArgument, location.name,
                 ": readers that share a group need its name and one of their own; give group= and consumer=, another "
                 "for each");
  STREAMVEC_ASSIGN_OR_RETURN(settings.database, location.integer("db", 0, 0, 1'000'000));
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t tls, location.integer("tls", 0, 0, 1));
  settings.peer = {.host = location.host,
                   .port = location.port != 0 ? location.port : 6379,
                   .tls = tls == 1,
                   .ca = location.text("ca"),
                   .private_ok = true,
                   .connect_timeout = std::chrono::milliseconds(5'000)};
  const auto otherwise = settings.field == "*" ? RecordFormat::Kind::kJson : RecordFormat::Kind::kText;
  STREAMVEC_ASSIGN_OR_RETURN(RecordFormat format, RecordFormat::from(location, otherwise));
  return std::unique_ptr<Source>(std::make_unique<RedisStream>(std::move(settings), std::move(format)));
}

}  // namespace streamvec
