// For tests only: a server of another project as a child process, and what readers of brokers are asked alike.
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
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/source/live/live_testing.h"
#include "streamvec/source/source.h"
#include "streamvec/source/testing_files.h"

namespace streamvec {

inline int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ::bind(socket, reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(socket);
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
    for (int i = 0; i < 1'000 && !accepts(port_); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
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

// How often each text was counted by a reader that is killed again and again: it reads some, saves the place of one of
// them (those after it are forgotten), sometimes commits, and dies. `between` runs before each life.
inline std::map<std::string, int> count_through_restarts(const std::function<std::unique_ptr<Source>()>& open,
                                                         size_t count, const std::function<void(int)>& between) {
  std::map<std::string, int> counted;
  std::string saved;
  Random random(7);
  size_t total = 0;
  for (int life = 0; life < 60 && total < count; ++life) {
    between(life);
    const std::unique_ptr<Source> source = open();
    EXPECT_TRUE(source->seek(saved).ok());
    std::vector<Document> documents = read_documents(*source, std::min<size_t>(50, count - total));
    const size_t kept = documents.empty() ? 0 : 1 + random.below(static_cast<uint32_t>(documents.size()));
    for (size_t i = 0; i < kept; ++i) ++counted[documents[i].text];
    total += kept;
    if (kept > 0) saved = source->saved(documents[kept - 1].cursor);
    if (kept > 0 && random.below(3) > 0) (void)source->commit(documents[kept - 1].cursor).ok();
  }
  return counted;
}

// "message 1" to "message COUNT", each once.
inline void expect_each_once(const std::map<std::string, int>& counted, int count) {
  EXPECT_EQ(counted.size(), static_cast<size_t>(count));
  for (int number = 1; number <= count; ++number) {
    const auto found = counted.find("message " + std::to_string(number));
    EXPECT_TRUE(found != counted.end() && found->second == 1) << "message " << number;
  }
}

}  // namespace streamvec
