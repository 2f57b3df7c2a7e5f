#include "streamvec/source/live/websocket_source.h"

#include <array>
#include <random>
#include <utility>
#include <vector>

#include "streamvec/source/live/connection.h"
#include "streamvec/source/live/live_name.h"
#include "streamvec/source/live/live_source.h"
#include "streamvec/source/live/websocket_frames.h"
#include "streamvec/source/live/websocket_handshake.h"

namespace streamvec {
namespace {

constexpr size_t kMessageBytesMax = size_t{4} << 20;
constexpr std::chrono::seconds kSendWait{5};

uint32_t random_u32() {
  thread_local std::random_device device;
  return device();
}

std::string random_key() {
  std::string bytes(16, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random_u32() & 0xFF);
  return base64(bytes);
}

class WebSocketLink : public LiveLink {
 public:
  WebSocketLink(const LiveName& name, std::string target);
  ~WebSocketLink() override;

  Status receive(Deadline deadline, std::vector<LiveRecord>& out) override;
  bool established() const override { return established_; }
  std::chrono::milliseconds retry_after() const override { return retry_after_; }
  int64_t bad() const override { return parser_.oversized() + parser_.not_utf8() + binary_; }

 private:
  Status await_bytes(Deadline deadline);
  Status shake_hands(Deadline deadline);
  Status take_head();
  Status take_messages(std::vector<LiveRecord>& out);
  Status take_control(const WebSocketMessage& message);
  Status send(WebSocketOpcode opcode, std::string_view payload);

  const std::chrono::milliseconds idle_;
  Handshake handshake_;
  Connection connection_;
  WebSocketParser parser_{kMessageBytesMax};
  std::vector<char> room_ = std::vector<char>(size_t{64} << 10);
  std::string received_;  // bytes not parsed yet
  bool requested_ = false, established_ = false, closed_ = false, pinged_ = false;
  int64_t binary_ = 0;
  std::chrono::milliseconds retry_after_{};
  Deadline::Clock::time_point heard_at_ = Deadline::Clock::now(), left_at_ = heard_at_;
};

WebSocketLink::WebSocketLink(const LiveName& name, std::string target)
    : idle_(name.idle), handshake_{name.peer.authority(), std::move(target), random_key(), ""}, connection_(name.peer) {
  const Location& location = name.location;
  if (!location.user.empty()) handshake_.authorization = "Basic " + base64(location.user + ":" + location.password);
}

WebSocketLink::~WebSocketLink() {
  if (!established_ || closed_) return;
  const std::string payload = websocket_close_payload(kCloseNormal, "");
  // Best effort: a good-bye that cannot be sent at once is not sent.
  (void)connection_.send(websocket_frame(WebSocketOpcode::kClose, payload, random_u32()), Deadline::after({})).ok();
}

Status WebSocketLink::send(WebSocketOpcode opcode, std::string_view payload) {
  return connection_.send(websocket_frame(opcode, payload, random_u32()), Deadline::after(kSendWait));
}

// The time in which nobody asked does not count as silence.
Status WebSocketLink::receive(Deadline deadline, std::vector<LiveRecord>& out) {
  heard_at_ += Deadline::Clock::now() - left_at_;
  Status status = established_ ? await_bytes(deadline) : shake_hands(deadline);
  if (status.ok() && established_) status = take_messages(out);
  left_at_ = Deadline::Clock::now();
  return status;
}

// Waits for bytes. Half-way through the silence that is allowed, the server is asked for a sign of life.
Status WebSocketLink::await_bytes(Deadline deadline) {
  for (;;) {
    const auto patience = pinged_ || !established_ ? idle_ : idle_ / 2;
    const auto left = heard_at_ + patience - Deadline::Clock::now();
    Result<size_t> size = connection_.receive(room_, sooner(deadline, Deadline::after(left)));
    if (size.ok() && *size == 0) return error(Code::kUnavailable, "the server hung up");
    if (size.ok()) {
      received_.append(room_.data(), *size);
      heard_at_ = Deadline::Clock::now();
      pinged_ = false;
      return {};
    }
    if (size.status().code() != Code::kDeadlineExceeded || deadline.passed()) return size.status();
    if (pinged_ || !established_) return error(Code::kUnavailable, "nothing was heard for ", idle_.count(), " ms");
    pinged_ = true;
    STREAMVEC_RETURN_IF_ERROR(send(WebSocketOpcode::kPing, ""));
  }
}

Status WebSocketLink::shake_hands(Deadline deadline) {
  STREAMVEC_RETURN_IF_ERROR(connection_.open(deadline));
  if (!std::exchange(requested_, true)) {
    heard_at_ = Deadline::Clock::now();
    STREAMVEC_RETURN_IF_ERROR(connection_.send(handshake_.request(), Deadline::after(kSendWait)));
  }
  while (!established_) {
    STREAMVEC_RETURN_IF_ERROR(await_bytes(deadline));
    STREAMVEC_RETURN_IF_ERROR(take_head());
  }
  return {};
}

Status WebSocketLink::take_head() {
  const std::optional<size_t> size = head_bytes(received_);
  if (!size && received_.size() > kHandshakeBytesMax)
    return error(Code::kInvalidArgument, "the answer's head is longer than ", kHandshakeBytesMax, " bytes");
  if (!size) return {};
  const std::string head = received_.substr(0, *size);
  if (const std::string wish = header_value(head, "retry-after"); !wish.empty() && wish.size() < 6)
    retry_after_ = std::chrono::seconds(std::atoi(wish.c_str()));
  STREAMVEC_RETURN_IF_ERROR(handshake_.check(head));
  received_.erase(0, *size);
  established_ = true;
  return {};
}

Status WebSocketLink::take_messages(std::vector<LiveRecord>& out) {
  std::vector<WebSocketMessage> messages;
  const Status parsed = parser_.feed(std::exchange(received_, {}), messages);
  for (WebSocketMessage& message : messages) {
    if (message.kind == WebSocketOpcode::kText) {
      out.push_back({std::move(message.payload), ""});
    } else if (message.kind == WebSocketOpcode::kBinary) {
      ++binary_;
    } else {
      STREAMVEC_RETURN_IF_ERROR(take_control(message));
    }
  }
  if (parsed.ok()) return {};
  closed_ = true;
  (void)send(WebSocketOpcode::kClose, websocket_close_payload(parser_.close_code(), "")).ok();
  return error(Code::kUnavailable, parsed.message());
}

Status WebSocketLink::take_control(const WebSocketMessage& message) {
  if (message.kind == WebSocketOpcode::kPing) return send(WebSocketOpcode::kPong, message.payload);
  if (message.kind == WebSocketOpcode::kPong) return {};
  closed_ = true;
  const uint16_t answer = message.close_code == kCloseNoCode ? kCloseNormal : message.close_code;
  (void)send(WebSocketOpcode::kClose, websocket_close_payload(answer, "")).ok();
  return error(Code::kUnavailable, "the server closed the stream with code ", message.close_code,
               message.payload.empty() || !valid_utf8(message.payload) ? "" : ": " + message.payload);
}

// How the server is asked to go on after a place.
struct Resumption {
  std::string param;
  int64_t overlap = 0;
};

class WebSocketStream : public LiveSource {
 public:
  WebSocketStream(LiveName name, Resumption resumption, Options options, RecordFormat format)
      : LiveSource(std::move(options), std::move(format)), name_(std::move(name)), resumption_(std::move(resumption)) {}

 protected:
  std::unique_ptr<LiveLink> link(const Place& place) override {
    std::string target = name_.target;
    const std::string from = place.number() != 0
                                 ? std::to_string(std::max<int64_t>(0, place.number() - resumption_.overlap))
                                 : place.token();
    if (!resumption_.param.empty() && !from.empty())
      target += (target.find('?') == std::string::npos ? "?" : "&") + resumption_.param + "=" + escaped(from);
    return std::make_unique<WebSocketLink>(name_, std::move(target));
  }

 private:
  static std::string escaped(const std::string& text) {
    constexpr char kHex[] = "0123456789ABCDEF";
    std::string result;
    for (const unsigned char byte : text) {
      if (std::isalnum(byte) != 0 || byte == '-' || byte == '.' || byte == '_' || byte == '~') {
        result += static_cast<char>(byte);
      } else {
        result += {'%', kHex[byte >> 4], kHex[byte & 15]};
      }
    }
    return result;
  }

  const LiveName name_;
  const Resumption resumption_;
};

void set_jetstream(LiveName& name) {
  name.set_default("format", "json");
  name.set_default("text", "/commit/record/text");
  name.set_default("id", "/did,/commit/rkey");
  name.set_default("time", "/time_us");
  name.set_default("delete", "/commit/operation:delete");
  name.set_default("cursor", "/time_us");
  name.set_default("cursor-param", "cursor");
  name.set_default("overlap", "5000000");
  name.set_default("lookback", "86400");
  if (name.target.find("wantedCollections=") == std::string::npos)
    name.target +=
        (name.target.find('?') == std::string::npos ? "?" : "&") + std::string("wantedCollections=app.bsky.feed.post");
}

}  // namespace

Result<std::unique_ptr<Source>> WebSocketSource::open(const std::string& name) {
  STREAMVEC_ASSIGN_OR_RETURN(LiveName parsed, LiveName::parse(name, {"cursor", "cursor-param", "overlap"}));
  const Location& location = parsed.location;
  const std::string form = location.text("form", location.host.starts_with("jetstream") ? "jetstream" : "plain");
  if (form == "jetstream") {
    set_jetstream(parsed);
  } else if (form != "plain") {
    return error(Code::kInvalidArgument, location.name, ": form=", form, " is not known; forms are plain, jetstream");
  }
  STREAMVEC_RETURN_IF_ERROR(parsed.take_settings());
  LiveSource::Options options = {.name = location.name, .lookback_s = parsed.lookback_s};
  options.backoff.first = parsed.retry;
  options.numbering = {.number = location.text("cursor"), .lane = {}, .number_is_token = true};
  if (!options.numbering.number.empty() && !options.numbering.number.starts_with('/'))
    return error(Code::kInvalidArgument, location.name, ": cursor=", options.numbering.number,
                 " is no JSON pointer; write cursor=/NAME, or send-cursor= for the server's own");
  Resumption resumption = {.param = location.text("cursor-param")};
  STREAMVEC_ASSIGN_OR_RETURN(resumption.overlap, location.integer("overlap", 0, 0, int64_t{1} << 50));
  STREAMVEC_ASSIGN_OR_RETURN(RecordFormat format, RecordFormat::from(location));
  return std::unique_ptr<Source>(std::make_unique<WebSocketStream>(std::move(parsed), std::move(resumption),
                                                                   std::move(options), std::move(format)));
}

}  // namespace streamvec
