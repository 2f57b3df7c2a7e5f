// For tests only: a server on loopback whose every connection runs a script, and a client's side of reading.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "streamvec/source/live/websocket_frames.h"
#include "streamvec/source/live/websocket_handshake.h"
#include "streamvec/source/source.h"
#include "streamvec/source/testing_documents.h"

namespace streamvec {

// The server's side of one connection. Waits end after 10 s, or when the server is stopped.
class ScriptedPeer {
 public:
  ScriptedPeer(int socket, int number, const std::atomic<bool>& stopped)
      : socket_(socket), number_(number), stopped_(stopped) {}
  ~ScriptedPeer() { ::close(socket_); }
  ScriptedPeer(const ScriptedPeer&) = delete;

  int number() const { return number_; }  // of the connection, from 0
  const std::string& request() const { return request_; }
  bool await_request() {
    while (request_.find("\r\n\r\n") == std::string::npos)
      if (!await_more(request_)) return false;
    return true;
  }
  // Everything that comes until the client closes, or for as long as `wait`.
  std::string await_close(std::chrono::milliseconds wait = std::chrono::seconds(10)) {
    std::string bytes;
    const auto until = std::chrono::steady_clock::now() + wait;
    while (std::chrono::steady_clock::now() < until && await_more(bytes, until)) continue;
    return bytes;
  }
  // False when the client is gone, or takes nothing for `wait`. `sent` counts.
  bool send(std::string_view bytes, std::chrono::milliseconds wait = std::chrono::seconds(10)) {
    while (!bytes.empty()) {
      pollfd room = {socket_, POLLOUT, 0};
      if (::poll(&room, 1, static_cast<int>(wait.count())) <= 0 || stopped_) return false;
      const ssize_t size = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (size < 0) return false;
      sent += size;
      bytes.remove_prefix(static_cast<size_t>(size));
    }
    return true;
  }
  // Until the server is stopped or the client goes.
  void stall() { await_close(); }
  std::atomic<int64_t> sent = 0;

 private:
  bool await_more(std::string& bytes, std::chrono::steady_clock::time_point until = std::chrono::steady_clock::now() +
                                                                                    std::chrono::seconds(10)) {
    for (char room[4096]; std::chrono::steady_clock::now() < until;) {
      const bool last = stopped_;  // what had come before the server was stopped is still read
      pollfd wanted = {socket_, POLLIN, 0};
      if (::poll(&wanted, 1, last ? 0 : 20) == 0) {
        if (last) return false;
        continue;
      }
      const ssize_t size = ::recv(socket_, room, sizeof room, 0);
      if (size > 0) bytes.append(room, static_cast<size_t>(size));
      return size > 0;
    }
    return false;
  }

  int socket_, number_;
  const std::atomic<bool>& stopped_;
  std::string request_;
};

// Runs `script` for each connection, in a thread of its own, after the request's head has come.
class ScriptedServer {
 public:
  using Script = std::function<void(ScriptedPeer&)>;
  explicit ScriptedServer(Script script) : script_(std::move(script)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 16), 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~ScriptedServer() {
    stopped_ = true;
    acceptor_.join();
    for (std::thread& thread : threads_) thread.join();
    ::close(listener_);
  }
  int port() const { return port_; }
  std::string authority() const { return "127.0.0.1:" + std::to_string(port_); }
  int connections() const { return connections_; }

 private:
  void accept_all() {
    while (!stopped_) {
      pollfd wanted = {listener_, POLLIN, 0};
      if (::poll(&wanted, 1, 10) <= 0) continue;
      const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0) continue;
      threads_.emplace_back([this, socket, number = connections_++] {
        ScriptedPeer peer(socket, number, stopped_);
        if (peer.await_request()) script_(peer);
      });
    }
  }

  Script script_;
  int listener_ = -1, port_ = 0;
  std::atomic<bool> stopped_ = false;
  std::atomic<int> connections_ = 0;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

inline const std::string kEventStream = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nretry: 10\n\n";

// The server's answer to a WebSocket handshake.
inline std::string switching(const std::string& request) {
  return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n"
         "Sec-WebSocket-Accept: " +
         websocket_accept(header_value(request, "sec-websocket-key")) + "\r\n\r\n";
}

// A frame as a server sends it: not masked.
inline std::string server_frame(WebSocketOpcode opcode, std::string_view payload, bool final = true) {
  std::string frame(1, static_cast<char>((final ? 0x80 : 0) | static_cast<uint8_t>(opcode)));
  const size_t bytes = payload.size() < 126 ? 0 : payload.size() <= 0xFFFF ? 2 : 8;
  frame += static_cast<char>(bytes == 0 ? payload.size() : bytes == 2 ? 126 : 127);
  for (size_t i = bytes; i-- > 0;) frame += static_cast<char>(payload.size() >> (8 * i) & 0xFF);
  return frame.append(payload);
}

// Reads until `count` documents are there or 30 s have passed; faults that may pass are waited out and counted.
inline std::vector<Document> read_documents(Source& source, size_t count, int* faults = nullptr) {
  std::vector<Document> documents;
  const Deadline end = Deadline::after(std::chrono::seconds(30));
  while (documents.size() < count && !end.passed()) {
    const Result<int64_t> got = source.read(static_cast<int64_t>(count - documents.size()),
                                            Deadline::after(std::chrono::milliseconds(200)), documents);
    if (got.ok() && *got == 0) break;
    if (got.ok() || got.status().code() == Code::kDeadlineExceeded) continue;
    if (faults != nullptr) ++*faults;
    if (got.status().code() == Code::kUnavailable) continue;
    ADD_FAILURE() << got.status().message();
    break;
  }
  return documents;
}

// What the first read that fails says, but for time-outs; documents that come before it go to `before`.
inline Status first_error(Source& source, std::vector<Document>* before = nullptr) {
  std::vector<Document> ignored;
  std::vector<Document>& out = before == nullptr ? ignored : *before;
  const Deadline end = Deadline::after(std::chrono::seconds(30));
  while (!end.passed()) {
    const Result<int64_t> got = source.read(1, Deadline::after(std::chrono::milliseconds(100)), out);
    if (got.ok() ? *got == 0 : got.status().code() != Code::kDeadlineExceeded) return got.status();
  }
  return {};
}

}  // namespace streamvec
