// What does one slow node cost the others?
//
//   bench_stragglers [steps]
//
// Four nodes in one process, each "training" by sleeping 10 ms a step; one of them ten times as long. A row per scheme:
// the time between two pushes of a fast node, as times what it is when all are fast.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "streamvec/cluster/node.h"
#include "streamvec/transport/inproc.h"

namespace streamvec {
namespace {

constexpr int kNodes = 4;
constexpr int64_t kRows = 64, kDim = 16, kWords = 10;
constexpr auto kStep = std::chrono::milliseconds(10);

struct Member {
  Matrix tables[2];
  std::unique_ptr<ClusterNode> node;
};

// Seconds between two pushes of the fast nodes, which take so many steps.
double step_s(Admission admission, int slow_times, int steps) {
  InprocNetwork network;
  std::vector<Member> members(kNodes);
  ClusterOptions options;
  for (NodeId id = 1; id <= kNodes; ++id) options.workers.push_back(id);
  options.servers = options.workers;
  options.sync.scheme.admission = admission;
  options.sync.dim = kDim;
  options.sync.key_end = 2 * kRows;
  options.words_min = kWords;
  options.words_max = 2 * kWords;  // nobody trains far beyond a push that is not answered
  for (NodeId id = 1; id <= kNodes; ++id) {
    Member& member = members[id - 1];
    auto transport = network.join(id);
    for (NodeId other = 1; other <= kNodes; ++other)
      if (other != id) transport->add_peer(other, "");
    std::vector<Matrix*> tables;
    for (Matrix& table : member.tables) {
      table = std::move(Matrix::make(kRows, kDim)).value();
      tables.push_back(&table);
    }
    member.node = std::move(ClusterNode::start(options, std::move(transport), tables)).value();
  }
  std::vector<double> took(kNodes);
  std::atomic<int> fast_done = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kNodes; ++i)
    threads.emplace_back([&, i] {
      ClusterNode& node = *members[static_cast<size_t>(i)].node;
      if (!node.await_start().ok()) return;
      const bool slow = i + 1 == kNodes && slow_times > 1;
      const auto begin = std::chrono::steady_clock::now();
      for (int step = 0; slow ? fast_done < kNodes - 1 : step < steps; ++step) {
        std::this_thread::sleep_for(slow ? slow_times * kStep : kStep);
        members[static_cast<size_t>(i)].tables[step % 2].row(step % kRows)[i] += 1;
        if (!node.trained(kWords).ok()) return;
      }
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      took[static_cast<size_t>(i)] = seconds / static_cast<double>(std::max<int64_t>(node.stats().pushes, 1));
      ++fast_done;
      (void)node.finish({}).ok();
    });
  for (std::thread& thread : threads) thread.join();
  return (took[0] + took[1] + took[2]) / 3;
}

int run(int steps) {
  const double even = step_s(Admission::kBsp, 1, steps);
  std::printf("| scheme | ms between pushes of a fast node | times that of four fast nodes |\n|---|---:|---:|\n");
  std::printf("| bsp, all fast | %.2f | 1 |\n", 1e3 * even);
  const std::pair<const char*, Admission> schemes[] = {
      {"backup", Admission::kBackup}, {"bsp", Admission::kBsp}, {"ssp", Admission::kSsp}, {"async", Admission::kAsync}};
  for (const auto& [name, admission] : schemes) {
    const double uneven = step_s(admission, 10, steps);
    std::printf("| %s, one 10 times slower | %.2f | %.2f |\n", name, 1e3 * uneven, uneven / even);
  }
  return 0;
}

}  // namespace
}  // namespace streamvec

int main(int argc, char** argv) {
  return streamvec::run(argc > 1 ? std::atoi(argv[1]) : 200);
}
