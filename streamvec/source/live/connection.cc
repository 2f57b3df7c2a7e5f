#include "streamvec/source/live/connection.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "streamvec/source/http/address.h"

namespace streamvec {
namespace {

sigset_t broken_pipe_only() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  return set;
}

curl_socket_t open_socket(void* user, curlsocktype, curl_sockaddr* address) {
  auto& rule = *static_cast<AddressRule*>(user);
  if (const std::string_view special = special_address(address->addr); !special.empty() && !rule.private_ok) {
    rule.refused = address_text(address->addr) + " is a " + std::string(special) + " address";
    return CURL_SOCKET_BAD;
  }
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

}  // namespace

void init_curl() {
  static const CURLcode result = curl_global_init(CURL_GLOBAL_DEFAULT);
  STREAMVEC_CHECK_EQ(result, CURLE_OK);
}

int milliseconds_left(Deadline deadline, int most) {
  if (deadline.when() == Deadline::Clock::time_point::max()) return most;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.when() - Deadline::Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, most));
}

Deadline sooner(Deadline one, Deadline other) {
  return one.when() < other.when() ? one : other;
}

// A signal that was pending or blocked before stays as it was; one that came meanwhile is taken away.
NoBrokenPipes::NoBrokenPipes() {
  sigset_t pending, before;
  const sigset_t pipe = broken_pipe_only();
  sigpending(&pending);
  was_pending_ = sigismember(&pending, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  was_blocked_ = sigismember(&before, SIGPIPE) == 1;
}

NoBrokenPipes::~NoBrokenPipes() {
  const sigset_t pipe = broken_pipe_only();
  const timespec at_once = {};
  if (!was_pending_) sigtimedwait(&pipe, nullptr, &at_once);
  if (!was_blocked_) pthread_sigmask(SIG_UNBLOCK, &pipe, nullptr);
}

std::string Peer::authority() const {
  const std::string bracketed = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return bracketed + ":" + std::to_string(port);
}

void set_peer_options(CURL* easy, const Peer& peer, AddressRule& rule) {
  rule.private_ok = peer.private_ok;
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_PROXY, "");
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(peer.connect_timeout.count()));
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, &rule);
#if LIBCURL_VERSION_NUM >= 0x075700
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);  // closing does not wait for a name server
#endif
  if (!peer.ca.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, peer.ca.c_str());
}

Connection::Connection(Peer peer) : peer_(std::move(peer)) {
  init_curl();
  multi_.reset(curl_multi_init());
  easy_.reset(curl_easy_init());
  STREAMVEC_CHECK(multi_ != nullptr && easy_ != nullptr);
  set_peer_options(easy_.get(), peer_, rule_);
  const std::string url = (peer_.tls ? "https://" : "http://") + peer_.authority() + "/";
  curl_easy_setopt(easy_.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy_.get(), CURLOPT_CONNECT_ONLY, 1L);
  curl_easy_setopt(easy_.get(), CURLOPT_SSL_ENABLE_ALPN, 0L);
  curl_multi_add_handle(multi_.get(), easy_.get());
}

Connection::~Connection() {
  const NoBrokenPipes guard;  // TLS says good-bye
  curl_multi_remove_handle(multi_.get(), easy_.get());
  easy_.reset();
  multi_.reset();
}

Status Connection::open(Deadline deadline) {
  while (!open_) {
    const NoBrokenPipes guard;
    int running = 0, queued = 0;
    curl_multi_perform(multi_.get(), &running);
    if (const CURLMsg* message = curl_multi_info_read(multi_.get(), &queued)) {
      STREAMVEC_RETURN_IF_ERROR(finish_open(message->data.result));
      break;
    }
    if (deadline.passed()) return error(Code::kDeadlineExceeded, "still connecting to ", peer_.authority());
    curl_multi_poll(multi_.get(), nullptr, 0, milliseconds_left(deadline, 1'000), nullptr);
  }
  return {};
}

Status Connection::finish_open(CURLcode result) {
  if (result != CURLE_OK && !rule_.refused.empty())
    return error(Code::kPermissionDenied, peer_.authority(), ": ", rule_.refused, "; add private=1 to allow it");
  if (result != CURLE_OK)
    return error(Code::kUnavailable, peer_.authority(), " cannot be reached: ", curl_easy_strerror(result));
  curl_easy_getinfo(easy_.get(), CURLINFO_ACTIVESOCKET, &socket_);
  if (socket_ == CURL_SOCKET_BAD) return error(Code::kUnavailable, peer_.authority(), " hung up at once");
  open_ = true;
  return {};
}

Status Connection::wait(short events, Deadline deadline) {
  pollfd wanted = {socket_, events, 0};
  const int ready = ::poll(&wanted, 1, milliseconds_left(deadline));
  if (ready < 0 && errno != EINTR) return error(Code::kUnavailable, "poll: ", std::strerror(errno));
  if (ready <= 0 && deadline.passed())
    return error(Code::kDeadlineExceeded, "nothing came from ", peer_.authority(), " in time");
  return {};
}

Result<size_t> Connection::receive(std::span<char> room, Deadline deadline) {
  STREAMVEC_CHECK(open_);
  for (;;) {
    size_t size = 0;
    const NoBrokenPipes guard;
    const CURLcode result = curl_easy_recv(easy_.get(), room.data(), room.size(), &size);
    if (result == CURLE_OK) return size;
    if (result != CURLE_AGAIN)
      return error(Code::kUnavailable, "lost ", peer_.authority(), ": ", curl_easy_strerror(result));
    STREAMVEC_RETURN_IF_ERROR(wait(POLLIN, deadline));
  }
}

Status Connection::send(std::string_view bytes, Deadline deadline) {
  STREAMVEC_CHECK(open_);
  while (!bytes.empty()) {
    size_t size = 0;
    const NoBrokenPipes guard;
    const CURLcode result = curl_easy_send(easy_.get(), bytes.data(), bytes.size(), &size);
    bytes.remove_prefix(size);
    if (result != CURLE_OK && result != CURLE_AGAIN)
      return error(Code::kUnavailable, "lost ", peer_.authority(), ": ", curl_easy_strerror(result));
    if (result == CURLE_AGAIN) STREAMVEC_RETURN_IF_ERROR(wait(POLLOUT, deadline));
  }
  return {};
}

}  // namespace streamvec
