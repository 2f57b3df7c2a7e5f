#include "streamvec/serve/http_server.h"

#include <pthread.h>
#include <sys/resource.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "streamvec/core/clock.h"
#include "streamvec/serve/client_table.h"
#include "streamvec/serve/http_connection.h"

namespace streamvec {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::milliseconds kSweepEvery{250}, kAcceptAgain{100};

// Of IPv6 the /64, which is what one customer has at least.
std::string client_of(const tcp::socket& socket) {
  error_code failed;
  const auto endpoint = socket.remote_endpoint(failed);
  if (failed) return "";
  const asio::ip::address address = endpoint.address();
  if (address.is_v4() || address.is_loopback()) return address.to_string();
  const asio::ip::address_v6 six = address.to_v6();
  if (six.is_v4_mapped()) return asio::ip::make_address_v4(asio::ip::v4_mapped, six).to_string();
  asio::ip::address_v6::bytes_type bytes = six.to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), static_cast<unsigned char>(0));
  return asio::ip::address_v6(bytes).to_string() + "/64";
}

// Every connection is a file, and the usual limit of 1,024 is a soft one.
void allow_open_files(int64_t count) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const auto wanted = std::min<rlim_t>(limit.rlim_max, static_cast<rlim_t>(count) + 512);
  if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// All that the network's thread has. Connections keep it alive; it lets go of them when it stops.
class Core final : public HttpConnectionHost, public std::enable_shared_from_this<Core> {
 public:
  Core(const HttpServer::Options& options, HttpHandler& handler, std::unique_ptr<StreamMaker> streams)
      : options_(options), handler_(handler), streams_(std::move(streams)), clients_(options.limits) {}

  Status listen() {
    error_code failed;
    const std::string& host = options_.address.host;
    tcp::resolver resolver(io_);
    const auto found = resolver.resolve(host, std::to_string(options_.address.port),
                                        tcp::resolver::passive | tcp::resolver::numeric_service, failed);
    if (failed || found.empty())
      return error(Code::kUnavailable, "the address ", host, " is not known: ", failed.message());
    const tcp::endpoint endpoint = *found.begin();
    acceptor_.open(endpoint.protocol(), failed);
    if (!failed) acceptor_.set_option(tcp::acceptor::reuse_address(true), failed);
    if (!failed) acceptor_.bind(endpoint, failed);
    if (!failed) acceptor_.listen(1'024, failed);
    if (failed)
      return error(Code::kUnavailable, "cannot listen on ", host, ":", options_.address.port, ": ", failed.message(),
                   "; try another port");
    port_ = acceptor_.local_endpoint().port();
    allow_open_files(options_.limits.connections_max);
    return {};
  }

  void begin() {
    accept();
    sweep_later();
    thread_ = std::thread([this] {
      ::pthread_setname_np(::pthread_self(), "http");
      io_.run();
    });
  }

  void stop(double grace_s) {
    if (!thread_.joinable()) return;
    asio::post(io_, [this, grace_s] {
      error_code ignored;
      acceptor_.close(ignored);
      stop_at_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(grace_s));
      stop_if_idle();
    });
    thread_.join();
    {
      const std::lock_guard lock(posting_);
      stopped_ = true;
    }
    io_.restart();
    io_.poll();  // what was posted meanwhile finds its connection closed
  }

  uint16_t port() const { return port_; }
  HttpServer::Statistics statistics() const {
    return {connections_now_, accepted_, requests_, refused_, bytes_sent_, too_slow_, event_readers_};
  }

  const HttpServer::Options& options() const override { return options_; }
  HttpHandler& handler() override { return handler_; }
  void post(std::function<void()> work) override {
    const std::lock_guard lock(posting_);
    if (!stopped_) asio::post(io_, std::move(work));
  }
  void gone(HttpConnection& connection) override {
    clients_.leave(connection.client(), Clock::now());
    connections_.erase(&connection);
    connections_now_ = static_cast<int64_t>(connections_.size());
  }
  bool may_ask(const std::string& client) override {
    ++requests_;
    return clients_.may_ask(client, Clock::now());
  }
  bool take_body_bytes(int64_t bytes) override {
    if (bytes > 0 && bodies_bytes_ + bytes > options_.limits.bodies_bytes_max) return false;
    bodies_bytes_ += bytes;
    return true;
  }
  void count_sent(int64_t bytes) override { bytes_sent_ += bytes; }
  void count_events(int change) override { event_readers_ += change; }

 private:
  void accept() {
    acceptor_.async_accept([this](error_code failed, tcp::socket socket) {
      if (!acceptor_.is_open()) return;
      if (failed) return accept_later();  // out of files, most likely
      take(std::move(socket));
      accept();
    });
  }

  void accept_later() {
    again_.expires_after(kAcceptAgain);
    again_.async_wait([this](error_code failed) {
      if (!failed && acceptor_.is_open()) accept();
    });
  }

  void take(tcp::socket socket) {
    ++accepted_;
    const std::string client = client_of(socket);
    if (client.empty()) return;
    if (!clients_.enter(client, Clock::now())) return turn_away(socket);
    if (static_cast<int64_t>(connections_.size()) >= options_.limits.connections_max && !make_room()) {
      clients_.leave(client, Clock::now());
      return turn_away(socket);
    }
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    const auto connection =
        std::make_shared<HttpConnection>(shared_from_this(), streams_->make(std::move(socket)), client);
    connections_[connection.get()] = connection;
    connections_now_ = static_cast<int64_t>(connections_.size());
    connection->start();
  }

  // In plain text a few lines say why; the socket's buffer has room for them.
  void turn_away(tcp::socket& socket) {
    ++refused_;
    if (options_.tls.on()) return;
    const HttpResponse refusal = error_response(503, "too many connections; come again in a moment");
    std::string text =
        "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Type: " + refusal.content_type +
        "\r\nContent-Length: " + std::to_string(refusal.body.size()) + "\r\n";
    for (const auto& [name, value] : refusal.headers) text += name + ": " + value + "\r\n";
    text += "\r\n" + refusal.body;
    error_code ignored;
    socket.non_blocking(true, ignored);
    socket.write_some(asio::buffer(text.data(), text.size()), ignored);
    socket.shutdown(tcp::socket::shutdown_both, ignored);
  }

  // The connection that has been without a whole request for longest goes.
  bool make_room() {
    std::shared_ptr<HttpConnection> oldest;
    for (const auto& [key, connection] : connections_)
      if (connection->expendable() && (oldest == nullptr || connection->since() < oldest->since())) oldest = connection;
    if (oldest != nullptr) oldest->close();
    return oldest != nullptr;
  }

  void sweep_later() {
    sweep_.expires_after(kSweepEvery);
    sweep_.async_wait([this](error_code failed) {
      if (failed) return;
      sweep();
      if (!stop_if_idle()) sweep_later();
    });
  }

  void sweep() {
    const Clock::time_point now = Clock::now();
    std::vector<std::shared_ptr<HttpConnection>> all;
    all.reserve(connections_.size());
    for (const auto& entry : connections_) all.push_back(entry.second);
    for (const auto& connection : all)
      if (!connection->closed() && connection->close_if_late(now)) ++too_slow_;
    clients_.sweep(now);
  }

  // True when all is over and the thread ends.
  bool stop_if_idle() {
    if (!stop_at_) return false;
    std::vector<std::shared_ptr<HttpConnection>> all;
    for (const auto& entry : connections_) all.push_back(entry.second);
    bool busy = false;
    for (const auto& connection : all) {
      if (connection->awaits_answer() && Clock::now() < *stop_at_)
        busy = true;
      else
        connection->close();
    }
    if (!busy) io_.stop();
    return !busy;
  }

  const HttpServer::Options options_;
  HttpHandler& handler_;
  const std::unique_ptr<StreamMaker> streams_;
  asio::io_context io_{1};
  tcp::acceptor acceptor_{io_};
  asio::steady_timer sweep_{io_}, again_{io_};
  std::thread thread_;
  uint16_t port_ = 0;
  std::mutex posting_;
  bool stopped_ = false;
  // Of the network's thread.
  ClientTable clients_;
  std::unordered_map<HttpConnection*, std::shared_ptr<HttpConnection>> connections_;
  int64_t bodies_bytes_ = 0;
  std::optional<Clock::time_point> stop_at_;
  std::atomic<int64_t> connections_now_{0}, accepted_{0}, requests_{0}, refused_{0}, bytes_sent_{0}, too_slow_{0},
      event_readers_{0};
};

class Server final : public HttpServer {
 public:
  explicit Server(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  ~Server() override { stop(0); }
  void begin() override { core_->begin(); }
  uint16_t port() const override { return core_->port(); }
  Statistics statistics() const override { return core_->statistics(); }
  void stop(double grace_s) override { core_->stop(grace_s); }

 private:
  const std::shared_ptr<Core> core_;
};

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::listen(const Options& options, HttpHandler& handler) {
  std::unique_ptr<StreamMaker> streams = plain_streams();
  if (options.tls.on()) {
    STREAMVEC_ASSIGN_OR_RETURN(streams, tls_streams(options.tls));
  }
  auto core = std::make_shared<Core>(options, handler, std::move(streams));
  STREAMVEC_RETURN_IF_ERROR(core->listen());
  return std::unique_ptr<HttpServer>(std::make_unique<Server>(std::move(core)));
}

}  // namespace streamvec
