// Calls that come over gRPC, put into the same queues as those of HTTP and answered from the same boards.
#pragma once

#include <memory>

#include "streamvec/serve/access.h"
#include "streamvec/serve/api.h"
#include "streamvec/serve/call_queue.h"
#include "streamvec/serve/grpc/grpc_server.h"

namespace streamvec {

// All is borrowed.
class QueryCalls final : public GrpcHandler {
 public:
  QueryCalls(const ApiParts& parts, const Access& access, CallQueue& calls, CallQueue& slow)
      : parts_(parts), access_(access), calls_(calls), slow_(slow) {}

  // kUnauthenticated, kPermissionDenied, kUnimplemented: in this order, so that who may not ask learns nothing.
  Status admit(GrpcRequest& request) override;
  void handle(std::shared_ptr<GrpcExchange> exchange) override;

 private:
  const ApiParts& parts_;
  const Access& access_;
  CallQueue &calls_, &slow_;
};

}  // namespace streamvec
