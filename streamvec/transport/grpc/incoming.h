// What comes from peers: gRPC's side that serves. Each stream fills the inbox and waits while that is full.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "streamvec/core/status.h"
#include "streamvec/transport/grpc/grpc_transport.h"
#include "streamvec/transport/inbox.h"

namespace streamvec {

// Thread-safe. REQUIRES: the server that it is registered with is shut down before it is destroyed.
class Incoming final : public grpc::CallbackGenericService {
 public:
  Incoming(const GrpcTransport::Options& options, Inbox& inbox) : options_(options), inbox_(inbox) {}

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override;
  // To be called after something was taken from the inbox.
  void taken();
  // Ends every stream and lets no other begin.
  void close();

 private:
  class Stream;
  // The sender's id, or why the call is refused.
  Result<NodeId> sender(const grpc::GenericCallbackServerContext& context) const;
  bool begin(Stream* stream);
  // Reads on, now or once the inbox has room.
  void read_on(Stream* stream);
  // Takes the stream out; false when that was done before. No read may begin once a stream is finished.
  bool end(Stream* stream);
  // A peer that connects again has given its older stream up: what that still holds would come too late.
  bool is_newest(const Stream* stream) const;

  const GrpcTransport::Options options_;
  Inbox& inbox_;
  mutable std::mutex mutex_;
  bool closed_ = false;
  std::set<Stream*> streams_, waiting_;
  std::map<NodeId, Stream*> newest_;
  std::atomic<int64_t> waiting_count_ = 0;
};

}  // namespace streamvec
