// Does a cluster keep every change when its nodes are killed, cut off and stopped, and does it ever hang?
//
//   bench_faults [--kills 500] [--cuts 100] [--stops 100] [--scheme all] [--servers 0] [--at-once 4] [--seed 1]
//
// Clusters of five processes over gRPC on loopback, two faults each, at moments of chance, also while they end; every
// scheme in turn. "Training" adds whole numbers, each node to a column of its own, and notes every total in memory that
// outlives it. At the end: nodes that ended well must have equal rows, with all that each of them has added; of a node
// that was lost, its column must be a total that it once had, and no less than what a living owner, or the ring, has
// acknowledged. backup and softsync drop or scale changes by definition: of them only that nothing hangs and nothing is
// added twice (the seeded simulator looks for what they lose, too). --scheme: bsp, ssp, async, auto, backup, softsync,
// ring, hybrid (one table with owners, the other in a ring), turns (a ring with a round after every batch), step (one
// step of all nodes after every batch; each waits for its own, so there are as many steps as any node that ended well
// has batches, and no more than all have together).
// With --servers S the last S of the five only own rows and the others only train, under the schemes that have owners.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "bench/faulty_node.h"
#include "streamvec/core/clock.h"
#include "streamvec/core/random.h"
#include "streamvec/sync/view.h"

namespace streamvec {
namespace {

constexpr Way kWays[] = {{.name = "bsp"},
                         {.name = "ssp", .admission = Admission::kSsp},
                         {.name = "async", .admission = Admission::kAsync},
                         {.name = "auto", .admission = Admission::kSsp, .adaptive = true},
                         {.name = "backup", .admission = Admission::kBackup, .keeps = Way::Keeps::kLess},
                         {.name = "softsync", .admission = Admission::kSoftsync, .keeps = Way::Keeps::kLess},
                         {.name = "ring", .ring_tables = kTables},
                         {.name = "hybrid", .ring_tables = 1},
                         {.name = "turns", .ring_tables = kTables, .in_turns = true},
                         {.name = "step", .ring_tables = kTables, .keeps = Way::Keeps::kOneStep, .in_turns = true}};

// All faults of a run, and what came of them.
struct Outcome {
  std::atomic<int64_t> clusters{0}, kills{0}, cuts{0}, stops{0}, lost{0}, twice{0}, hangs{0}, unequal{0}, wrong_end{0};
  std::atomic<int64_t> checked{0};
  std::atomic<int64_t> of_servers{0},
      without_owner{0};  // faults of nodes that only own rows; clusters that lost them all
};

template <typename T>
T* shared() {
  void* memory = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  return new (memory) T;
}

enum class Fault { kKill, kCut, kStop };

struct Plan {
  Way scheme;
  Roles roles;
  std::vector<Fault> faults;
  uint64_t seed = 0;
};

class FaultyCluster {
 public:
  FaultyCluster(const Plan& plan, Outcome& outcome)
      : plan_(plan), outcome_(outcome), random_(plan.seed), log_(shared<ClusterLog>()) {}

  void run() {
    for (int i = 0; i < kNodes; ++i) {
      pids_[i] = fork();
      if (pids_[i] == 0) be_node(*log_, i, plan_.roles, plan_.scheme, mix(plan_.seed, static_cast<uint64_t>(i)));
    }
    const auto start = Clock::now();
    while (!all_training() && seconds_since(start) < kHangsAfter) sleep_for(0.005);
    const double end_after = 0.2 + 1.5 * random_.uniform();
    std::thread finish([&] {
      sleep_for(end_after);
      log_->finish = true;
    });
    for (size_t i = 0; i < plan_.faults.size(); ++i) {
      sleep_for(0.8 * random_.uniform());
      strike(plan_.faults[i], i + 1 == plan_.faults.size());
    }
    finish.join();
    await_end();
    check();
    ++outcome_.clusters;
  }

 private:
  bool all_training() const {
    return std::all_of(log_->nodes, log_->nodes + kNodes, [](const NodeLog& node) { return node.training.load(); });
  }

  // Of nodes that were spared so far; of the leader rarely and last, since it ends all.
  int victim(bool last) {
    if (last && random_.uniform() < 0.1f) return 0;
    int node = 0;
    while (node == 0 || struck_[node]) node = 1 + static_cast<int>(random_.below(kNodes - 1));
    return node;
  }

  void strike(Fault fault, bool last) {
    const int node = victim(last);
    struck_[node] = true;
    if (!plan_.roles.trains(node)) ++outcome_.of_servers;
    const bool for_long = random_.uniform() < 0.5f;
    const double span = kDeadAfter * (for_long ? 1.6 : 0.3);
    switch (fault) {
      case Fault::kKill:
        kill(pids_[node], SIGKILL);
        ++outcome_.kills;
        return;
      case Fault::kCut:
        kill(pids_[node], SIGUSR1);
        sleep_for(span);
        kill(pids_[node], SIGUSR2);
        ++outcome_.cuts;
        return;
      case Fault::kStop:
        kill(pids_[node], SIGSTOP);
        sleep_for(span);
        kill(pids_[node], SIGCONT);
        ++outcome_.stops;
        return;
    }
  }

  void await_end() {
    const auto start = Clock::now();
    for (int i = 0; i < kNodes; ++i) {
      while (waitpid(pids_[i], nullptr, WNOHANG) == 0) {
        if (seconds_since(start) < kHangsAfter) {
          sleep_for(0.01);
          continue;
        }
        ++outcome_.hangs;
        complain("node " + std::to_string(i + 1) + " hangs");
        kill(pids_[i], SIGKILL);
        waitpid(pids_[i], nullptr, 0);
      }
    }
  }

  bool ended_well(int node) const { return log_->nodes[node].end == End::kWell; }

  // Rows are where nodes train.
  bool has_rows(int node) const { return ended_well(node) && plan_.roles.trains(node); }

  // Every owner of rows was struck: with the last of them rows are gone, and all end with an error.
  bool owners_struck() const {
    const std::vector<NodeId> owners = plan_.roles.owners();
    return std::all_of(owners.begin(), owners.end(), [&](NodeId id) { return struck_[id - 1]; });
  }

  void check() {
    int first = 0;
    while (first < kNodes && !has_rows(first)) ++first;
    if (!struck_[0] && first != 0 && owners_struck() && std::strstr(log_->nodes[0].message, "no owner of rows")) {
      ++outcome_.without_owner;
    } else if (!struck_[0] && first != 0) {
      ++outcome_.wrong_end;
      complain(std::string("the leader was spared and ended with: ") + log_->nodes[0].message);
    }
    if (first == kNodes) return;
    const bool exact = plan_.scheme.exact(), one_step = plan_.scheme.keeps == Way::Keeps::kOneStep;
    if (one_step) check_steps(first);
    for (int key = 0; key < kKeys; ++key)
      for (int node = 0; node < kNodes && plan_.roles.trains(node); ++node) {
        const float value = log_->nodes[first].rows[key][node];
        if (!one_step) check_value(key, node, value, exact);
        for (int other = first + 1; (exact || one_step) && other < kNodes; ++other)
          if (has_rows(other) && log_->nodes[other].rows[key][node] != value) {
            ++outcome_.unequal;
            complain("nodes differ in row " + std::to_string(key));
          }
      }
  }

  void check_steps(int first) {
    ++outcome_.checked;
    const int32_t steps = log_->nodes[first].steps;
    int32_t all = 0;
    for (int node = 0; node < kNodes; ++node) {
      const NodeLog& log = log_->nodes[node];
      all += log.batches;
      if (!has_rows(node)) continue;
      const std::string what = std::to_string(steps) + " steps, and node " + std::to_string(node + 1) + " has " +
                               std::to_string(log.batches) + " batches and " + std::to_string(log.steps) + " steps";
      if (log.batches > steps) ++outcome_.lost, complain(what);
      if (log.steps != steps) ++outcome_.unequal, complain(what);
    }
    if (steps > all) ++outcome_.twice, complain(std::to_string(steps) + " steps of " + std::to_string(all));
  }

  void check_value(int key, int node, float value, bool exact) {
    ++outcome_.checked;
    const NodeLog& log = log_->nodes[node];
    const auto whole = static_cast<int32_t>(std::lround(value));
    const auto least = ended_well(node) ? log.last(key) : owner_lives(key) ? log.acknowledged[key].load() : 0;
    const std::string what = "row " + std::to_string(key) + " has " + std::to_string(value) + " of node " +
                             std::to_string(node + 1) + ", which added " + std::to_string(log.last(key)) +
                             (ended_well(node) ? "" : ", was lost, and had acknowledged " + std::to_string(least));
    if (value > static_cast<float>(log.last(key)) + 0.01f || (exact && !log.had(key, whole))) {
      ++outcome_.twice;
      complain(what);
    } else if (exact && whole < least) {
      ++outcome_.lost;
      complain(what);
    }
  }

  // The row had one owner from the beginning to the end, or all that are left have it.
  bool owner_lives(int key) const {
    if (plan_.scheme.ring_tables == kTables) return true;
    if (plan_.scheme.ring_tables > 0) return false;  // pushes and rounds are counted together: nobody knows
    const int owner = static_cast<int>(owner_of(static_cast<RowKey>(key), plan_.roles.owners())) - 1;
    return ended_well(owner);
  }

  void complain(const std::string& what) const {
    std::fprintf(stderr, "seed %llu, %s: %s\n", static_cast<unsigned long long>(plan_.seed), plan_.scheme.name,
                 what.c_str());
  }

  const Plan plan_;
  Outcome& outcome_;
  Random random_;
  ClusterLog* const log_;
  pid_t pids_[kNodes] = {};
  bool struck_[kNodes] = {};
};

std::vector<Plan> plans(const std::map<std::string, int64_t>& options, const std::vector<Way>& schemes) {
  std::vector<Fault> faults;
  faults.insert(faults.end(), static_cast<size_t>(options.at("kills")), Fault::kKill);
  faults.insert(faults.end(), static_cast<size_t>(options.at("cuts")), Fault::kCut);
  faults.insert(faults.end(), static_cast<size_t>(options.at("stops")), Fault::kStop);
  Random random(static_cast<uint64_t>(options.at("seed")));
  for (size_t i = faults.size(); i > 1; --i) std::swap(faults[i - 1], faults[random.below(static_cast<uint32_t>(i))]);
  std::vector<Plan> plans;
  for (size_t i = 0; i < faults.size(); ++i) {
    if (i % 2 == 0) {
      plans.emplace_back();
      plans.back().scheme = schemes[plans.size() % schemes.size()];
      plans.back().roles.servers = static_cast<int>(options.at("servers"));
      plans.back().seed = mix(static_cast<uint64_t>(options.at("seed")), i);
    }
    plans.back().faults.push_back(faults[i]);
  }
  return plans;
}

int run(const std::map<std::string, int64_t>& options, const std::vector<Way>& schemes) {
  auto* outcome = shared<Outcome>();
  int64_t running = 0;
  int broken = 0;
  const auto await_one = [&] {
    int status = 0;
    wait(&status);
    --running;
    if (status != 0) ++broken;
  };
  for (const Plan& plan : plans(options, schemes)) {
    if (running == options.at("at-once")) await_one();
    ++running;
    if (fork() == 0) {
      FaultyCluster(plan, *outcome).run();
      _exit(0);
    }
  }
  while (running > 0) await_one();
  std::printf(
      "%lld clusters of %d: %lld kills, %lld cuts, %lld stops; %lld values checked; lost %lld, twice %lld, "
      "unequal %lld, hangs %lld, leaders that ended wrongly %lld\n",
      static_cast<long long>(outcome->clusters), kNodes, static_cast<long long>(outcome->kills),
      static_cast<long long>(outcome->cuts), static_cast<long long>(outcome->stops),
      static_cast<long long>(outcome->checked), static_cast<long long>(outcome->lost),
      static_cast<long long>(outcome->twice), static_cast<long long>(outcome->unequal),
      static_cast<long long>(outcome->hangs), static_cast<long long>(outcome->wrong_end));
  if (options.at("servers") > 0)
    std::printf("%lld of the faults were of nodes that only own rows; %lld clusters lost all of these and ended\n",
                static_cast<long long>(outcome->of_servers), static_cast<long long>(outcome->without_owner));
  const int64_t bad = outcome->lost + outcome->twice + outcome->unequal + outcome->hangs + outcome->wrong_end + broken;
  return bad == 0 && outcome->checked > 0 ? 0 : 1;
}

}  // namespace
}  // namespace streamvec

int main(int argc, char** argv) {
  std::map<std::string, int64_t> options = {{"kills", 500}, {"cuts", 100},  {"stops", 100},
                                            {"servers", 0}, {"at-once", 4}, {"seed", 1}};
  std::vector<streamvec::Way> schemes(std::begin(streamvec::kWays), std::end(streamvec::kWays));
  for (int i = 1; i < argc; i += 2) {
    const std::string name = std::strncmp(argv[i], "--", 2) == 0 ? argv[i] + 2 : argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (name == "scheme" && value != "all")
      std::erase_if(schemes, [&](const streamvec::Way& scheme) { return value != scheme.name; });
    if ((name != "scheme" && options.count(name) == 0) || value.empty() || schemes.empty()) {
      std::fprintf(stderr,
                   "usage: bench_faults [--kills N] [--cuts N] [--stops N] [--scheme NAME] [--servers N] [--at-once N] "
                   "[--seed N]\n");
      return 2;
    }
    if (name != "scheme") options[name] = std::atoll(value.c_str());
  }
  if (options["servers"] > 0)
    std::erase_if(schemes, [](const streamvec::Way& scheme) { return scheme.ring_tables > 0; });
  if (options["servers"] < 0 || options["servers"] >= streamvec::kNodes || schemes.empty()) {
    std::fprintf(stderr, "bench_faults: of %d nodes one has to train, and in a ring all do; try --servers 2\n",
                 streamvec::kNodes);
    return 2;
  }
  return streamvec::run(options, schemes);
}
