// What does one slow node cost the others?
//
//   bench_stragglers [steps] [--processes | --stopped MS] [--owners 4] [--slow 4] [--after SECONDS] [--keep]
//
// Four nodes, each "training" by sleeping 10 ms a step, so that two cores are enough for all; one of them ten times as
// long. In one process, or with --processes in four, over gRPC on loopback. A row per scheme: what a step of a fast
// node takes, and the time between two of its pushes, as times what they are under the same scheme when all are fast.
// With --stopped the slow process is also stopped for nine tenths of every MS ms, so that it talks, and answers for the
// rows that it owns, with a tenth of the time, too; --owners 3 leaves it none. Owners that are found to be slow give
// their rows up after some seconds (cluster/slow_owner_finder.h): --after counts steps from then on only, --keep has
// owners keep their rows. --slow 1: the node that leads is the slow one.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "streamvec/cluster/node.h"
#include "streamvec/transport/inproc.h"
#ifdef STREAMVEC_GRPC
#include "streamvec/transport/grpc/grpc_transport.h"
#endif

namespace streamvec {
namespace {

constexpr int kNodes = 4;
constexpr int64_t kRows = 64, kDim = 16, kWords = 10;
constexpr auto kStep = std::chrono::milliseconds(10);

// What the nodes of a run tell each other beside the cluster: in memory that processes share.
struct Board {
  std::atomic<int> ports[kNodes] = {};
  std::atomic<int> fast_done = 0;
  std::atomic<bool> begun = false;
  double step_s[kNodes] = {}, push_s[kNodes] = {};  // a step takes, and is between two pushes; 0 of a node that failed
};

struct Job {
  bool processes = false;
  int steps = 200, owners = kNodes, stopped_ms = 0;
  int slow = kNodes - 1;  // from 0
  double after_s = 0;     // before steps count
  bool keep = false;      // nobody loses rows
  Scheme scheme;
  bool one_slow = false;
};

ClusterOptions options_of(const Job& job) {
  ClusterOptions options;
  for (NodeId id = 1; id <= kNodes; ++id) options.workers.push_back(id);
  options.servers.assign(options.workers.begin(), options.workers.begin() + job.owners);
  options.sync.scheme = job.scheme;
  if (job.keep) options.slow_owners.held_most = 1;
  options.sync.dim = kDim;
  options.sync.key_end = 2 * kRows;
  options.words_min = kWords;
  options.words_max = 2 * kWords;  // nobody trains far beyond a push that is not answered
  return options;
}

// One of the nodes, from its start to its end.
Status be_node(const Job& job, int i, std::unique_ptr<Transport> transport, Board& board) {
  Matrix tables[2];
  for (Matrix& table : tables) table = std::move(Matrix::make(kRows, kDim)).value();
  STREAMVEC_ASSIGN_OR_RETURN(const auto node,
                             ClusterNode::start(options_of(job), std::move(transport), {&tables[0], &tables[1]}));
  STREAMVEC_RETURN_IF_ERROR(node->await_start().status());
  const bool slow = i == job.slow && job.one_slow;
  const auto pause = slow ? 10 * kStep : kStep;
  board.begun = true;
  const auto now = [] { return std::chrono::steady_clock::now(); };
  auto begin = now();
  const auto counts_from = begin + std::chrono::duration<double>(job.after_s);
  int64_t pushes = 0;
  int steps_before = -1;  // those that do not count; -1: none does yet
  for (int step = 0; slow ? board.fast_done < kNodes - 1 : steps_before < 0 || step < steps_before + job.steps;
       ++step) {
    if (steps_before < 0 && now() >= counts_from) {
      steps_before = step;
      begin = now();
      pushes = node->stats().pushes;
    }
    std::this_thread::sleep_for(pause);
    tables[step % 2].row(step % kRows)[i] += 1;
    STREAMVEC_RETURN_IF_ERROR(node->trained(kWords));
  }
  const double seconds = std::chrono::duration<double>(now() - begin).count();
  board.step_s[i] = seconds / job.steps;
  board.push_s[i] = seconds / static_cast<double>(std::max<int64_t>(node->stats().pushes - pushes, 1));
  ++board.fast_done;
  return node->finish({}).status();
}

void run_threads(const Job& job, Board& board) {
  InprocNetwork network;
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<Transport>> transports;
  for (NodeId id = 1; id <= kNodes; ++id) {
    transports.push_back(network.join(id));
    for (NodeId other = 1; other <= kNodes; ++other)
      if (other != id) transports.back()->add_peer(other, "");
  }
  for (int i = 0; i < kNodes; ++i)
    threads.emplace_back([&, i] { (void)be_node(job, i, std::move(transports[static_cast<size_t>(i)]), board).ok(); });
  for (std::thread& thread : threads) thread.join();
}

#ifdef STREAMVEC_GRPC
Status be_process(const Job& job, int i, Board& board) {
  GrpcTransport::Options options;
  options.self = static_cast<NodeId>(i + 1);
  STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<GrpcTransport> transport, GrpcTransport::listen(options));
  const std::string address = transport->address();
  board.ports[i] = std::stoi(address.substr(address.rfind(':') + 1));
  for (int other = 0; other < kNodes; ++other) {
    while (board.ports[other] == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (other != i)
      transport->add_peer(static_cast<NodeId>(other + 1), "127.0.0.1:" + std::to_string(board.ports[other].load()));
  }
  return be_node(job, i, std::move(transport), board);
}

// Until the others are done, or for a minute.
void stop_mostly(pid_t pid, const Job& job, const Board& board) {
  const std::chrono::microseconds tenth(100 * job.stopped_ms);
  while (!board.begun) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (int i = 0; i < 60'000 / job.stopped_ms && board.fast_done < kNodes - 1; ++i) {
    kill(pid, SIGSTOP);
    std::this_thread::sleep_for(9 * tenth);
    kill(pid, SIGCONT);
    std::this_thread::sleep_for(tenth);
  }
}

void run_processes(const Job& job, Board& board) {
  pid_t pids[kNodes];
  for (int i = 0; i < kNodes; ++i) {
    pids[i] = fork();
    if (pids[i] != 0) continue;
    const Status status = be_process(job, i, board);
    if (!status.ok()) std::fprintf(stderr, "node %d: %s\n", i + 1, std::string(status.message()).c_str());
    _exit(status.ok() ? 0 : 1);
  }
  if (job.stopped_ms > 0 && job.one_slow) stop_mostly(pids[job.slow], job, board);
  for (const pid_t pid : pids) waitpid(pid, nullptr, 0);
}
#else
void run_processes(const Job&, Board&) {
  std::fprintf(stderr, "bench_stragglers: built without gRPC; try it without --processes\n");
  std::exit(2);
}
#endif

// Of the three nodes that are fast, in the mean.
struct Pace {
  double step_ms = 0, push_ms = 0;
};

Pace measure(const Job& job) {
  void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  Board& board = *new (memory) Board;
  job.processes ? run_processes(job, board) : run_threads(job, board);
  Pace pace;
  for (int i = 0; i < kNodes; ++i) {
    if (i == job.slow) continue;
    pace.step_ms += 1e3 * board.step_s[i] / (kNodes - 1);
    pace.push_ms += 1e3 * board.push_s[i] / (kNodes - 1);
  }
  munmap(memory, sizeof(Board));
  return pace;
}

int run(Job job) {
  std::printf("| scheme | ms a step, all fast | one slow | times | ms between pushes, all fast | one slow | times |\n");
  std::printf("|---|---:|---:|---:|---:|---:|---:|\n");
  const std::pair<const char*, Scheme> schemes[] = {{"backup", {.admission = Admission::kBackup}},
                                                    {"async", {.admission = Admission::kAsync}},
                                                    {"auto", {.admission = Admission::kSsp, .adaptive = true}},
                                                    {"bsp", {.admission = Admission::kBsp}},
                                                    {"ssp", {.admission = Admission::kSsp}}};
  for (const auto& [name, scheme] : schemes) {
    job.scheme = scheme;
    job.one_slow = false;
    const Pace even = measure(job);
    job.one_slow = true;
    const Pace uneven = measure(job);
    std::printf("| %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", name, even.step_ms, uneven.step_ms,
                uneven.step_ms / even.step_ms, even.push_ms, uneven.push_ms, uneven.push_ms / even.push_ms);
    std::fflush(stdout);  // or the next processes would print it, too
  }
  return 0;
}

}  // namespace
}  // namespace streamvec

int main(int argc, char** argv) {
  streamvec::Job job;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--processes") {
      job.processes = true;
    } else if (word == "--stopped" && i + 1 < argc) {
      job.processes = true;
      job.stopped_ms = std::atoi(argv[++i]);
    } else if (word == "--owners" && i + 1 < argc) {
      job.owners = std::atoi(argv[++i]);
    } else if (word == "--slow" && i + 1 < argc) {
      job.slow = std::atoi(argv[++i]) - 1;
    } else if (word == "--after" && i + 1 < argc) {
      job.after_s = std::atof(argv[++i]);
    } else if (word == "--keep") {
      job.keep = true;
    } else {
      job.steps = std::atoi(word.c_str());
    }
  }
  if (job.steps < 1 || job.stopped_ms < 0 || job.owners < 1 || job.owners > streamvec::kNodes || job.slow < 0 ||
      job.slow >= streamvec::kNodes || job.after_s < 0) {
    std::fprintf(stderr,
                 "usage: bench_stragglers [steps] [--processes | --stopped MS] [--owners 1 to 4] [--slow 1 to 4] "
                 "[--after SECONDS] [--keep]\n");
    return 2;
  }
  return streamvec::run(job);
}
