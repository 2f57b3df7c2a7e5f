// Nodes over a network inside the process whose "training" adds whole numbers, for tests of what a cluster makes of
// them.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "streamvec/cluster/node.h"
#include "streamvec/transport/inproc.h"

namespace streamvec::testing {

constexpr int64_t kRows = 40, kDim = 8;

// A node whose "training" adds whole numbers: node i to column i.
struct Member {
  Matrix tables[2];
  std::unique_ptr<std::mutex> mutex = std::make_unique<std::mutex>();  // of the tables while they are trained on
  RowMarks changed{2 * kRows};
  std::unique_ptr<ClusterNode> node;
  double added = 0;

  void add_one(int step, NodeId id) {
    const std::lock_guard lock(*mutex);
    tables[step % 2].row(step % kRows)[id - 1] += 1;
    changed.mark(2 * (step % kRows) + step % 2);
    added += 1;
  }
  void train(NodeId id, int steps) {
    for (int step = 0; step < steps; ++step) {
      add_one(step, id);
      if (!node->trained(10).ok()) return;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }
  double sum(NodeId column) const {
    double sum = 0;
    for (const Matrix& table : tables)
      for (int64_t i = 0; i < kRows; ++i) sum += table.row(i)[column - 1];
    return sum;
  }
};

// Keeps what the leader writes down.
class Notebook final : public Registry {
 public:
  void publish(uint32_t epoch, std::vector<Member> members) override {
    const std::lock_guard lock(mutex_);
    epochs.push_back(epoch);
    last = std::move(members);
  }
  Status status() const override {
    const std::lock_guard lock(mutex_);
    return broken;
  }
  void set_status(Status status) {
    const std::lock_guard lock(mutex_);
    broken = std::move(status);
  }
  size_t size() const {
    const std::lock_guard lock(mutex_);
    return last.size();
  }

  std::vector<uint32_t> epochs;
  std::vector<Member> last;
  Status broken;

 private:
  mutable std::mutex mutex_;
};

class Cluster {
 public:
  Cluster(int nodes, Scheme scheme, int servers = 0, double dead_after_s = 10, PieceRange text = {}) {
    for (int i = 0; i < nodes; ++i) options.workers.push_back(static_cast<NodeId>(i + 1));
    options.servers = options.workers;
    if (servers > 0) options.servers.clear();
    for (int i = 0; i < servers; ++i) options.servers.push_back(static_cast<NodeId>(nodes + i + 1));
    options.sync.scheme = scheme;
    options.sync.dim = kDim;
    options.sync.key_end = 2 * kRows;
    options.words_min = 50;
    options.words_max = 1'000;
    options.dead_after_s = dead_after_s;
    options.joinable = true;
    options.registry = &notebook;
    options.text = text;
    options.fingerprint = 7;
    options.fingerprint_of = "7 words";
    for (int i = 0; i < nodes + servers; ++i) options.addresses[static_cast<NodeId>(i + 1)] = "";
    for (int i = 0; i < nodes + servers; ++i) start(static_cast<NodeId>(i + 1), options);
  }

  // A node that comes while others train. Its rows are not what the others' were at first.
  void join(NodeId id, uint64_t fingerprint = 7) {
    ClusterOptions now = options;
    now.joins = true;
    now.fingerprint = fingerprint;
    now.fingerprint_of = std::to_string(fingerprint) + " words";
    if (now.servers == now.workers) now.servers.push_back(id);
    now.workers.push_back(id);
    now.addresses[id] = "";
    start(id, now, 1000);
  }

  void start(NodeId id, ClusterOptions of_node, float rows = 0) {
    Member& member = members.emplace_back();
    auto transport = network.join(id);
    for (const auto& [peer, address] : of_node.addresses)
      if (peer != id) transport->add_peer(peer, address);
    for (Matrix& table : member.tables) {
      table = std::move(Matrix::make(kRows, kDim)).value();
      for (int64_t i = 0; i < kRows; ++i) std::fill_n(table.row(i), kDim, rows);
    }
    of_node.sync.live_mutex = member.mutex.get();
    of_node.changed = &member.changed;
    member.node =
        std::move(ClusterNode::start(of_node, std::move(transport), {&member.tables[0], &member.tables[1]})).value();
  }

  // Every worker trains so many steps and finishes; returns their statuses.
  std::vector<Status> run(const std::vector<int>& steps) {
    std::vector<Status> statuses(members.size());
    totals.assign(members.size(), 0);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < members.size(); ++i)
      threads.emplace_back([&, i] {
        Member& member = members[i];
        statuses[i] = member.node->await_start().status();
        if (i < steps.size()) member.train(static_cast<NodeId>(i + 1), steps[i]);
        TrainedTotals own;
        own.tokens = i < steps.size() ? steps[i] : 0;
        const Result<TrainedTotals> all = member.node->finish(own);
        statuses[i] = all.status();
        if (all.ok()) totals[i] = all->tokens;
      });
    for (std::thread& thread : threads) thread.join();
    return statuses;
  }

  ClusterOptions options;
  InprocNetwork network;
  Notebook notebook;
  std::deque<Member> members;
  std::vector<int64_t> totals;
};

// Every change arrives whole, so that sums can be compared.
inline Scheme exact(Admission admission) {
  Scheme scheme;
  scheme.admission = admission;
  scheme.combine = Combine::kSum;
  scheme.codec = CodecKind::kFp32;
  return scheme;
}

}  // namespace streamvec::testing
