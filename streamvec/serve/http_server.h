// HTTP/1.1 for many clients of whom some are slow or hostile. One thread does all reading and writing and never waits
// for anybody; what takes time is the handler's, on threads of its own. Built on Boost.Asio and Beast's parser.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "streamvec/core/address.h"
#include "streamvec/core/status.h"
#include "streamvec/serve/byte_stream.h"
#include "streamvec/serve/http_message.h"

namespace streamvec {

// Limits "of a client" go by its address (of IPv6: its /64).
struct HttpLimits {
  int64_t connections_max = 4'096;       // past it the one idle for longest makes room
  int64_t client_connections_max = 256;  // of a client; 0: no limit. Loopback has none unless loopback_limits is set
  double client_rate_max = 200;          // requests per second of a client, over time; 0: no limit. Likewise
  bool loopback_limits = false;
  int64_t header_bytes_max = 16'384;
  int64_t body_bytes_max = int64_t{1} << 20;
  int64_t bodies_bytes_max = int64_t{64} << 20;  // of all bodies on their way in: bounds the memory of all clients
  int64_t events_backlog_bytes_max = int64_t{8} << 20;  // a reader of events that is further behind is left
  double header_s = 10;        // from the first byte (of a new connection: from accepting) to the end of the header
  double body_s = 30;          // to the end of the body
  double idle_s = 60;          // between two requests
  double answer_s = 60;        // until the handler has answered
  double write_s = 15;         // without a byte taken by the client ...
  double write_total_s = 120;  // ... and in all
};

// The reading end of an event stream. Thread-safe.
class EventSink {
 public:
  virtual ~EventSink() = default;
  // Hands over bytes in order, without waiting. False when the reader is gone or too far behind: it gets no more.
  virtual bool send(std::shared_ptr<const std::string> bytes) = 0;
  virtual bool is_open() const = 0;
  virtual void end() = 0;  // closes the connection
};

// One request and the way back. Exactly one of respond() and begin_events() is called, once, from any thread.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
  virtual const HttpRequest& request() const = 0;
  virtual void respond(HttpResponse response) = 0;
  // Answers 200 with text/event-stream and keeps the connection open.
  virtual std::shared_ptr<EventSink> begin_events() = 0;
};

// Both are called on the network's thread and must not wait.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // Once the header is there: an answer refuses the request before its body is read. May set request.role and
  // role_until_s. `proven` is what the client's certificate proves.
  virtual std::optional<HttpResponse> admit(HttpRequest& request, Role proven, bool tls) = 0;
  virtual void handle(std::shared_ptr<HttpExchange> exchange) = 0;
  // A request that handle() was not, or will not be, given: by admit()'s answer or before it. `request` has what was
  // understood of it.
  virtual void refused(const HttpRequest& request, int status) = 0;
  // What every answer to this request has in its header, refusals and event streams included.
  virtual std::vector<NameAndText> headers_for(const HttpRequest& request) const = 0;
};

class HttpServer {
 public:
  struct Options {
    HostPort address;  // port 0: any free one
    HttpLimits limits;
    TlsFiles tls;
    std::string common_headers;  // lines that every answer has, each ended by CRLF
  };
  struct Statistics {
    int64_t connections = 0, accepted = 0, requests = 0, refused_connections = 0, bytes_sent = 0;
    int64_t too_slow = 0, event_readers = 0;  // connections that were closed for being slow; readers now
  };

  // Has the address: connections wait there until begin(). kUnavailable when it cannot be had. The handler must outlive
  // the server.
  static Result<std::unique_ptr<HttpServer>> listen(const Options& options, HttpHandler& handler);
  virtual ~HttpServer() = default;  // stops
  virtual void begin() = 0;
  virtual uint16_t port() const = 0;
  virtual Statistics statistics() const = 0;
  // Takes no more connections, gives answers under way `grace_s` to leave, then closes all. Returns when the thread is
  // gone; exchanges that are still held may be answered, to nobody.
  virtual void stop(double grace_s) = 0;
};

}  // namespace streamvec
