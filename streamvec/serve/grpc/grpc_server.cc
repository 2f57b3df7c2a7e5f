#include "streamvec/serve/grpc/grpc_server.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <openssl/pem.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <vector>

#include "streamvec/serve/client_certificate.h"
#include "streamvec/serve/client_table.h"

namespace streamvec {
namespace {

constexpr int kStreamsMax = 256;  // calls at once on one connection
constexpr size_t kMemoryMax = size_t{256} << 20;

grpc::Status to_grpc(const Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), status.message());
}

grpc::ByteBuffer buffer_of(const std::string& message) {
  const grpc::Slice slice(message);
  return grpc::ByteBuffer(&slice, 1);
}

std::string text_of(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string text;
  if (!buffer.Dump(&slices).ok()) return text;
  for (const grpc::Slice& slice : slices) text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return text;
}

// "ipv4:127.0.0.1:50000" as 127.0.0.1, "ipv6:%5B::1%5D:50000" as ::1.
std::string client_of(const std::string& peer) {
  const size_t begin = peer.find(':'), end = peer.rfind(':');
  if (begin == peer.npos || end <= begin) return peer;
  std::string host = peer.substr(begin + 1, end - begin - 1);
  for (const char* bracket : {"%5B", "%5D", "[", "]"})
    if (const size_t at = host.find(bracket); at != host.npos) host.erase(at, std::string(bracket).size());
  return host;
}

Role role_of(const grpc::AuthContext& context) {
  const auto shown = context.FindPropertyValues("x509_pem_cert");
  if (!context.IsPeerAuthenticated() || shown.empty()) return Role::kNobody;
  return role_of_pem({shown[0].data(), shown[0].size()});
}

Result<std::string> read_pem(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file || text.find("-----BEGIN ") == std::string::npos)
    return error(Code::kInvalidArgument, path, " cannot be read or is not in PEM");
  return text;
}

Result<std::shared_ptr<grpc::ServerCredentials>> credentials_of(const TlsFiles& tls) {
  if (!tls.on()) return grpc::InsecureServerCredentials();
  if (tls.certificate.empty() || tls.key.empty())
    return error(Code::kInvalidArgument, "TLS needs both --tls-certificate and --tls-key");
  grpc::SslServerCredentialsOptions options(tls.client_ca.empty()
                                                ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                                : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  STREAMVEC_ASSIGN_OR_RETURN(const std::string certificate, read_pem(tls.certificate));
  STREAMVEC_ASSIGN_OR_RETURN(const std::string key, read_pem(tls.key));
  options.pem_key_cert_pairs.push_back({key, certificate});
  if (!tls.client_ca.empty()) {
    STREAMVEC_ASSIGN_OR_RETURN(options.pem_root_certs, read_pem(tls.client_ca));
  }
  return grpc::SslServerCredentials(options);
}

class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(const Status& reason) { Finish(to_grpc(reason)); }
  void OnDone() override { delete this; }
};

class Reactor;

// What the handler holds: the reactor may be gone before it.
class Exchange final : public GrpcExchange {
 public:
  Exchange(GrpcRequest request, Reactor* reactor, int64_t backlog_max)
      : request_(std::move(request)), reactor_(reactor), backlog_max_(backlog_max) {}
  const GrpcRequest& request() const override { return request_; }
  void set_message(std::string message) { request_.message = std::move(message); }
  void respond(std::string message) override {
    const std::lock_guard lock(mutex_);
    output_.push_back(std::move(message));
    ending_ = Status();
    go_on();
  }
  void end(const Status& status) override {
    const std::lock_guard lock(mutex_);
    if (!ending_) ending_ = status;
    go_on();
  }
  bool send(const std::string& message) override {
    const std::lock_guard lock(mutex_);
    if (reactor_ == nullptr || ending_) return false;
    backlog_ += static_cast<int64_t>(message.size());
    if (backlog_ > backlog_max_)
      ending_ = error(Code::kResourceExhausted, "the reader does not keep up");
    else
      output_.push_back(message);
    go_on();
    return !ending_;
  }
  bool is_open() const override {
    const std::lock_guard lock(mutex_);
    return reactor_ != nullptr && !ending_;
  }
  void wrote(bool ok);
  void gone() {
    const std::lock_guard lock(mutex_);
    reactor_ = nullptr;
  }
  void cancelled() { end(Status(Code::kCancelled, "the caller has gone")); }

 private:
  void go_on();

  GrpcRequest request_;
  mutable std::mutex mutex_;  // of what follows
  Reactor* reactor_;
  const int64_t backlog_max_;
  std::deque<std::string> output_;
  int64_t backlog_ = 0;
  bool writing_ = false, finished_ = false;
  std::optional<Status> ending_;
};

// One call: a message in, messages out.
class Reactor final : public grpc::ServerGenericBidiReactor {
 public:
  Reactor(GrpcHandler& handler, GrpcRequest request, const HttpLimits& limits)
      : handler_(handler),
        exchange_(std::make_shared<Exchange>(std::move(request), this, limits.events_backlog_bytes_max)) {
    StartRead(&message_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) return exchange_->end(error(Code::kInvalidArgument, "the call has no message"));
    exchange_->set_message(text_of(message_));
    message_.Clear();
    handler_.handle(exchange_);
  }
  void OnWriteDone(bool ok) override { exchange_->wrote(ok); }
  void OnCancel() override { exchange_->cancelled(); }
  void OnDone() override {
    exchange_->gone();
    delete this;
  }
  void write(const std::string& message) {
    output_ = buffer_of(message);
    StartWrite(&output_);
  }
  void finish(const Status& status) { Finish(to_grpc(status)); }

 private:
  GrpcHandler& handler_;
  const std::shared_ptr<Exchange> exchange_;
  grpc::ByteBuffer message_, output_;
};

// REQUIRES: the lock is held. A failed end does not wait for what has not been written.
void Exchange::go_on() {
  if (reactor_ == nullptr || writing_ || finished_) return;
  const bool failed = ending_ && !ending_->ok();
  if (!output_.empty() && !failed) {
    writing_ = true;
    return reactor_->write(output_.front());
  }
  if (!ending_) return;
  finished_ = true;
  reactor_->finish(*ending_);
}

void Exchange::wrote(bool ok) {
  const std::lock_guard lock(mutex_);
  writing_ = false;
  backlog_ -= static_cast<int64_t>(output_.front().size());
  output_.pop_front();
  if (!ok && !ending_) ending_ = Status(Code::kCancelled, "the caller has gone");
  go_on();
}

class Server final : public GrpcServer, public grpc::CallbackGenericService {
 public:
  Server(const Options& options, GrpcHandler& handler)
      : options_(options), handler_(handler), clients_(options.limits) {}
  ~Server() override { stop(0); }

  Status listen() {
    grpc::ServerBuilder builder;
    STREAMVEC_ASSIGN_OR_RETURN(const auto credentials, credentials_of(options_.tls));
    const HostPort& address = options_.address;
    const std::string host = address.host.find(':') == std::string::npos ? address.host : "[" + address.host + "]";
    int port = 0;
    builder.AddListeningPort(host + ":" + std::to_string(address.port), credentials, &port);
    builder.RegisterCallbackGenericService(this);
    builder.SetMaxReceiveMessageSize(static_cast<int>(options_.limits.body_bytes_max));
    grpc::ResourceQuota quota("streamvec");
    quota.Resize(kMemoryMax);
    builder.SetResourceQuota(quota);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsMax);
    builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, static_cast<int>(options_.limits.header_bytes_max));
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, static_cast<int>(options_.limits.idle_s * 1'000));
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                               static_cast<int>(options_.limits.header_s * 1'000));
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port == 0)
      return error(Code::kUnavailable, "cannot listen on ", host, ":", address.port, " for gRPC; try another port");
    port_ = static_cast<uint16_t>(port);
    return {};
  }

  uint16_t port() const override { return port_; }
  void stop(double grace_s) override {
    if (server_ == nullptr) return;
    const auto grace =
        std::chrono::duration_cast<std::chrono::system_clock::duration>(std::chrono::duration<double>(grace_s));
    server_->Shutdown(std::chrono::system_clock::now() + grace);
    server_.reset();
  }

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    GrpcRequest request;
    request.method = context->method();
    request.client = client_of(context->peer());
    const auto found = context->client_metadata().find("authorization");
    if (found != context->client_metadata().end()) request.authorization = {found->second.data(), found->second.size()};
    if (const auto shown = context->auth_context(); shown != nullptr) request.proven = role_of(*shown);
    if (!may_ask(request.client))
      return new Refusal(error(Code::kResourceExhausted, "too many requests; ask more slowly"));
    if (const Status status = handler_.admit(request); !status.ok()) return new Refusal(status);
    return new Reactor(handler_, std::move(request), options_.limits);
  }

 private:
  bool may_ask(const std::string& client) {
    const std::lock_guard lock(mutex_);
    const auto now = ClientTable::Clock::now();
    if (clients_.size() > kClientsSwept) clients_.sweep(now);
    return clients_.may_ask(client, now);
  }

  static constexpr size_t kClientsSwept = 1'024;

  const Options options_;
  GrpcHandler& handler_;
  std::mutex mutex_;  // of clients_
  ClientTable clients_;
  std::unique_ptr<grpc::Server> server_;
  uint16_t port_ = 0;
};

}  // namespace

Result<std::unique_ptr<GrpcServer>> GrpcServer::start(const Options& options, GrpcHandler& handler) {
  auto server = std::make_unique<Server>(options, handler);
  STREAMVEC_RETURN_IF_ERROR(server->listen());
  return std::unique_ptr<GrpcServer>(std::move(server));
}

}  // namespace streamvec
