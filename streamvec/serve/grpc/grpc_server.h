// gRPC for the query service: takes calls of any method as bytes, with the same limits and the same rules of who may
// ask as HTTP has. What the bytes mean is the handler's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "streamvec/core/address.h"
#include "streamvec/core/status.h"
#include "streamvec/serve/byte_stream.h"
#include "streamvec/serve/http_server.h"

namespace streamvec {

// Who asks, and with what.
struct GrpcRequest {
  std::string method;           // "/streamvec.v1.Query/Nearest"
  std::string authorization;    // of the metadata; "" none
  std::string client;           // address
  Role proven = Role::kNobody;  // by the client's certificate
  int64_t role_until_s = 0;     // unix seconds; 0: for good
  std::string message;
};

// One call and the way back, from any thread: respond() once, or any number of send() and then end().
class GrpcExchange {
 public:
  virtual ~GrpcExchange() = default;
  virtual const GrpcRequest& request() const = 0;
  virtual void respond(std::string message) = 0;
  virtual void end(const Status& status) = 0;
  // False when the caller has gone, or does not keep up: then the call has ended.
  virtual bool send(const std::string& message) = 0;
  virtual bool is_open() const = 0;
};

// Called on threads of gRPC; must not wait.
class GrpcHandler {
 public:
  virtual ~GrpcHandler() = default;
  // Before the message is read. May set role_until_s.
  virtual Status admit(GrpcRequest& request) = 0;
  virtual void handle(std::shared_ptr<GrpcExchange> exchange) = 0;
};

class GrpcServer {
 public:
  struct Options {
    HostPort address;
    HttpLimits limits;  // connections and rates, body_bytes_max of a message, events_backlog_bytes_max
    TlsFiles tls;
  };
  // kUnavailable when the address cannot be had; kInvalidArgument for bad files. The handler must outlive the server.
  static Result<std::unique_ptr<GrpcServer>> start(const Options& options, GrpcHandler& handler);
  virtual ~GrpcServer() = default;  // stops
  virtual uint16_t port() const = 0;
  virtual void stop(double grace_s) = 0;
};

}  // namespace streamvec
