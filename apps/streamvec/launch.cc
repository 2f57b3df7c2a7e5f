// streamvec launch: a cluster on this machine. Starts `train` once for every node, each told the addresses of all, and
// ends with what the first one ends with.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <iostream>
#include <thread>

#include "apps/streamvec/child.h"
#include "apps/streamvec/commands.h"
#include "apps/streamvec/cores.h"
#include "apps/streamvec/signals.h"

namespace streamvec::cli {
namespace {

// Ports of 127.0.0.1, kept from everybody but the nodes: a socket that is bound and does not listen lets one listen
// that asks for its port by number, while no connection or server is given it by chance.
class HeldPorts {
 public:
  HeldPorts() = default;
  ~HeldPorts() {
    for (const int fd : sockets_) ::close(fd);
  }
  HeldPorts(const HeldPorts&) = delete;

  Status take(int64_t count) {
    while (static_cast<int64_t>(ports_.size()) < count)
      if (!take_one())
        return error(Code::kUnavailable, "no free port on 127.0.0.1 (", std::strerror(errno), "); try fewer nodes");
    return {};
  }
  const std::vector<int>& ports() const { return ports_; }

 private:
  bool take_one() {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    if (fd < 0) return false;
    sockets_.push_back(fd);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        ::bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      return false;
    ports_.push_back(ntohs(address.sin_port));
    return true;
  }

  std::vector<int> sockets_, ports_;
};

bool is_given(const std::vector<std::string>& words, std::string_view flag) {
  for (const std::string& word : words)
    if (word == flag || word.rfind(std::string(flag) + "=", 0) == 0) return true;
  return false;
}

// The words for one node: {rank} becomes its number.
std::vector<std::string> words_of(const std::vector<std::string>& words, int64_t rank) {
  constexpr std::string_view kRank = "{rank}";
  std::vector<std::string> made = words;
  for (std::string& word : made)
    for (size_t at = word.find(kRank); at != std::string::npos; at = word.find(kRank, at))
      word.replace(at, kRank.size(), std::to_string(rank));
  return made;
}

// Passes a wish to stop on until every node has ended; returns the first node's exit code.
int await(const std::vector<pid_t>& nodes, const std::atomic<bool>& stop) {
  std::vector<int> codes(nodes.size(), -1);
  size_t running = nodes.size();
  bool passed_on = false;
  while (running > 0) {
    if (stop && !passed_on) {
      for (size_t i = 0; i < nodes.size(); ++i)
        if (codes[i] < 0) ::kill(nodes[i], SIGTERM);
      passed_on = true;
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
      int status = 0;
      if (codes[i] >= 0 || ::waitpid(nodes[i], &status, WNOHANG) != nodes[i]) continue;
      codes[i] = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
      if (WIFSIGNALED(status))
        std::cerr << "node " << i + 1 << " was ended by " << ::strsignal(WTERMSIG(status)) << std::endl;
      --running;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return codes.front();
}

}  // namespace

Result<int> run_launch(const Arguments& arguments) {
  const std::vector<std::string>& words = arguments.words;
  if (words.front() != "train")
    return error(Code::kInvalidArgument, "launch runs train, not ", words.front(),
                 "; try `streamvec launch -n 4 -- train ...`");
  const int64_t workers = arguments.integer("n"), servers = arguments.integer("servers"), all = workers + servers;
  HeldPorts held;
  STREAMVEC_RETURN_IF_ERROR(held.take(all));
  std::string addresses;
  for (const int port : held.ports())
    addresses += (addresses.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(port);
  const std::atomic<bool>& stop = stop_on_signals();
  const std::vector<int> allowed = allowed_cores();
  std::vector<pid_t> nodes;
  for (int64_t rank = 0; rank < all; ++rank) {
    std::vector<std::string> node = words_of(words, rank);
    for (const std::string& word : {std::string("--nodes"), addresses, std::string("--rank"), std::to_string(rank),
                                    std::string("--servers"), std::to_string(servers)})
      node.push_back(word);
    if (!is_given(words, "--threads")) {
      const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
      node.insert(node.end(), {"--threads", std::to_string(std::max<int64_t>(1, cores / workers))});
    }
    if (arguments.flag("pin") && rank < workers) run_on(cores_of_share(allowed, rank, workers));
    // The first node has our output; the others are heard only when they complain.
    auto pid = start_program(node, rank == 0 ? ChildFiles{} : ChildFiles{ChildFiles::kNone, ChildFiles::kNone});
    run_on(allowed);
    if (!pid.ok()) {
      for (const pid_t started : nodes) ::kill(started, SIGTERM);
      return pid.status();
    }
    nodes.push_back(*pid);
  }
  return await(nodes, stop);
}

}  // namespace streamvec::cli
