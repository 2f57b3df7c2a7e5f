// streamvec launch: a cluster on this machine. Starts `train` once for every node, each told the addresses of all, and
// ends with what the first one ends with.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <iostream>
#include <span>
#include <thread>
#include <utility>

#include "apps/streamvec/child.h"
#include "apps/streamvec/commands.h"
#include "apps/streamvec/cores.h"
#include "apps/streamvec/signals.h"
#include "apps/streamvec/values.h"
#include "streamvec/cluster/node_options.h"
#include "streamvec/core/clock.h"

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

class Nodes {
 public:
  void add(pid_t node) {
    nodes_.push_back(node);
    codes_.push_back(kRuns);
  }
  void send(int signal) const {
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (codes_[i] == kRuns) ::kill(nodes_[i], signal);
  }

  // Without a word of theirs: the user's wish is answered by us, and what has failed by the node that did.
  void stop() const {
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (codes_[i] == kRuns) stop_quietly(nodes_[i]);
  }

  // Passes a wish to stop on until every node has ended. One that fails while others may wait for it ends them all. The
  // others have nothing to do any more when the first has ended: one that is stopped is waked up for that. Returns the
  // exit code of the first, or of one that has failed.
  int await(double dead_after_s, const std::atomic<bool>& wanted) {
    const double begun_s = clock_seconds();
    double first_ended_s = 0;
    int failed = 0;
    bool told = false, waked = false;
    while (std::count(codes_.begin(), codes_.end(), kRuns) > 0) {
      const double now_s = clock_seconds();
      const int code = look();
      if (code != 0 && !wanted && now_s - begun_s < ClusterOptions().start_within_s) failed = code;
      if ((wanted || failed != 0) && !std::exchange(told, true)) stop();
      if (codes_.front() != kRuns && first_ended_s == 0) first_ended_s = now_s;
      const double since_s = first_ended_s > 0 ? now_s - first_ended_s : 0;
      if (since_s > kLeave_s && !std::exchange(waked, true)) send(SIGCONT), stop();
      if (since_s > dead_after_s + kKill_s) send(SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return codes_.front() != 0 ? codes_.front() : failed;
  }

 private:
  static constexpr int kRuns = -1;
  // After the first node's end: when the others should have ended by themselves, and, beyond the time after which they
  // miss the first, how long they may take.
  static constexpr double kLeave_s = 1, kKill_s = 5;

  // Notes who has ended; what one of them has failed with, if it has by itself.
  int look() {
    int failed = 0;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      int status = 0;
      if (codes_[i] != kRuns || ::waitpid(nodes_[i], &status, WNOHANG) != nodes_[i]) continue;
      codes_[i] = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
      if (WIFEXITED(status) && codes_[i] != 0) failed = codes_[i];
      if (WIFSIGNALED(status))
        std::cerr << "node " << i + 1 << " was ended by " << ::strsignal(WTERMSIG(status)) << std::endl;
    }
    return failed;
  }

  std::vector<pid_t> nodes_;
  std::vector<int> codes_;
};

// Those that only own rows, as `launch` was told or `train`.
Result<int64_t> servers_of(const Arguments& launch, const Arguments& train) {
  const int64_t servers = launch.integer("servers"), of_train = train.integer("servers");
  if (launch.given("servers") && train.given("servers") && servers != of_train)
    return error(Code::kInvalidArgument, "launch has --servers ", servers, " and train has ", of_train,
                 "; leave one of them out");
  return launch.given("servers") ? servers : of_train;
}

// What all nodes are told.
struct Plan {
  std::vector<std::string> words;  // as they were given: train ...
  std::vector<std::string> own;    // beside what each has for itself
  int64_t workers = 0, servers = 0;
  double dead_after_s = 0;

  int64_t nodes() const { return workers + servers; }
};

// The words of one node of those at `addresses`. Options of ours come first: words may end the options.
std::vector<std::string> words_of(const Plan& plan, const std::string& addresses, int64_t rank) {
  std::vector<std::string> words = with_rank(plan.words, rank);
  std::vector<std::string> own = {"--nodes", addresses, "--rank", std::to_string(rank)};
  own.insert(own.end(), plan.own.begin(), plan.own.end());
  words.insert(words.begin() + 1, own.begin(), own.end());
  return words;
}

Result<Arguments> parse_train(const std::vector<std::string>& words) {
  return parse(*find_command("train"), std::span(words).subspan(1));
}

Result<Plan> plan_of(const Arguments& arguments) {
  Plan plan;
  plan.words = arguments.words;
  if (plan.words.front() != "train")
    return error(Code::kInvalidArgument, "launch runs train, not ", plan.words.front(),
                 "; try `streamvec launch -n 4 -- train ...`");
  if (is_given(plan.words, "--nodes") || is_given(plan.words, "--rank"))
    return error(Code::kInvalidArgument, "launch gives each node --nodes and --rank; leave them out");
  STREAMVEC_ASSIGN_OR_RETURN(const Arguments train, parse_train(with_rank(plan.words, 0)));
  STREAMVEC_ASSIGN_OR_RETURN(plan.servers, servers_of(arguments, train));
  plan.workers = arguments.integer("n");
  plan.dead_after_s = train.real("dead-after");
  plan.own = {"--servers", std::to_string(plan.servers)};
  if (!train.given("threads")) {
    const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
    plan.own.insert(plan.own.end(), {"--threads", std::to_string(std::max<int64_t>(1, cores / plan.workers))});
  }
  return plan;
}

std::string addresses_at(const std::vector<int>& ports) {
  std::string addresses;
  for (const int port : ports) addresses += (addresses.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(port);
  return addresses;
}

}  // namespace

// As the first node would be refused, but once, and before any is started.
Status misuse_of_launch(const Arguments& arguments) {
  STREAMVEC_ASSIGN_OR_RETURN(const Plan plan, plan_of(arguments));
  const std::vector<int> some_ports(static_cast<size_t>(plan.nodes()), 1);
  STREAMVEC_ASSIGN_OR_RETURN(const Arguments first, parse_train(words_of(plan, addresses_at(some_ports), 0)));
  return misuse_of_train(first);
}

Result<int> run_launch(const Arguments& arguments) {
  STREAMVEC_ASSIGN_OR_RETURN(const Plan plan, plan_of(arguments));
  HeldPorts held;
  STREAMVEC_RETURN_IF_ERROR(held.take(plan.nodes()));
  const std::string addresses = addresses_at(held.ports());
  const std::atomic<bool>& stop = stop_on_signals();
  const std::vector<int> allowed = allowed_cores();
  Nodes nodes;
  for (int64_t rank = 0; rank < plan.nodes(); ++rank) {
    if (arguments.flag("pin") && rank < plan.workers) run_on(cores_of_share(allowed, rank, plan.workers));
    // The first node has our output; the others are heard only when they complain.
    auto pid = start_program(words_of(plan, addresses, rank),
                             rank == 0 ? ChildFiles{} : ChildFiles{ChildFiles::kNone, ChildFiles::kNone});
    run_on(allowed);
    if (!pid.ok()) {
      nodes.stop();
      return pid.status();
    }
    nodes.add(*pid);
  }
  return nodes.await(plan.dead_after_s, stop);
}

}  // namespace streamvec::cli
