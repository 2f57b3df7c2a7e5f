#include "streamvec/source/newsroom/site.h"

#include <httplib.h>
#include <sys/socket.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "streamvec/source/newsroom/content.h"

namespace streamvec::newsroom {
namespace {

constexpr int kThreads = 8;                     // connections served at once; further ones wait
constexpr time_t kKeepAliveS = 1;               // how long an idle connection is kept, and so the longest time to stop
constexpr size_t kRequestsMax = 1'000'000'000;  // a connection
constexpr int kGzipLevel = 1;                   // the reader is near: time counts, not size

// Not httplib's own: it prefers brotli at its slowest setting.
std::string gzip(const std::string& text) {
  z_stream stream = {};
  if (deflateInit2(&stream, kGzipLevel, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) return {};
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// httplib sends what a provider gives as it is. A provider that fails half-way ends the connection there.
void set_body(std::string body, const std::string& type, bool cut_off, httplib::Response& response) {
  if (body.empty()) return response.set_content("", type);
  const size_t size = body.size(), end = cut_off ? size / 2 : size;
  response.set_content_provider(size, type,
                                [body = std::move(body), end](size_t offset, size_t length, httplib::DataSink& sink) {
                                  if (offset >= end) return false;
                                  return sink.write(body.data() + offset, std::min(length, end - offset));
                                });
}

// Unlike httplib's own options, these do not let two servers share a port.
void set_socket_options(socket_t socket) {
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
}

}  // namespace

class Site::Server {
 public:
  explicit Server(Options options) : options_(std::move(options)) {}
  ~Server() {
    {
      const std::lock_guard guard(lock_);
      stopping_ = true;
    }
    stopped_.notify_all();
    http_.stop();
    if (thread_.joinable()) thread_.join();
  }

  Status start() {
    http_.set_socket_options(set_socket_options);
    http_.set_tcp_nodelay(true);
    http_.set_keep_alive_max_count(kRequestsMax);
    http_.set_keep_alive_timeout(kKeepAliveS);
    http_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    port_ = options_.port;
    if (port_ == 0)
      port_ = http_.bind_to_any_port("127.0.0.1");
    else if (!http_.bind_to_port("127.0.0.1", port_))
      port_ = -1;
    if (port_ <= 0)
      return error(Code::kUnavailable, "127.0.0.1:", options_.port, " cannot be listened on; is the port taken?");
    content_.emplace(options_, url());
    http_.Get(".*", [this](const httplib::Request& request, httplib::Response& response) { serve(request, response); });
    return listen();
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int32_t port() const { return port_; }
  const Options& options() const { return options_; }
  const Content& content() const { return *content_; }

 private:
  Status listen() {
    try {
      thread_ = std::thread([this] {
        http_.listen_after_bind();
        ended_ = true;
      });
    } catch (const std::system_error& failure) {
      return error(Code::kResourceExhausted, "no thread for the newsroom's site: ", failure.what());
    }
    while (!http_.is_running() && !ended_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return {};
  }

  void serve(const httplib::Request& request, httplib::Response& response) {
    int64_t page = 1;
    const std::string asked = request.get_param_value("page");
    if (!asked.empty()) std::from_chars(asked.data(), asked.data() + asked.size(), page);
    Answer answer = content_->answer(
        request.path, page, {request.get_header_value("If-None-Match"), request.get_header_value("If-Modified-Since")});
    if (answer.slow) wait(options_.slow);
    response.status = answer.status;
    const auto set = [&](const char* name, const std::string& value) {
      if (!value.empty()) response.set_header(name, value);
    };
    set("ETag", answer.etag);
    set("Last-Modified", answer.last_modified);
    set("Location", answer.location);
    if (answer.status == 304) return;
    if (request.get_header_value("Accept-Encoding").find("gzip") != std::string::npos && !answer.body.empty()) {
      answer.body = gzip(answer.body);
      set("Content-Encoding", "gzip");
    }
    set("Vary", "Accept-Encoding");
    set_body(std::move(answer.body), answer.type, answer.cut_off, response);
  }

  void wait(std::chrono::milliseconds time) {
    std::unique_lock guard(lock_);
    stopped_.wait_for(guard, time, [this] { return stopping_; });
  }

  Options options_;
  int32_t port_ = 0;
  std::optional<Content> content_;  // once the port is known
  std::mutex lock_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  std::atomic<bool> ended_ = false;  // the thread no longer listens
  httplib::Server http_;
  std::thread thread_;
};

Site::Site(std::unique_ptr<Server> server) : server_(std::move(server)) {}
Site::~Site() = default;

Result<std::unique_ptr<Site>> Site::start(Options options) {
  STREAMVEC_CHECK(options.rate >= 0 && options.published >= 1 && options.feed_items >= 1 && options.ahead_max >= 0);
  STREAMVEC_CHECK(options.articles > 0 || options.rate > 0 || options.ahead_max > 0);
  auto server = std::make_unique<Server>(std::move(options));
  STREAMVEC_RETURN_IF_ERROR(server->start());
  return std::unique_ptr<Site>(new Site(std::move(server)));
}

int32_t Site::port() const {
  return server_->port();
}
std::string Site::url() const {
  return server_->url();
}
const Site::Options& Site::options() const {
  return server_->options();
}
int64_t Site::published() const {
  return server_->content().published();
}
int64_t Site::asked() const {
  return server_->content().asked();
}
int64_t Site::time_s(int64_t number) const {
  return server_->content().time_s(number);
}
std::string Site::article_url(int64_t number) const {
  return server_->content().article_url(number);
}

int64_t Site::readable(int64_t count) const {
  int64_t readable = 0;
  for (int64_t number = 0; number < count; ++number) readable += is_readable(server_->content().fault(number));
  return readable;
}

int64_t Site::article_number(const std::string& url) {
  for (const std::string_view part : {"/news/", "/old/"}) {
    const size_t at = url.find(part);
    int64_t number = -1;
    if (at == std::string::npos) continue;
    std::from_chars(url.data() + at + part.size(), url.data() + url.size(), number);
    return number < 0 ? -1 : number;
  }
  return -1;
}

}  // namespace streamvec::newsroom
