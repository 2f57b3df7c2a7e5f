// The bytes of one connection, plain or through TLS. All of it runs on the network's thread.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>
#include <functional>
#include <memory>
#include <string>

#include "streamvec/core/status.h"
#include "streamvec/serve/http_message.h"

namespace streamvec {

class ByteStream {
 public:
  using Done = std::function<void(boost::system::error_code, size_t)>;
  using Socket = boost::asio::ip::tcp::socket;

  virtual ~ByteStream() = default;
  // Before anything else; at once where there is nothing to agree on.
  virtual void handshake(Done done) = 0;
  virtual void read_some(boost::asio::mutable_buffer into, Done done) = 0;
  virtual void write_some(boost::asio::const_buffer from, Done done) = 0;
  // Nothing more will be written. TLS, which has no such half, does nothing.
  virtual void end_output() = 0;
  // What is under way comes back with an error.
  virtual void close() = 0;
  // What the client's certificate proves; after handshake().
  virtual Role client_role() const = 0;
};

// The files of a server that speaks TLS. With `client_ca` clients have to show a certificate that it has signed.
struct TlsFiles {
  std::string certificate, key, client_ca;  // PEM

  bool on() const { return !certificate.empty() || !key.empty() || !client_ca.empty(); }
};

// Makes streams of accepted sockets.
class StreamMaker {
 public:
  virtual ~StreamMaker() = default;
  virtual std::unique_ptr<ByteStream> make(ByteStream::Socket socket) = 0;
};

std::unique_ptr<StreamMaker> plain_streams();
// kInvalidArgument with the file's name when one is missing, not readable, or does not fit the others.
Result<std::unique_ptr<StreamMaker>> tls_streams(const TlsFiles& files);

}  // namespace streamvec
