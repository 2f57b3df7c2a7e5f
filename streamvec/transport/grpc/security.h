// Who may talk to whom: addresses, certificates, the shared token, and the settings of gRPC's connections.
#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

#include <memory>
#include <string>

#include "streamvec/core/status.h"
#include "streamvec/transport/grpc/grpc_transport.h"

namespace streamvec {

// Names of the call's metadata: who sends, whom it means, the token.
inline constexpr char kFromKey[] = "streamvec-from";
inline constexpr char kToKey[] = "streamvec-to";
inline constexpr char kTokenKey[] = "streamvec-token";
inline constexpr char kFramesMethod[] = "/streamvec.Frames/Stream";

struct GrpcCredentials {
  std::shared_ptr<grpc::ServerCredentials> server;
  std::shared_ptr<grpc::ChannelCredentials> channel;
};
// Of the options' TLS files; plain text without. Refuses what GrpcTransport::listen() refuses.
Result<GrpcCredentials> credentials_of(const GrpcTransport::Options& options);

grpc::ChannelArguments channel_arguments(const GrpcTransport::Options& options);
void set_server_arguments(grpc::ServerBuilder& builder);

}  // namespace streamvec
