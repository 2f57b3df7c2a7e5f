// What goes to one peer: a bounded queue, and a stream that is made when there is something to send and made again
// after it broke.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "streamvec/core/random.h"
#include "streamvec/core/status.h"
#include "streamvec/transport/grpc/grpc_transport.h"
#include "streamvec/transport/grpc/packing.h"

namespace streamvec {

// Thread-safe; nothing waits for the network but close(), which waits for the call that it has cancelled.
class Outgoing {
 public:
  using Clock = std::chrono::steady_clock;
  Outgoing(const GrpcTransport::Options& options, NodeId to, const std::string& address,
           std::shared_ptr<grpc::ChannelCredentials> credentials);
  ~Outgoing();

  // Drops what is queued and ends the stream, within moments; send() drops from now on.
  void close();
  void send(std::string frame);
  // Connects again when it is time, and drops what has waited for an unreachable peer too long. To be called every
  // few tens of milliseconds.
  void tick(Clock::time_point now);
  int64_t queued_bytes() const;
  Status status() const;
  // Adds what was sent and dropped.
  void add_to(TransportTotals& totals) const;

 private:
  class Stream;
  enum class State { kIdle, kConnecting, kOpen, kEnding };  // kEnding: broken, calls under way
  void connect();
  void write_next();
  void drop_queued();
  // Of the stream, in this order. After let_go() it is used no more, after ended() it is gone.
  void opened();
  void written(bool ok);
  void broken();
  void let_go();
  void ended(const grpc::Status& status);

  const GrpcTransport::Options options_;
  const NodeId to_;
  const std::string address_;
  grpc::GenericStub stub_;
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  State state_ = State::kIdle;
  Stream* stream_ = nullptr;  // owned by itself
  FrameQueue queue_;
  FrameQueue::Message writing_;
  bool is_writing_ = false, closing_ = false;
  Random random_;
  int failures_ = 0;
  Clock::time_point connect_at_{}, unreachable_since_;
  Status status_;
  TransportTotals totals_;
};

}  // namespace streamvec
