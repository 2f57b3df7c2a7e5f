// Frames between nodes that come and go, by gRPC: one long stream from each node to each peer that it sends to. A
// stream that breaks is made again after a jittered wait. Frames reach only the node that they are meant for, not
// another that took over its address.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "streamvec/core/status.h"
#include "streamvec/transport/transport.h"

namespace streamvec {

class GrpcTransport : public Transport {
 public:
  // Both sides show a certificate that `ca` has signed. Names of files in PEM; all three or none.
  struct Tls {
    std::string ca, certificate, key;
    std::string name;  // that every node's certificate bears; empty: the host of the peer's address
  };
  struct Options {
    NodeId self = 0;
    std::string address = "127.0.0.1:0";  // "host:port" to listen on; port 0: a free one
    Tls tls = {};
    std::string token = {};                        // that all nodes share; without TLS it travels in the clear
    int64_t queue_bytes_max = int64_t{256} << 20;  // for each peer; a frame that does not fit is dropped
    int64_t inbox_bytes_max = int64_t{64} << 20;   // received and not yet taken; past it peers wait
    double patience_s = 2;  // frames for a peer that cannot be reached are kept so long: less loses frames of nodes
                            // that start late, more sends old ones
  };
  // kInvalidArgument without TLS and token on an address that others can reach, or for bad TLS files; kUnavailable
  // when the address cannot be listened on.
  static Result<std::unique_ptr<GrpcTransport>> listen(const Options& options);

  // Where this node listens, with the port that was chosen.
  virtual std::string address() const = 0;
};

}  // namespace streamvec
