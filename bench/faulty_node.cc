#include "bench/faulty_node.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "streamvec/cluster/hybrid_node.h"
#include "streamvec/core/clock.h"
#include "streamvec/core/random.h"
#include "streamvec/core/thread_team.h"
#include "streamvec/kernel/packed_gemm.h"
#include "streamvec/transport/grpc/grpc_transport.h"

namespace streamvec {
namespace {

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

// What a node leaves of its batches where all make one step of them: for the first table Muon's, for the second Adam's.
class Slopes {
 public:
  explicit Slopes(Matrix (&tables)[kTables]) : steps_(made(1, 1)) {
    for (int i = 0; i < kTables; ++i) {
      Kept& kept = kept_[i] = {made(kRows, kNodes), made(kRows, kNodes), made(kRows, kNodes)};
      shared_.tables.push_back({&tables[i], &kept.slopes, &kept.mean, &kept.variance, i == 0});
    }
    shared_.products = std::move(make_packed_gemm("auto")).value();
    shared_.steps = &steps_;
    shared_.rate = 0.01f;
  }
  void leave(Random& random) {
    for (Kept& kept : kept_)
      for (int row = 0; row < kRows; ++row)
        for (int col = 0; col < kNodes; ++col) kept.slopes.row(row)[col] += random.uniform() - 0.5f;
    shared_.pairs += 100;
  }
  SharedSlopes& shared() { return shared_; }
  ThreadTeam& team() { return team_; }
  int32_t steps() const { return static_cast<int32_t>(*steps_.row(0)); }

 private:
  struct Kept {
    Matrix slopes, mean, variance;
  };
  static Matrix made(int64_t rows, int64_t cols) { return std::move(Matrix::make(rows, cols)).value(); }

  Kept kept_[kTables];
  Matrix steps_;
  SharedSlopes shared_;
  ThreadTeam team_{1};
};

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
    options.sync.scheme.adaptive = scheme.adaptive;
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
    if (slopes_) log_.steps = slopes_->steps();
    return {};
  }

 private:
  float* row(int key) { return tables_[key % kTables].row(key / kTables); }

  Result<std::unique_ptr<Synchronizer>> join(const Way& scheme, const ClusterOptions& options,
                                             std::unique_ptr<Transport> transport) {
    std::vector<Matrix*> with_owners;
    RingOptions ring;
    const bool one_step = scheme.keeps == Way::Keeps::kOneStep;
    if (one_step) {
      slopes_.emplace(tables_);
      ring.slopes = &slopes_->shared();
      ring.team = &slopes_->team();
    }
    for (int i = 0; i < kTables && !one_step; ++i) {
      if (i < kTables - scheme.ring_tables) {
        with_owners.push_back(&tables_[i]);
        continue;
      }
      DenseTable dense;
      dense.live = &tables_[i];
      dense.combine = Combine::kSum;
      ring.tables.push_back(dense);
    }
    if (ring.keeps_nothing()) {
      STREAMVEC_ASSIGN_OR_RETURN(auto node, ClusterNode::start(options, std::move(transport), with_owners));
      return std::unique_ptr<Synchronizer>(std::move(node));
    }
    ring.with_tables = [this](const std::function<void()>& use) {
      const std::lock_guard lock(mutex_);
      use();
    };
    if (scheme.in_turns) ring.turns = turns_ = std::make_shared<Turns>(Turns::Options{.always = one_step});
    ring.words_min = scheme.in_turns ? 0 : options.words_min;
    ring.words_max = options.words_max;
    ring.dead_after_s = options.dead_after_s;
    ring.unheard_after_s = 2 * options.dead_after_s;
    STREAMVEC_ASSIGN_OR_RETURN(auto node, HybridNode::start(options, with_owners, ring, std::move(transport)));
    return std::unique_ptr<Synchronizer>(std::move(node));
  }

  Status train(Synchronizer& node) {
    while (!cluster_.finish) {
      if (turns_) turns_->begin_step();
      slopes_ ? leave_slopes() : add_some();
      if (turns_) turns_->end_step();
      note_acknowledged(node.stats().pushes);
      STREAMVEC_RETURN_IF_ERROR(node.trained(10));
      sleep_for(0.001);
    }
    return {};
  }

  void leave_slopes() {
    const std::lock_guard lock(mutex_);
    slopes_->leave(random_);
    ++log_.batches;
  }

  void add_some() {
    for (int i = 0; i < 5; ++i) add();
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
  std::optional<Slopes> slopes_;
  std::shared_ptr<Turns> turns_;
  std::deque<std::pair<int64_t, std::array<int32_t, kKeys>>> seen_;  // totals by the number of pushes begun
};

}  // namespace

void be_node(ClusterLog& log, int node, Roles roles, const Way& scheme, uint64_t seed) {
  const Status status = Trainer(log, node, roles, seed).run(scheme);
  std::snprintf(log.nodes[node].message, sizeof(log.nodes[node].message), "%s", std::string(status.message()).c_str());
  log.nodes[node].end = status.ok() ? End::kWell : End::kError;
  _exit(0);
}

}  // namespace streamvec
