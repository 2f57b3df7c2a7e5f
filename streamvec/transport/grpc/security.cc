#include "streamvec/transport/grpc/security.h"

#include <fstream>
#include <iterator>

#include "streamvec/core/address.h"
#include "streamvec/transport/grpc/packing.h"

namespace streamvec {
namespace {

// A peer that is stopped or cut off is found out by pings within 6 s.
constexpr int kPingEvery_ms = 3'000, kPingTimeout_ms = 3'000;
constexpr int kHttp2FrameBytes = 1 << 20, kWriteBufferBytes = 4 << 20;
constexpr int kWindowBytes = 16 << 20;  // on the way to one receiver: 10 Gb/s over 13 ms

Result<std::string> read_pem(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file || text.find("-----BEGIN ") == std::string::npos)
    return error(Code::kInvalidArgument, path, " cannot be read or is not in PEM");
  return text;
}

}  // namespace

Result<GrpcCredentials> credentials_of(const GrpcTransport::Options& options) {
  const GrpcTransport::Tls& tls = options.tls;
  const int given = !tls.ca.empty() + !tls.certificate.empty() + !tls.key.empty();
  if (given != 0 && given != 3)
    return error(Code::kInvalidArgument, "TLS needs all of a CA, a certificate and a key; ", given, " of 3 were given");
  STREAMVEC_ASSIGN_OR_RETURN(const std::string host, host_of(options.address));
  if (given == 0 && options.token.empty() && !is_loopback(host))
    return error(Code::kInvalidArgument, "anybody who reaches ", options.address,
                 " could take part; give TLS files or a token, or listen on 127.0.0.1");
  if (given == 0) return GrpcCredentials{grpc::InsecureServerCredentials(), grpc::InsecureChannelCredentials()};
  STREAMVEC_ASSIGN_OR_RETURN(const std::string ca, read_pem(tls.ca));
  STREAMVEC_ASSIGN_OR_RETURN(const std::string certificate, read_pem(tls.certificate));
  STREAMVEC_ASSIGN_OR_RETURN(const std::string key, read_pem(tls.key));
  grpc::SslServerCredentialsOptions server(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  server.pem_root_certs = ca;
  server.pem_key_cert_pairs.push_back({key, certificate});
  return GrpcCredentials{grpc::SslServerCredentials(server), grpc::SslCredentials({ca, key, certificate})};
}

grpc::ChannelArguments channel_arguments(const GrpcTransport::Options& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kGrpcMessageBytesMax);
  arguments.SetMaxSendMessageSize(kGrpcMessageBytesMax);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own for each pair of nodes
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1'000);  // how long an attempt to connect may take
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingEvery_ms);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeout_ms);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // no limit
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kHttp2FrameBytes);
  arguments.SetInt(GRPC_ARG_HTTP2_WRITE_BUFFER_SIZE, kWriteBufferBytes);
  if (!options.tls.name.empty()) arguments.SetSslTargetNameOverride(options.tls.name);
  return arguments;
}

void set_server_arguments(grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(kGrpcMessageBytesMax);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kPingEvery_ms);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeout_ms);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1'000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kHttp2FrameBytes);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // the window is set, not searched for
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
}

}  // namespace streamvec
