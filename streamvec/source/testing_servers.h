// For tests only: programs of other projects as child processes on loopback, and certificates made on the spot.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "streamvec/source/testing_files.h"

namespace streamvec {

// A port that nobody listens on. It stays bound until this process ends, in a way that lets a server listen on it, so
// that nobody else is given it by chance.
inline int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const int on = 1;
  EXPECT_EQ(::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
  EXPECT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), size), 0);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

inline bool accepts(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  const bool connected = ::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(socket);
  return connected;
}

// Runs a program that listens on a port of loopback, in a directory that goes away with it. The kernel kills it when
// the test dies. start() and kill() may be called any number of times.
class ServerProcess {
 public:
  using Arguments = std::function<std::vector<std::string>(int port, const std::string& directory)>;
  explicit ServerProcess(Arguments arguments) : arguments_(std::move(arguments)), port_(free_port()) { start(); }
  ~ServerProcess() { kill(); }
  ServerProcess(const ServerProcess&) = delete;

  int port() const { return port_; }
  std::string authority() const { return "127.0.0.1:" + std::to_string(port_); }
  const TemporaryDirectory& directory() const { return directory_; }
  void start() {
    std::vector<std::string> arguments = arguments_(port_, directory_.path());
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    const pid_t parent = ::getpid();
    child_ = ::fork();
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      const int nowhere = ::open("/dev/null", O_RDWR);
      for (int descriptor : {0, 1, 2}) ::dup2(nowhere, descriptor);
      ::execvp(pointers[0], pointers.data());
      ::_exit(127);
    }
    for (int i = 0; i < 3'000 && !accepts(port_); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_TRUE(accepts(port_)) << arguments[0] << " does not start";
  }
  void kill() { end(SIGKILL); }
  void signal(int number) { ::kill(child_, number); }

 private:
  void end(int number) {
    if (child_ <= 0) return;
    ::kill(child_, number);
    ::waitpid(child_, nullptr, 0);
    child_ = -1;
  }

  Arguments arguments_;
  TemporaryDirectory directory_;
  int port_ = 0;
  pid_t child_ = -1;
};

// A key and a certificate that vouches for 127.0.0.1 and for itself, made by openssl.
class TestCertificate {
 public:
  // Vouches for itself and for `names`, as openssl writes them.
  explicit TestCertificate(const std::string& names = "IP:127.0.0.1") {
    const std::string make =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
        "-subj /CN=elsewhere -addext subjectAltName=" +
        names + " -keyout " + key() + " -out " + certificate() + " 2>/dev/null";
    EXPECT_EQ(std::system(make.c_str()), 0) << "openssl is needed";
  }
  std::string key() const { return directory_.path("key.pem"); }
  std::string certificate() const { return directory_.path("cert.pem"); }

 private:
  TemporaryDirectory directory_;
};

// nghttpx, which speaks TLS and HTTP/2 (and WebSocket) for a plain server of HTTP/1.1 on `port`.
inline ServerProcess::Arguments tls_front(const TestCertificate& certificate, int port) {
  return [&certificate, port](int front, const std::string&) -> std::vector<std::string> {
    return {"nghttpx",
            "--conf=/dev/null",
            "--workers=1",
            "--frontend=127.0.0.1," + std::to_string(front),
            "--backend=127.0.0.1," + std::to_string(port),
            "--errorlog-file=/dev/null",
            "--accesslog-file=/dev/null",
            certificate.key(),
            certificate.certificate()};
  };
}

}  // namespace streamvec
