#include "streamvec/transport/grpc/grpc_transport.h"

#include <grpc/support/log.h>
#include <grpcpp/server.h>

#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "streamvec/transport/grpc/incoming.h"
#include "streamvec/transport/grpc/outgoing.h"
#include "streamvec/transport/grpc/security.h"
#include "streamvec/transport/inbox.h"

namespace streamvec {
namespace {

constexpr std::chrono::milliseconds kTick{20};

class Node final : public GrpcTransport {
 public:
  Node(const Options& options, GrpcCredentials credentials)
      : options_(options), credentials_(std::move(credentials)), incoming_(options, inbox_) {}

  ~Node() override {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    closed_.notify_all();
    if (ticker_.joinable()) ticker_.join();
    inbox_.close();
    peers_.clear();
    incoming_.close();
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  Status start() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(options_.address, credentials_.server, &port);
    builder.RegisterCallbackGenericService(&incoming_);
    set_server_arguments(builder);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port == 0)
      return error(Code::kUnavailable, "cannot listen on ", options_.address,
                   "; is it this machine's, is the port free",
                   options_.tls.key.empty() ? "?" : ", is " + options_.tls.key + " the certificate's key?");
    address_ = options_.address.substr(0, options_.address.rfind(':') + 1) + std::to_string(port);
    ticker_ = std::thread([this] { tick(); });
    return {};
  }

  NodeId self() const override { return options_.self; }
  std::string address() const override { return address_; }

  void add_peer(NodeId node, const std::string& address) override {
    if (node == options_.self) return;
    auto peer = std::make_shared<Outgoing>(options_, node, address, credentials_.channel);
    replace(node, std::move(peer));
  }
  void remove_peer(NodeId node) override { replace(node, nullptr); }

  void send(NodeId to, std::string frame) override {
    if (const auto peer = find(to)) return peer->send(std::move(frame));
    const auto size = static_cast<int64_t>(frame.size());
    const bool sent = to == options_.self && inbox_.push(to, std::move(frame), options_.queue_bytes_max);
    const std::lock_guard lock(mutex_);
    totals_.frames_sent += sent;
    totals_.bytes_sent += sent ? size : 0;
    totals_.frames_dropped += !sent;
  }

  Status receive(Deadline deadline, NodeId& from, std::string& frame) override {
    const Status status = inbox_.receive(deadline, from, frame);
    incoming_.taken();
    return status;
  }

  int64_t queued_bytes(NodeId to) const override {
    if (to == options_.self) return inbox_.bytes_from(to);
    const auto peer = find(to);
    return peer == nullptr ? 0 : peer->queued_bytes();
  }

  TransportTotals totals() const override {
    const std::lock_guard lock(mutex_);
    TransportTotals totals = totals_;
    inbox_.add_to(totals);
    for (const auto& [node, peer] : peers_) peer->add_to(totals);
    return totals;
  }

  Status peer_status(NodeId node) const override {
    const auto peer = find(node);
    if (peer == nullptr && node != options_.self) return error(Code::kNotFound, "node ", node, " was not added");
    return peer == nullptr ? Status() : peer->status();
  }

 private:
  std::shared_ptr<Outgoing> find(NodeId node) const {
    const std::lock_guard lock(mutex_);
    const auto found = peers_.find(node);
    return found == peers_.end() ? nullptr : found->second;
  }

  // The old connection ends outside the lock: that takes a moment.
  void replace(NodeId node, std::shared_ptr<Outgoing> peer) {
    const std::lock_guard one_at_a_time(replacing_);
    std::shared_ptr<Outgoing> old;
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = peers_.find(node); found != peers_.end()) {
        old = std::move(found->second);
        peers_.erase(found);
      }
      if (peer != nullptr) peers_[node] = std::move(peer);
    }
    if (old == nullptr) return;
    old->close();
    const std::lock_guard lock(mutex_);
    old->add_to(totals_);
  }

  void tick() {
    std::unique_lock lock(mutex_);
    while (!closed_.wait_for(lock, kTick, [&] { return closing_; })) {
      std::vector<std::shared_ptr<Outgoing>> peers;
      for (const auto& [node, peer] : peers_) peers.push_back(peer);
      lock.unlock();
      for (const auto& peer : peers) peer->tick(Outgoing::Clock::now());
      peers.clear();
      lock.lock();
    }
  }

  const Options options_;
  const GrpcCredentials credentials_;
  Inbox inbox_;
  Incoming incoming_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  std::mutex replacing_;
  mutable std::mutex mutex_;
  std::condition_variable closed_;
  bool closing_ = false;
  std::map<NodeId, std::shared_ptr<Outgoing>> peers_;
  TransportTotals totals_;  // of frames to itself and of peers that were removed
  std::thread ticker_;
};

}  // namespace

Result<std::unique_ptr<GrpcTransport>> GrpcTransport::listen(const Options& options) {
  if (std::getenv("GRPC_VERBOSITY") == nullptr)  // what goes wrong is told by status, not on standard error
    gpr_set_log_verbosity(static_cast<gpr_log_severity>(GPR_LOG_SEVERITY_ERROR + 1));
  STREAMVEC_ASSIGN_OR_RETURN(GrpcCredentials credentials, credentials_of(options));
  auto node = std::make_unique<Node>(options, std::move(credentials));
  STREAMVEC_RETURN_IF_ERROR(node->start());
  return std::unique_ptr<GrpcTransport>(std::move(node));
}

}  // namespace streamvec
