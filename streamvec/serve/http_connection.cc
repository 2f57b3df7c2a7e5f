#include "streamvec/serve/http_connection.h"

#include <algorithm>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <charconv>
#include <cstring>

namespace streamvec {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr size_t kReadBytes = 8'192;
constexpr size_t kHeadersMax = 64;
constexpr size_t kTargetBytesMax = 8'192;

HttpConnectionHost::Clock::duration seconds(double count) {
  return std::chrono::duration_cast<HttpConnectionHost::Clock::duration>(std::chrono::duration<double>(count));
}

}  // namespace

struct HttpConnection::Parser {
  http::request_parser<http::string_body> parser;
};

HttpConnection::HttpConnection(std::shared_ptr<HttpConnectionHost> host, std::unique_ptr<ByteStream> stream,
                               std::string client)
    : host_(std::move(host)), stream_(std::move(stream)), client_(std::move(client)) {}

HttpConnection::~HttpConnection() = default;

void HttpConnection::enter(Stage stage, double patience_s) {
  stage_ = stage;
  since_ = Clock::now();
  deadline_ = patience_s > 0 ? since_ + seconds(patience_s) : Clock::time_point::max();
}

void HttpConnection::start() {
  enter(Stage::kHandshake, host_->options().limits.header_s);
  stream_->handshake([self = shared_from_this()](error_code failed, size_t) {
    if (self->closed()) return;
    if (failed) return self->close();
    self->begin_request();
    self->enter(Stage::kHeader, self->host_->options().limits.header_s);  // a new client asks at once
    self->read();
  });
}

void HttpConnection::close() {
  if (stage_ == Stage::kClosed) return;
  const auto self = shared_from_this();
  if (stage_ == Stage::kEvents) host_->count_events(-1);
  stage_ = Stage::kClosed;
  dead_ = true;
  give_back_body();
  output_.clear();
  stream_->close();
  host_->gone(*this);
}

bool HttpConnection::close_if_late(Clock::time_point now) {
  if (now < deadline_ && now < write_deadline_) return false;
  const bool was_slow = stage_ != Stage::kIdle && stage_ != Stage::kLingering;
  if (stage_ == Stage::kHeader || stage_ == Stage::kBody)
    refuse(408, "the request took too long to arrive");
  else if (stage_ == Stage::kAnswering)
    refuse(504, "no answer was found in time");
  else
    close();
  return was_slow;
}

void HttpConnection::begin_request() {
  const HttpLimits& limits = host_->options().limits;
  parser_ = std::make_unique<Parser>();
  parser_->parser.header_limit(static_cast<std::uint32_t>(limits.header_bytes_max));
  parser_->parser.body_limit(static_cast<std::uint64_t>(limits.body_bytes_max));
  parser_->parser.eager(false);
  request_ = HttpRequest();
  keep_ = unread_ = head_only_ = http_1_0_ = false;
  enter(Stage::kIdle, limits.idle_s);
}

void HttpConnection::read() {
  if (reading_ || closed()) return;
  if (input_begin_ > 0) {
    std::memmove(input_.data(), input_.data() + input_begin_, input_end_ - input_begin_);
    input_end_ -= input_begin_;
    input_begin_ = 0;
  }
  input_.resize(input_end_ + kReadBytes);
  reading_ = true;
  stream_->read_some(asio::buffer(input_.data() + input_end_, kReadBytes),
                     [self = shared_from_this()](error_code failed, size_t bytes) {
                       self->reading_ = false;
                       if (self->closed()) return;
                       if (failed) return self->close();
                       self->take(bytes);
                     });
}

void HttpConnection::take(size_t bytes) {
  input_end_ += bytes;
  if (stage_ == Stage::kEvents) return close();  // nothing more is expected of a reader
  if (stage_ == Stage::kLingering) {
    input_begin_ = input_end_ = 0;
    return read();
  }
  if (stage_ == Stage::kIdle) enter(Stage::kHeader, host_->options().limits.header_s);
  parse();
}

// As far as what was read goes.
void HttpConnection::parse() {
  auto& parser = parser_->parser;
  while (stage_ <= Stage::kBody) {
    error_code failed;
    const bool had_header = parser.is_header_done();
    const size_t used = parser.put(asio::buffer(input_.data() + input_begin_, input_end_ - input_begin_), failed);
    input_begin_ += used;
    if (failed == http::error::need_more) {
      // The parser reads headers in one piece: what is not ended yet stays in the buffer.
      if (!parser.is_header_done() &&
          input_end_ - input_begin_ > static_cast<size_t>(host_->options().limits.header_bytes_max))
        return refuse(431, "the header is too large");
      return read();
    }
    if (failed == http::error::header_limit) return refuse(431, "the header is too large");
    if (failed == http::error::body_limit) return refuse(413, "the body is too large");
    if (failed == http::error::bad_version) return refuse(505, "only HTTP/1.1 is spoken here");
    if (failed) return refuse(400, "this is no HTTP request: " + failed.message());
    if (!had_header && parser.is_header_done()) {
      header_is_there();
      if (stage_ != Stage::kBody) return;
    }
    if (parser.is_done()) return body_is_there();
    if (input_begin_ == input_end_) return read();
  }
}

Status HttpConnection::fill_request() {
  const auto& message = parser_->parser.get();
  request_.method = std::string(message.method_string());
  request_.client = client_;
  std::string_view target(message.target().data(), message.target().size());
  if (target.size() > kTargetBytesMax) return error(Code::kResourceExhausted, "the address is too long");
  const std::string_view host = take_authority(target);
  STREAMVEC_RETURN_IF_ERROR(parse_target(target, request_.path, request_.query));
  for (const auto& field : message) {
    if (request_.headers.size() >= kHeadersMax) return error(Code::kResourceExhausted, "there are too many headers");
    request_.headers.push_back({lower_case({field.name_string().data(), field.name_string().size()}),
                                std::string(field.value().data(), field.value().size())});
    if (!host.empty() && request_.headers.back().first == "host") request_.headers.back().second = host;
  }
  return {};
}

void HttpConnection::header_is_there() {
  auto& parser = parser_->parser;
  http_1_0_ = parser.get().version() < 11;
  head_only_ = parser.get().method() == http::verb::head;
  const Status filled = fill_request();
  if (!filled.ok()) return refuse(filled.code() == Code::kResourceExhausted ? 431 : 400, filled.message());
  if (!host_->may_ask(client_)) return refuse(429, "too many requests; ask more slowly");
  const bool tls = host_->options().tls.on();
  if (auto refusal = host_->handler().admit(request_, stream_->client_role(), tls)) {
    // What may follow of a body is not read: the connection goes.
    const auto length = parser.content_length();
    unread_ = parser.chunked() || (length && *length > 0);
    keep_ = parser.keep_alive() && !unread_;
    host_->handler().refused(request_, refusal->status);
    return put_answer(*refusal, !keep_);
  }
  const HttpLimits& limits = host_->options().limits;
  const auto length = parser.content_length();
  if (length && *length > static_cast<uint64_t>(limits.body_bytes_max)) return refuse(413, "the body is too large");
  const int64_t body = parser.chunked() ? limits.body_bytes_max : static_cast<int64_t>(length.value_or(0));
  if (!host_->take_body_bytes(body)) return refuse(503, "too many large requests at once");
  body_bytes_ = body;
  const std::string_view expect = request_.header("expect");
  if (!expect.empty() && lower_case(expect) != "100-continue")
    return refuse(417, "nothing is known of that expectation");
  enter(Stage::kBody, limits.body_s);
  parser.eager(true);
  if (!expect.empty() && !http_1_0_ && !parser.is_done() && input_begin_ == input_end_) {
    static const auto kContinue = std::make_shared<const std::string>("HTTP/1.1 100 Continue\r\n\r\n");
    put(kContinue);
  }
}

void HttpConnection::body_is_there() {
  auto& parser = parser_->parser;
  keep_ = parser.keep_alive();
  request_.body = std::move(parser.get().body());
  enter(Stage::kAnswering, host_->options().limits.answer_s);
  host_->handler().handle(shared_from_this());
}

void HttpConnection::give_back_body() {
  if (body_bytes_ > 0) host_->take_body_bytes(-body_bytes_);
  body_bytes_ = 0;
}

void HttpConnection::refuse(int status, std::string_view message) {
  keep_ = false;
  unread_ = true;
  if (stage_ != Stage::kAnswering) host_->handler().refused(request_, status);
  put_answer(error_response(status, message), true);
}

void HttpConnection::respond(HttpResponse response) {
  if (dead_) return;
  host_->post([self = shared_from_this(), response = std::move(response)] {
    if (self->stage_ == Stage::kAnswering) self->put_answer(response, !self->keep_);
  });
}

std::string HttpConnection::common_headers() const {
  std::string text = host_->options().common_headers;
  for (const auto& [name, value] : host_->handler().headers_for(request_)) text += name + ": " + value + "\r\n";
  return text;
}

void HttpConnection::put_answer(const HttpResponse& response, bool last) {
  give_back_body();
  keep_ = !last;
  const std::string& body = response.shared_body ? *response.shared_body : response.body;
  std::string text = "HTTP/1.1 " + std::to_string(response.status) + " ";
  text += reason_of(response.status);
  text += "\r\n";
  if (response.status != 204 && response.status != 304) {
    text += "Content-Type: " + response.content_type + "\r\n";
    text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  }
  for (const auto& [name, value] : response.headers) text += name + ": " + value + "\r\n";
  text += common_headers();
  if (last) text += "Connection: close\r\n";
  if (!last && http_1_0_) text += "Connection: keep-alive\r\n";
  text += "\r\n";
  const bool with_body = !head_only_ && response.status != 204 && response.status != 304;
  if (with_body && !response.shared_body) text += body;
  enter(Stage::kWriting, host_->options().limits.write_total_s);
  put(std::make_shared<const std::string>(std::move(text)));
  if (with_body && response.shared_body) put(response.shared_body);
}

std::shared_ptr<EventSink> HttpConnection::begin_events() {
  if (!dead_)
    host_->post([self = shared_from_this()] {
      if (self->stage_ != Stage::kAnswering) return self->dead_.store(true);
      self->give_back_body();
      self->enter(Stage::kEvents, 0);
      self->host_->count_events(1);
      std::string text = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n" +
                         self->common_headers() + "Connection: close\r\n\r\n";
      self->put(std::make_shared<const std::string>(std::move(text)));
      self->read();  // to notice when the reader goes
    });
  return shared_from_this();
}

bool HttpConnection::send(std::shared_ptr<const std::string> bytes) {
  if (dead_) return false;
  const auto size = static_cast<int64_t>(bytes->size());
  if (backlog_.fetch_add(size) + size > host_->options().limits.events_backlog_bytes_max) dead_ = true;
  host_->post([self = shared_from_this(), bytes = std::move(bytes)] {
    if (self->closed()) return;
    if (self->dead_) return self->close();
    if (self->stage_ == Stage::kEvents) self->put(bytes);
  });
  return !dead_;
}

void HttpConnection::end() {
  dead_ = true;
  host_->post([self = shared_from_this()] { self->close(); });
}

void HttpConnection::put(std::shared_ptr<const std::string> bytes) {
  if (!bytes->empty()) output_.push_back(std::move(bytes));
  write();
}

void HttpConnection::write() {
  if (writing_ || closed() || output_.empty()) return;
  writing_ = true;
  write_deadline_ = Clock::now() + seconds(host_->options().limits.write_s);
  const std::shared_ptr<const std::string> front = output_.front();
  stream_->write_some(asio::buffer(front->data() + output_at_, front->size() - output_at_),
                      [self = shared_from_this(), front](error_code failed, size_t bytes) {
                        self->writing_ = false;
                        if (self->closed()) return;
                        if (failed) return self->close();
                        self->wrote(bytes);
                      });
}

void HttpConnection::wrote(size_t bytes) {
  host_->count_sent(static_cast<int64_t>(bytes));
  output_at_ += bytes;
  if (stage_ == Stage::kEvents) backlog_ -= static_cast<int64_t>(bytes);
  if (output_at_ == output_.front()->size()) {
    output_.pop_front();
    output_at_ = 0;
  }
  write_deadline_ = Clock::time_point::max();
  if (!output_.empty()) return write();
  if (stage_ == Stage::kWriting) all_written();
}

// Closing while the client still sends would take the answer from it: what comes is read and dropped for a moment.
void HttpConnection::linger() {
  constexpr double kLinger_s = 2;
  enter(Stage::kLingering, kLinger_s);
  stream_->end_output();
  input_begin_ = input_end_ = 0;
  read();
}

void HttpConnection::all_written() {
  if (!keep_) return unread_ ? linger() : close();
  begin_request();
  if (input_begin_ == input_end_) {
    input_.clear();
    input_.shrink_to_fit();  // idle connections hold no buffers
    input_begin_ = input_end_ = 0;
    return read();
  }
  enter(Stage::kHeader, host_->options().limits.header_s);  // the next request is there already
  parse();
}

}  // namespace streamvec
