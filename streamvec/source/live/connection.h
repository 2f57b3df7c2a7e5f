// A byte stream to a server, plain or TLS, that waits no longer than it is told.
#pragma once

#include <curl/curl.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "streamvec/core/deadline.h"
#include "streamvec/core/status.h"

namespace streamvec {

// Makes libcurl's global state, once for the process.
void init_curl();

// For poll(2) and its kin: rounded up, so that the deadline has passed when the time is over; at most `most`.
int milliseconds_left(Deadline deadline, int most = 60'000);
// The one of two deadlines that comes first.
Deadline sooner(Deadline one, Deadline other);

// Keeps SIGPIPE from this thread while a library writes to a socket that the other side may have closed.
class NoBrokenPipes {
 public:
  NoBrokenPipes();
  ~NoBrokenPipes();
  NoBrokenPipes(const NoBrokenPipes&) = delete;

 private:
  bool was_pending_ = false, was_blocked_ = false;
};

struct CurlEasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct CurlMultiDeleter {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
using CurlEasy = std::unique_ptr<CURL, CurlEasyDeleter>;
using CurlMulti = std::unique_ptr<CURLM, CurlMultiDeleter>;

// Where connections may go, and how the other side must prove itself.
struct Peer {
  std::string host;
  int32_t port = 0;
  bool tls = false;
  std::string ca = {};      // file of certificates to trust; "": the system's
  bool private_ok = false;  // loopback and private networks too (special_address() of source/http)
  std::chrono::milliseconds connect_timeout{10'000};

  std::string authority() const;  // "host:port", "[::1]:80"
};

// What both kinds of libcurl transfer here have in common: the peer's rules, no proxy, no signals.
// `refused` takes the reason when an address is not allowed; it and `peer` must outlive the transfer.
struct AddressRule {
  bool private_ok = false;
  std::string refused = {};
};
void set_peer_options(CURL* easy, const Peer& peer, AddressRule& rule);

// TCP with or without TLS through libcurl, which knows names, IPv6, certificates. Not thread-safe. Closing never waits.
class Connection {
 public:
  explicit Connection(Peer peer);
  ~Connection();
  Connection(const Connection&) = delete;

  // Goes on with connecting. kDeadlineExceeded: call again. kUnavailable: it cannot be reached.
  // kPermissionDenied: every address of the name is private.
  Status open(Deadline deadline);
  // Waits for at least one byte and returns how many came; 0 when the server has closed its side.
  Result<size_t> receive(std::span<char> room, Deadline deadline);
  // Sends all. After an error the connection is of no more use, as part of it may be on its way.
  Status send(std::string_view bytes, Deadline deadline);

 private:
  Status finish_open(CURLcode result);
  Status wait(short events, Deadline deadline);

  Peer peer_;
  AddressRule rule_;
  CurlMulti multi_;
  CurlEasy easy_;
  bool open_ = false;
  curl_socket_t socket_ = CURL_SOCKET_BAD;
};

}  // namespace streamvec
