#include "streamvec/source/live/sse_source.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "streamvec/source/live/live_name.h"
#include "streamvec/source/live/live_source.h"
#include "streamvec/source/live/sse_parser.h"

namespace streamvec {
namespace {

constexpr size_t kEventBytesMax = size_t{4} << 20, kBufferBytes = size_t{256} << 10;

bool is_event_stream(const char* content_type) {
  std::string type = content_type == nullptr ? "" : content_type;
  type = type.substr(0, type.find_first_of("; \t"));
  std::transform(type.begin(), type.end(), type.begin(), [](unsigned char c) { return std::tolower(c); });
  return type == "text/event-stream";
}

struct HeaderList {
  curl_slist* list = nullptr;
  HeaderList() = default;
  HeaderList(const HeaderList&) = delete;
  ~HeaderList() { curl_slist_free_all(list); }
  void add(const std::string& line) { list = curl_slist_append(list, line.c_str()); }
};

class SseLink : public LiveLink {
 public:
  SseLink(const LiveName& name, std::string only_type, const std::string& last_id);
  ~SseLink() override;

  Status receive(Deadline deadline, std::vector<LiveRecord>& out) override;
  bool established() const override { return established_; }
  std::chrono::milliseconds retry_first() const override {
    return std::chrono::milliseconds(std::min<int64_t>(parser_.retry_ms().value_or(0), 600'000));
  }
  std::chrono::milliseconds retry_after() const override { return retry_after_; }
  int64_t bad() const override { return parser_.oversized(); }

 private:
  static size_t on_header(char* bytes, size_t size, size_t count, void* self);
  static size_t on_body(char* bytes, size_t size, size_t count, void* self);
  void set_headers(const std::string& last_id);
  void check_answer();
  void parse(std::vector<LiveRecord>& out);
  Status finished(CURLcode result);

  const LiveName name_;
  std::string only_type_;
  SseParser parser_{kEventBytesMax};
  AddressRule rule_;
  HeaderList headers_;
  CurlMulti multi_;
  CurlEasy easy_;
  std::string buffer_;
  bool established_ = false, paused_ = false;
  Status refused_;
  std::chrono::milliseconds retry_after_{};
  Deadline::Clock::time_point heard_at_ = Deadline::Clock::now(), left_at_ = heard_at_;
};

SseLink::SseLink(const LiveName& name, std::string only_type, const std::string& last_id)
    : name_(name), only_type_(std::move(only_type)), multi_(curl_multi_init()), easy_(curl_easy_init()) {
  STREAMVEC_CHECK(multi_ != nullptr && easy_ != nullptr);
  CURL* easy = easy_.get();
  set_peer_options(easy, name_.peer, rule_);
  parser_.set_last_id(last_id);
  const std::string url = (name_.peer.tls ? "https://" : "http://") + name_.peer.authority() + name_.target;
  curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS);
  curl_easy_setopt(easy, CURLOPT_USERAGENT, std::string(kUserAgent).c_str());
  curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
  if (!name_.location.user.empty()) {
    curl_easy_setopt(easy, CURLOPT_USERNAME, name_.location.user.c_str());
    curl_easy_setopt(easy, CURLOPT_PASSWORD, name_.location.password.c_str());
  }
  set_headers(last_id);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, this);
  curl_multi_add_handle(multi_.get(), easy);
}

SseLink::~SseLink() {
  const NoBrokenPipes guard;
  curl_multi_remove_handle(multi_.get(), easy_.get());
  easy_.reset();
  multi_.reset();
}

void SseLink::set_headers(const std::string& last_id) {
  headers_.add("Accept: text/event-stream");
  headers_.add("Cache-Control: no-cache");
  if (!last_id.empty() && last_id.find_first_of("\r\n") == std::string::npos) headers_.add("Last-Event-ID: " + last_id);
  curl_easy_setopt(easy_.get(), CURLOPT_HTTPHEADER, headers_.list);
}

// The empty line after the headers: now the answer is known. A false count ends the transfer.
size_t SseLink::on_header(char* bytes, size_t size, size_t count, void* self) {
  const std::string_view line(bytes, size * count);
  auto& link = *static_cast<SseLink*>(self);
  if (line == "\r\n" || line == "\n") link.check_answer();
  return link.refused_.ok() ? line.size() : 0;
}

void SseLink::check_answer() {
  long status = 0;
  const char* type = nullptr;
  char* redirect = nullptr;
  curl_off_t retry_after = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(easy_.get(), CURLINFO_CONTENT_TYPE, &type);
  curl_easy_getinfo(easy_.get(), CURLINFO_REDIRECT_URL, &redirect);
  curl_easy_getinfo(easy_.get(), CURLINFO_RETRY_AFTER, &retry_after);
  if (status < 200) return;
  retry_after_ = std::chrono::seconds(std::clamp<curl_off_t>(retry_after, 0, 3'600));
  if (status != 200) {
    refused_ = refusal(status, redirect == nullptr ? "" : redirect);
  } else if (!is_event_stream(type)) {
    refused_ = error(Code::kInvalidArgument, "the server sends ", type == nullptr ? "something" : type,
                     ", not text/event-stream");
  } else {
    established_ = true;
  }
}

// A full buffer makes libcurl stop reading, and then the sender.
size_t SseLink::on_body(char* bytes, size_t size, size_t count, void* self) {
  auto& link = *static_cast<SseLink*>(self);
  if (!link.refused_.ok()) return 0;
  if (link.buffer_.size() >= kBufferBytes) {
    link.paused_ = true;
    return CURL_WRITEFUNC_PAUSE;
  }
  link.buffer_.append(bytes, size * count);
  return size * count;
}

// The time in which nobody asked does not count as silence.
Status SseLink::receive(Deadline deadline, std::vector<LiveRecord>& out) {
  const NoBrokenPipes guard;
  heard_at_ += Deadline::Clock::now() - left_at_;
  Status status;
  for (;;) {
    if (buffer_.empty() && std::exchange(paused_, false)) curl_easy_pause(easy_.get(), CURLPAUSE_CONT);
    int running = 0, queued = 0;
    curl_multi_perform(multi_.get(), &running);
    const auto now = Deadline::Clock::now();
    if (!buffer_.empty()) {
      heard_at_ = now;
      parse(out);
      break;
    }
    if (const CURLMsg* message = curl_multi_info_read(multi_.get(), &queued)) {
      status = finished(message->data.result);
      break;
    }
    if (now - heard_at_ >= name_.idle) {
      status = error(Code::kUnavailable, "nothing was heard for ", name_.idle.count(), " ms");
      break;
    }
    if (deadline.passed()) {
      status = error(Code::kDeadlineExceeded, "no event came in time");
      break;
    }
    const Deadline until = sooner(deadline, Deadline::after(heard_at_ + name_.idle - now));
    curl_multi_poll(multi_.get(), nullptr, 0, milliseconds_left(until, 1'000), nullptr);
  }
  left_at_ = Deadline::Clock::now();
  return status;
}

void SseLink::parse(std::vector<LiveRecord>& out) {
  std::vector<SseEvent> events;
  parser_.feed(buffer_, events);
  buffer_.clear();
  for (SseEvent& event : events)
    if (only_type_.empty() || event.type == only_type_) out.push_back({std::move(event.data), std::move(event.id)});
}

Status SseLink::finished(CURLcode result) {
  if (!refused_.ok()) return refused_;
  if (!rule_.refused.empty() && !established_)
    return error(Code::kPermissionDenied, name_.peer.authority(), ": ", rule_.refused, "; add private=1 to allow it");
  if (result == CURLE_OK) return error(Code::kUnavailable, "the server ended the answer");
  return error(Code::kUnavailable, name_.peer.authority(), ": ", curl_easy_strerror(result));
}

class SseStream : public LiveSource {
 public:
  SseStream(LiveName name, std::string only_type, Options options, RecordFormat format)
      : LiveSource(std::move(options), std::move(format)), name_(std::move(name)), only_type_(std::move(only_type)) {}

 protected:
  std::unique_ptr<LiveLink> link(const Place& place) override {
    return std::make_unique<SseLink>(name_, only_type_, place.token());
  }

 private:
  const LiveName name_;
  const std::string only_type_;
};

void set_wikimedia(LiveName& name, Numbering& numbering) {
  name.set_default("format", "json");
  name.set_default("text", "/title,/comment");
  name.set_default("id", "/meta/id");
  name.set_default("time", "/meta/dt");
  name.set_default("lookback", "604800");
  numbering = {.number = "/meta/offset", .lane = {"/meta/topic", "/meta/partition"}};
}

}  // namespace

Result<std::unique_ptr<Source>> SseSource::open(const std::string& name) {
  init_curl();
  STREAMVEC_ASSIGN_OR_RETURN(LiveName parsed, LiveName::parse(name, {"event"}));
  const Location& location = parsed.location;
  const std::string form = location.text("form", location.host == "stream.wikimedia.org" ? "wikimedia" : "plain");
  LiveSource::Options options = {.name = location.name};
  if (form == "wikimedia") {
    set_wikimedia(parsed, options.numbering);
  } else if (form != "plain") {
    return error(Code::kInvalidArgument, location.name, ": form=", form, " is not known; forms are plain, wikimedia");
  }
  STREAMVEC_RETURN_IF_ERROR(parsed.take_settings());
  options.lookback_s = parsed.lookback_s;
  options.backoff.first = parsed.retry;
  STREAMVEC_ASSIGN_OR_RETURN(RecordFormat format, RecordFormat::from(location));
  std::string only_type = location.text("event");
  return std::unique_ptr<Source>(
      std::make_unique<SseStream>(std::move(parsed), std::move(only_type), std::move(options), std::move(format)));
}

}  // namespace streamvec
