// For tests only: a web server on loopback that says what it is told to say, faults included.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "streamvec/source/http/fetcher.h"

namespace streamvec {

// One answer, and how it is sent.
struct ScriptedAnswer {
  int status = 200;
  std::string body = {};
  std::vector<std::string> headers = {};  // "Name: value"
  std::string raw = {};                   // sent in place of all of the above
  int64_t length = -1;                    // the Content-Length claimed, when it is not the body's
  bool reset = false;                     // the connection is reset instead of closed, after half of the body
  std::chrono::milliseconds drip{0};      // between bytes of the body
  bool endless = false;                   // the body, again and again, until the reader leaves
  std::chrono::milliseconds wait{0};      // before the first byte
};

// For what a busy machine may spoil, but not each time: whether `holds` once did.
inline bool holds_once(const std::function<bool()>& holds) {
  for (int tries = 0; tries < 20; ++tries)
    if (holds()) return true;
  return false;
}

struct ScriptedRequest {
  std::string target, head;
  std::chrono::steady_clock::time_point began, ended;

  std::string header(std::string_view name) const {
    for (size_t at = 0; (at = head.find("\r\n", at)) != std::string::npos;) {
      at += 2;
      const size_t end = head.find("\r\n", at), colon = head.find(':', at);
      if (colon >= end) continue;
      const bool same = std::equal(name.begin(), name.end(), head.begin() + static_cast<std::ptrdiff_t>(at),
                                   head.begin() + static_cast<std::ptrdiff_t>(colon),
                                   [](char a, char b) { return std::tolower(a) == std::tolower(b); });
      if (same) return head.substr(colon + 2, end - colon - 2);
    }
    return "";
  }
};

// Answers each target by its function or its list (the last of a list again and again), /robots.txt by 404 unless set,
// and everything else by 404. A thread per connection, closed after each answer.
class ScriptedServer {
 public:
  using Handler = std::function<ScriptedAnswer(const ScriptedRequest&)>;

  ScriptedServer() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_, 64), 0);
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { accept_all(); });
  }
  ~ScriptedServer() {
    stop_ = true;
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    for (std::thread& thread : connections_) thread.join();
    ::close(socket_);
  }
  ScriptedServer(const ScriptedServer&) = delete;

  int port() const { return port_; }
  std::string host() const { return "127.0.0.1:" + std::to_string(port_); }
  std::string url(const std::string& target = "/") const { return "http://" + host() + target; }

  void handle(const std::string& target, Handler handler) {
    const std::lock_guard lock(mutex_);
    handlers_[target] = std::move(handler);
  }
  void sequence(const std::string& target, std::deque<ScriptedAnswer> answers) {
    handle(target, [answers = std::move(answers)](const ScriptedRequest&) mutable {
      ScriptedAnswer answer = answers.front();
      if (answers.size() > 1) answers.pop_front();
      return answer;
    });
  }
  void set(const std::string& target, ScriptedAnswer answer) { sequence(target, {std::move(answer)}); }
  void page(const std::string& target, const std::string& body) {
    set(target, {.body = body, .headers = {"Content-Type: text/html; charset=utf-8"}});
  }

  std::vector<ScriptedRequest> requests(const std::string& target = "") const {
    const std::lock_guard lock(mutex_);
    std::vector<ScriptedRequest> found;
    for (const ScriptedRequest& request : requests_)
      if (target.empty() || request.target == target) found.push_back(request);
    return found;
  }
  size_t count(const std::string& target) const { return requests(target).size(); }
  int connections_most() const { return connections_most_; }  // open at the same moment

 private:
  void accept_all() {
    for (;;) {
      const int connection = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) return;
      const int open = ++connections_open_;
      connections_most_ = std::max<int>(connections_most_, open);
      connections_.emplace_back([this, connection] {
        serve(connection);
        ::close(connection);
        --connections_open_;
      });
    }
  }

  void serve(int connection) {
    ScriptedRequest request;
    request.began = std::chrono::steady_clock::now();
    char buffer[4096];
    while (request.head.find("\r\n\r\n") == std::string::npos) {
      pollfd readable = {connection, POLLIN, 0};
      if (::poll(&readable, 1, 20) == 0 && !stop_) continue;
      const ssize_t got = stop_ ? 0 : ::recv(connection, buffer, sizeof buffer, 0);
      if (got <= 0) return;
      request.head.append(buffer, static_cast<size_t>(got));
    }
    const size_t space = request.head.find(' ');
    request.target = request.head.substr(space + 1, request.head.find(' ', space + 1) - space - 1);
    const ScriptedAnswer answer = answer_to(request);
    pause(answer.wait);
    send(connection, answer);
    const std::lock_guard lock(mutex_);
    for (ScriptedRequest& known : requests_)
      if (known.began == request.began && known.target == request.target)
        known.ended = std::chrono::steady_clock::now();
  }

  ScriptedAnswer answer_to(const ScriptedRequest& request) {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
    const auto handler = handlers_.find(request.target);
    if (handler == handlers_.end()) return {.status = 404, .body = "not here"};
    return handler->second(request);
  }

  void send(int connection, const ScriptedAnswer& answer) {
    if (!answer.raw.empty()) {
      send_bytes(connection, answer.raw);
      return;
    }
    std::string head = "HTTP/1.1 " + std::to_string(answer.status) + " Scripted\r\nConnection: close\r\n";
    const auto length = answer.length >= 0 ? static_cast<size_t>(answer.length) : answer.body.size();
    if (!answer.endless) head += "Content-Length: " + std::to_string(length) + "\r\n";
    for (const std::string& header : answer.headers) head += header + "\r\n";
    if (!send_bytes(connection, head + "\r\n")) return;
    if (answer.reset) {
      send_bytes(connection, answer.body.substr(0, answer.body.size() / 2));
      const linger at_once = {1, 0};
      ::setsockopt(connection, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
      return;
    }
    do {
      const size_t step = answer.drip.count() > 0 ? 1 : answer.body.size();
      for (size_t at = 0; at < answer.body.size(); at += step) {
        if (stop_ || !send_bytes(connection, answer.body.substr(at, step))) return;
        pause(answer.drip);
      }
    } while (answer.endless && !stop_);
  }

  bool send_bytes(int connection, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  void pause(std::chrono::milliseconds time) {
    const auto until = std::chrono::steady_clock::now() + time;
    while (!stop_ && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::min(time, std::chrono::milliseconds(5)));
  }

  int socket_;
  int port_ = 0;
  std::atomic<bool> stop_ = false;
  mutable std::mutex mutex_;
  std::map<std::string, Handler> handlers_;
  std::vector<ScriptedRequest> requests_;
  std::vector<std::thread> connections_;
  std::atomic<int> connections_open_ = 0, connections_most_ = 0;
  std::thread thread_;
};

// Quick, and free to read loopback.
inline Fetcher::Options testing_fetch_options() {
  Fetcher::Options options;
  options.host_delay = std::chrono::milliseconds(1);
  options.backoff_first = std::chrono::milliseconds(2);
  options.backoff_max = std::chrono::milliseconds(20);
  options.timeout = std::chrono::milliseconds(5'000);
  options.private_hosts = {"*"};
  return options;
}

inline Url url_of(const std::string& text) {
  Result<Url> url = Url::parse(text);
  EXPECT_TRUE(url.ok()) << url.status().message();
  return url.ok() ? *url : Url();
}

// One fetch by a fetcher of its own.
inline FetchResponse fetch(const std::string& url, Fetcher::Options options = testing_fetch_options()) {
  Fetcher fetcher(std::move(options));
  Fetcher::Channel channel(fetcher);
  return channel.get({.url = url_of(url)}, Deadline::after(std::chrono::seconds(10)));
}

}  // namespace streamvec
