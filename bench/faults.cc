// Does a cluster keep every change when its nodes are killed, cut off and stopped, and does it ever hang?
//
//   bench_faults [--kills 500] [--cuts 100] [--stops 100] [--scheme all] [--servers 0] [--at-once 4] [--seed 1]
//
// Clusters of five processes over gRPC on loopback, two faults each, at moments of chance, also while they end; every
// scheme in turn. "Training" adds whole numbers, each node to a column of its own, and notes every total in memory that
// outlives it. At the end: nodes that ended well must have equal rows, with all that each of them has added; of a node
// that was lost, its column must be a total that it once had, and no less than what a living owner, or the ring, has
// acknowledged. backup and softsync drop or scale changes by definition: of them only that nothing hangs and nothing is
// added twice. --scheme: bsp, ssp, async, backup, softsync, ring, hybrid (one table with owners, the other in a ring).
// With --servers S the last S of the five only own rows and the others only train, under the schemes that have owners.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "streamvec/cluster/hybrid_node.h"
#include "streamvec/core/clock.h"
#include "streamvec/core/random.h"
#include "streamvec/transport/grpc/grpc_transport.h"

namespace streamvec {
namespace {

constexpr int kNodes = 5, kTables = 2, kRows = 10, kKeys = kTables * kRows;
constexpr int kTotalsMax = 4'096;
constexpr double kDeadAfter = 1.5, kHangsAfter = 150;  // seconds

// How changes are taken in.
struct Way {
  const char* name;
  Admission admission = Admission::kBsp;
  int ring_tables = 0;  // the last so many of the tables go round; the others' rows have owners
  bool exact = true;    // every change is kept as it is
};
constexpr Way kWays[] = {{"bsp"},
                         {"ssp", Admission::kSsp},
                         {"async", Admission::kAsync},
                         {"backup", Admission::kBackup, 0, false},
                         {"softsync", Admission::kSoftsync, 0, false},
                         {"ring", Admission::kBsp, kTables},
                         {"hybrid", Admission::kBsp, 1}};

// Who does what: the last of the nodes may only own rows; where there are none of these, all train and own rows.
struct Roles {
  int servers = 0;

  bool trains(int node) const { return node < kNodes - servers; }
  bool owns(int node) const { return servers == 0 || !trains(node); }
  std::vector<NodeId> workers() const {
    return those([this](int node) { return trains(node); });
  }
  std::vector<NodeId> owners() const {
    return those([this](int node) { return owns(node); });
  }

 private:
  static std::vector<NodeId> those(const std::function<bool(int)>& are) {
    std::vector<NodeId> ids;
    for (int node = 0; node < kNodes; ++node)
      if (are(node)) ids.push_back(static_cast<NodeId>(node + 1));
    return ids;
  }
};

void sleep_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

enum class End : int32_t { kNone, kWell, kError };

// What a node leaves behind, whatever becomes of it.
struct NodeLog {
  std::atomic<int32_t> port{0};
  std::atomic<bool> training{false};
  std::atomic<End> end{End::kNone};
  char message[160] = {};
  std::atomic<int32_t> totals[kKeys] = {};       // how many there are of
  std::array<int32_t, kTotalsMax> total[kKeys];  // what its column of the row has been, one after the other
  std::atomic<int32_t> acknowledged[kKeys] = {};
  float rows[kKeys][kNodes];  // at the end

  int32_t last(int key) const { return totals[key] == 0 ? 0 : total[key][static_cast<size_t>(totals[key] - 1)]; }
  bool had(int key, int32_t value) const {
    return value == 0 || std::count(total[key].begin(), total[key].begin() + totals[key], value) > 0;
  }
};

struct ClusterLog {
  std::atomic<bool> finish{false};
  NodeLog nodes[kNodes];
};

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

// --- a node --------------------------------------------------------------------------------------------------------

std::atomic<bool> is_cut{false};

// A network that a signal cuts and another mends.
class CutTransport final : public Transport {
 public:
  explicit CutTransport(std::unique_ptr<Transport> inner) : inner_(std::move(inner)) {
    std::signal(SIGUSR1, [](int) { is_cut = true; });
    std::signal(SIGUSR2, [](int) { is_cut = false; });
  }
  NodeId self() const override { return inner_->self(); }
  void add_peer(NodeId node, const std::string& address) override { inner_->add_peer(node, address); }
  void remove_peer(NodeId node) override { inner_->remove_peer(node); }
  void send(NodeId to, std::string frame) override {
    if (!is_cut) inner_->send(to, std::move(frame));
  }
  Status receive(Deadline deadline, NodeId& from, std::string& frame) override {
    const Status got = inner_->receive(deadline, from, frame);
    return got.ok() && is_cut ? error(Code::kDeadlineExceeded, "cut off") : got;
  }
  int64_t queued_bytes(NodeId to) const override { return inner_->queued_bytes(to); }
  TransportTotals totals() const override { return inner_->totals(); }

 private:
  const std::unique_ptr<Transport> inner_;
};

Result<std::unique_ptr<Transport>> connect(ClusterLog& log, int node) {
  GrpcTransport::Options options;
  options.self = static_cast<NodeId>(node + 1);
  STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<GrpcTransport> transport, GrpcTransport::listen(options));
  const std::string address = transport->address();
  log.nodes[node].port = std::stoi(address.substr(address.rfind(':') + 1));
  const auto start = Clock::now();
  for (int i = 0; i < kNodes; ++i) {
    while (log.nodes[i].port == 0 && seconds_since(start) < kHangsAfter / 2) sleep_for(0.002);
    if (i != node)
      transport->add_peer(static_cast<NodeId>(i + 1), "127.0.0.1:" + std::to_string(log.nodes[i].port.load()));
  }
  return std::unique_ptr<Transport>(std::make_unique<CutTransport>(std::move(transport)));
}

// Adds to its column until it is told to finish, and notes what it has added and what is acknowledged of it.
class Trainer {
 public:
  Trainer(ClusterLog& log, int node, Roles roles, uint64_t seed)
      : cluster_(log), log_(log.nodes[node]), node_(node), roles_(roles), random_(seed) {}

  Status run(const Way& scheme) {
    STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport, connect(cluster_, node_));
    ClusterOptions options;
    options.workers = roles_.workers();
    options.servers = roles_.owners();
    options.sync.scheme = {.admission = scheme.admission, .combine = Combine::kSum, .codec = CodecKind::kFp32};
    options.sync.dim = kNodes;
    options.sync.key_end = static_cast<RowKey>(kRows * (kTables - scheme.ring_tables));
    options.sync.live_mutex = &mutex_;
    options.words_min = 20;
    options.words_max = 400;
    options.dead_after_s = kDeadAfter;
    options.start_within_s = kHangsAfter / 2;
    for (Matrix& table : tables_) table = std::move(Matrix::make(kRows, kNodes)).value();
    STREAMVEC_ASSIGN_OR_RETURN(auto node, join(scheme, options, std::move(transport)));
    STREAMVEC_RETURN_IF_ERROR(node->await_start().status());
    log_.training = true;
    if (roles_.trains(node_)) STREAMVEC_RETURN_IF_ERROR(train(*node));
    STREAMVEC_RETURN_IF_ERROR(node->finish({}).status());
    for (int key = 0; key < kKeys; ++key) std::copy_n(row(key), kNodes, log_.rows[key]);
    return {};
  }

 private:
  float* row(int key) { return tables_[key % kTables].row(key / kTables); }

  Result<std::unique_ptr<Synchronizer>> join(const Way& scheme, const ClusterOptions& options,
                                             std::unique_ptr<Transport> transport) {
    std::vector<Matrix*> with_owners;
    RingOptions ring;
    for (int i = 0; i < kTables; ++i) {
      if (i < kTables - scheme.ring_tables) {
        with_owners.push_back(&tables_[i]);
        continue;
      }
      DenseTable dense;
      dense.live = &tables_[i];
      dense.combine = Combine::kSum;
      ring.tables.push_back(dense);
    }
    if (ring.tables.empty()) {
      STREAMVEC_ASSIGN_OR_RETURN(auto node, ClusterNode::start(options, std::move(transport), with_owners));
      return std::unique_ptr<Synchronizer>(std::move(node));
    }
    ring.with_tables = [this](const std::function<void()>& use) {
      const std::lock_guard lock(mutex_);
      use();
    };
    ring.words_min = options.words_min;
    ring.words_max = options.words_max;
    ring.dead_after_s = options.dead_after_s;
    ring.unheard_after_s = 2 * options.dead_after_s;
    STREAMVEC_ASSIGN_OR_RETURN(auto node, HybridNode::start(options, with_owners, ring, std::move(transport)));
    return std::unique_ptr<Synchronizer>(std::move(node));
  }

  Status train(Synchronizer& node) {
    while (!cluster_.finish) {
      for (int i = 0; i < 5; ++i) add();
      note_acknowledged(node.stats().pushes);
      STREAMVEC_RETURN_IF_ERROR(node.trained(10));
      sleep_for(0.001);
    }
    return {};
  }

  void add() {
    const int key = static_cast<int>(random_.below(kKeys));
    if (log_.totals[key] == kTotalsMax) return;
    const int32_t last = log_.last(key), total = last + 1 + static_cast<int32_t>(random_.below(5));
    const std::lock_guard lock(mutex_);
    log_.total[key][static_cast<size_t>(log_.totals[key])] = total;
    ++log_.totals[key];
    row(key)[node_] += static_cast<float>(total - last);
  }

  // What was added when push k had begun is in push k + 1, unless a new membership refuses that, and acknowledged when
  // the push after it begins.
  void note_acknowledged(int64_t pushes) {
    constexpr int64_t kSurely = 4;
    if (!seen_.empty() && seen_.back().first == pushes) return;
    seen_.emplace_back(pushes, std::array<int32_t, kKeys>{});
    for (int key = 0; key < kKeys; ++key) seen_.back().second[static_cast<size_t>(key)] = log_.last(key);
    for (; seen_.front().first + kSurely <= pushes; seen_.pop_front())
      for (int key = 0; key < kKeys; ++key) log_.acknowledged[key] = seen_.front().second[static_cast<size_t>(key)];
  }

  ClusterLog& cluster_;
  NodeLog& log_;
  const int node_;
  const Roles roles_;
  Random random_;
  std::mutex mutex_;
  Matrix tables_[kTables];
  std::deque<std::pair<int64_t, std::array<int32_t, kKeys>>> seen_;  // totals by the number of pushes begun
};

[[noreturn]] void be_node(ClusterLog& log, int node, Roles roles, const Way& scheme, uint64_t seed) {
  const Status status = Trainer(log, node, roles, seed).run(scheme);
  std::snprintf(log.nodes[node].message, sizeof(log.nodes[node].message), "%s", std::string(status.message()).c_str());
  log.nodes[node].end = status.ok() ? End::kWell : End::kError;
  _exit(0);
}

// --- a cluster and its faults --------------------------------------------------------------------------------------

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
    const bool exact = plan_.scheme.exact;
    for (int key = 0; key < kKeys; ++key)
      for (int node = 0; node < kNodes && plan_.roles.trains(node); ++node) {
        const float value = log_->nodes[first].rows[key][node];
        check_value(key, node, value, exact);
        for (int other = first + 1; exact && other < kNodes; ++other)
          if (has_rows(other) && log_->nodes[other].rows[key][node] != value) {
            ++outcome_.unequal;
            complain("nodes differ in row " + std::to_string(key));
          }
      }
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

// --- a campaign ----------------------------------------------------------------------------------------------------

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
