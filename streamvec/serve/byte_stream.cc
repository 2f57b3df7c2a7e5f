#include "streamvec/serve/byte_stream.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>

#include "streamvec/serve/client_certificate.h"

namespace streamvec {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

void close_socket(ByteStream::Socket& socket) {
  error_code ignored;
  socket.shutdown(asio::socket_base::shutdown_both, ignored);
  socket.close(ignored);
}

class PlainStream final : public ByteStream {
 public:
  explicit PlainStream(Socket socket) : socket_(std::move(socket)) {}
  void handshake(Done done) override {
    asio::post(socket_.get_executor(), [done = std::move(done)] { done({}, 0); });
  }
  void read_some(asio::mutable_buffer into, Done done) override { socket_.async_read_some(into, std::move(done)); }
  void write_some(asio::const_buffer from, Done done) override { socket_.async_write_some(from, std::move(done)); }
  void end_output() override {
    error_code ignored;
    socket_.shutdown(asio::socket_base::shutdown_send, ignored);
  }
  void close() override { close_socket(socket_); }
  Role client_role() const override { return Role::kNobody; }

 private:
  Socket socket_;
};

class PlainMaker final : public StreamMaker {
 public:
  std::unique_ptr<ByteStream> make(ByteStream::Socket socket) override {
    return std::make_unique<PlainStream>(std::move(socket));
  }
};

class TlsStream final : public ByteStream {
 public:
  TlsStream(Socket socket, asio::ssl::context& context) : stream_(std::move(socket), context) {}
  void handshake(Done done) override {
    stream_.async_handshake(asio::ssl::stream_base::server,
                            [done = std::move(done)](error_code failed) { done(failed, 0); });
  }
  void read_some(asio::mutable_buffer into, Done done) override { stream_.async_read_some(into, std::move(done)); }
  void write_some(asio::const_buffer from, Done done) override { stream_.async_write_some(from, std::move(done)); }
  void end_output() override {}
  void close() override { close_socket(stream_.next_layer()); }

  Role client_role() const override { return role_of_certificate(certificate().get()); }

 private:
  struct Free {
    void operator()(X509* certificate) const { X509_free(certificate); }
  };
  using Certificate = std::unique_ptr<X509, Free>;
  Certificate certificate() const {
    return Certificate(SSL_get1_peer_certificate(const_cast<TlsStream*>(this)->stream_.native_handle()));
  }

  asio::ssl::stream<Socket> stream_;
};

class TlsMaker final : public StreamMaker {
 public:
  asio::ssl::context context{asio::ssl::context::tls_server};
  std::unique_ptr<ByteStream> make(ByteStream::Socket socket) override {
    return std::make_unique<TlsStream>(std::move(socket), context);
  }
};

Status failed_file(const std::string& path, const error_code& failed) {
  return error(Code::kInvalidArgument, path, ": ", failed.message(), "; a readable PEM file is needed");
}

}  // namespace

std::unique_ptr<StreamMaker> plain_streams() {
  return std::make_unique<PlainMaker>();
}

Result<std::unique_ptr<StreamMaker>> tls_streams(const TlsFiles& files) {
  if (files.certificate.empty() || files.key.empty())
    return error(Code::kInvalidArgument, "TLS needs both --tls-certificate and --tls-key");
  auto maker = std::make_unique<TlsMaker>();
  asio::ssl::context& context = maker->context;
  error_code failed;
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  SSL_CTX_set_mode(context.native_handle(), SSL_MODE_RELEASE_BUFFERS);  // idle connections hold little
  // A resumed session would outlive its certificate.
  SSL_CTX_set_options(context.native_handle(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(context.native_handle(), 0);
  SSL_CTX_set_session_cache_mode(context.native_handle(), SSL_SESS_CACHE_OFF);
  if (context.use_certificate_chain_file(files.certificate, failed)) return failed_file(files.certificate, failed);
  if (context.use_private_key_file(files.key, asio::ssl::context::pem, failed)) return failed_file(files.key, failed);
  if (SSL_CTX_check_private_key(context.native_handle()) != 1)
    return error(Code::kInvalidArgument, files.key, " is not the key of ", files.certificate);
  if (!files.client_ca.empty()) {
    if (context.load_verify_file(files.client_ca, failed)) return failed_file(files.client_ca, failed);
    context.set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert, failed);
    SSL_CTX_set_purpose(context.native_handle(), X509_PURPOSE_SSL_CLIENT);
  }
  return std::unique_ptr<StreamMaker>(std::move(maker));
}

}  // namespace streamvec
