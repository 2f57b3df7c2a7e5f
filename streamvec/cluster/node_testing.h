// Nodes over a network inside the process whose "training" adds whole numbers, for tests of what a cluster makes of
// them.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
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

// Runs for 10 of every 100 ms only, when it is that node's.
class SlowTransport final : public Transport {
 public:
  SlowTransport(std::unique_ptr<Transport> inner, const std::atomic<NodeId>& slow)
      : inner_(std::move(inner)), slow_(slow) {}
  NodeId self() const override { return inner_->self(); }
  void add_peer(NodeId node, const std::string& address) override { inner_->add_peer(node, address); }
  void remove_peer(NodeId node) override { inner_->remove_peer(node); }
  void send(NodeId to, std::string frame) override { inner_->send(to, std::move(frame)); }
  Status receive(Deadline deadline, NodeId& from, std::string& frame) override {
    constexpr std::chrono::milliseconds kPeriod(100), kRuns(10);
    const auto in_period = std::chrono::steady_clock::now().time_since_epoch() % kPeriod;
    if (slow_ == self() && in_period > kRuns) std::this_thread::sleep_for(kPeriod - in_period);
    return inner_->receive(deadline, from, frame);
  }
  int64_t queued_bytes(NodeId to) const override { return inner_->queued_bytes(to); }
  Status peer_status(NodeId node) const override { return inner_->peer_status(node); }
  TransportTotals totals() const override { return inner_->totals(); }

 private:
  const std::unique_ptr<Transport> inner_;
  const std::atomic<NodeId>& slow_;
};

// What etcd is to a cluster: knows who leads and takes part. Each node has a page of its own.
class Notebook {
 public:
  class Page final : public Registry {
   public:
    Page(Notebook& book, NodeId self) : book_(book), self_(self) {}

    void publish(uint32_t epoch, std::vector<Member> members) override {
      const std::lock_guard lock(book_.mutex_);
      if (cut_) return;
      if (book_.leader_ != self_) {
        status_ = error(Code::kAborted, "another node leads");
        return;
      }
      pending_ = {epoch, self_, std::move(members)};
      if (book_.refusal_.ok()) write_pending();
    }
    Status trouble() const override {
      const std::lock_guard lock(book_.mutex_);
      return book_.refusal_;
    }
    uint32_t written() const override {
      const std::lock_guard lock(book_.mutex_);
      return written_;
    }
    Status status() const override {
      const std::lock_guard lock(book_.mutex_);
      return status_;
    }
    bool reached() const override {
      const std::lock_guard lock(book_.mutex_);
      return !cut_;
    }
    bool holds() const override {
      const std::lock_guard lock(book_.mutex_);
      return book_.leader_ == self_ && !cut_;
    }
    void seek(bool may_lead) override {
      const std::lock_guard lock(book_.mutex_);
      if (cut_ || book_.over_) return;
      const auto is_self = [&](const Member& member) { return member.node == self_; };
      if (book_.leader_ == 0 && may_lead && book_.refusal_.ok() &&
          std::any_of(book_.last.begin(), book_.last.end(), is_self)) {
        book_.leader_ = self_;
        book_.epochs.push_back(++book_.epoch_);
        written_ = book_.epoch_;
        led_ = std::chrono::steady_clock::now();
      }
      found_ = Written{book_.epoch_, book_.leader_, book_.last};
    }
    // Others may know that this node leads before it does.
    std::optional<Written> found() const override {
      const std::lock_guard lock(book_.mutex_);
      const bool knows = std::chrono::steady_clock::now() - led_ > std::chrono::milliseconds(30);
      return found_ && (found_->leader != self_ || knows) ? found_ : std::nullopt;
    }
    bool over() const override {
      const std::lock_guard lock(book_.mutex_);
      return book_.over_;
    }
    void finish() override {
      const std::lock_guard lock(book_.mutex_);
      book_.over_ = true;
    }

   private:
    friend class Notebook;
    void write_pending() {
      if (!pending_) return;
      book_.epochs.push_back(pending_->epoch);
      book_.epoch_ = written_ = pending_->epoch;
      book_.last = std::move(pending_->members);
      pending_.reset();
    }

    Notebook& book_;
    const NodeId self_;
    bool cut_ = false;
    Status status_;
    uint32_t written_ = 0;
    std::chrono::steady_clock::time_point led_;  // since when this node does
    std::optional<Written> found_, pending_;
  };

  Page& page(NodeId node) {
    const std::lock_guard lock(mutex_);
    return pages_.try_emplace(node, *this, node).first->second;
  }
  void forget(NodeId node) {  // it is gone, or its lease is
    const std::lock_guard lock(mutex_);
    if (leader_ == node) leader_ = 0;
  }
  void cut(NodeId node) {  // which cannot reach it any more
    forget(node);
    Page& of_node = page(node);
    const std::lock_guard lock(mutex_);
    of_node.cut_ = true;
  }
  void set_status(NodeId node, Status status) {
    Page& of_node = page(node);
    const std::lock_guard lock(mutex_);
    of_node.status_ = std::move(status);
  }
  void refuse(Status why) {  // nothing can be written; ok: it can again
    const std::lock_guard lock(mutex_);
    refusal_ = std::move(why);
    for (auto& [node, of_node] : pages_)
      if (refusal_.ok()) of_node.write_pending();
  }
  size_t size() const {
    const std::lock_guard lock(mutex_);
    return last.size();
  }
  NodeId leader() const {
    const std::lock_guard lock(mutex_);
    return leader_;
  }

  std::vector<uint32_t> epochs;
  std::vector<Registry::Member> last;

 private:
  mutable std::mutex mutex_;
  NodeId leader_ = 1;
  uint32_t epoch_ = 0;
  bool over_ = false;
  Status refusal_;
  std::map<NodeId, Page> pages_;
};

class Cluster {
 public:
  // Not `elastic`: nobody joins, and nobody takes the leader's place. `absent` are expected and never come.
  Cluster(int nodes, Scheme scheme, int servers = 0, double dead_after_s = 10, PieceRange text = {},
          bool elastic = true, const std::set<NodeId>& absent = {})
      : elastic_(elastic) {
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
    options.joinable = elastic;
    options.text = text;
    options.slow_owners.look_s = 0.5;  // tests do not have many seconds
    options.slow_owners.late_min = 2;
    options.fingerprint = 7;
    options.fingerprint_of = "7 words";
    for (int i = 0; i < nodes + servers; ++i) {
      const auto id = static_cast<NodeId>(i + 1);
      options.addresses[id] = "";
      notebook.last.push_back({id, "", is_among(options.workers, id), is_among(options.servers, id)});
    }
    for (const NodeId node : absent) notebook.forget(node);
    for (int i = 0; i < nodes + servers; ++i)
      if (const auto id = static_cast<NodeId>(i + 1); absent.count(id) == 0) start(id, options);
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
    now.leader = notebook.leader();
    start(id, now, 1000);
  }

  void start(NodeId id, ClusterOptions of_node, float rows = 0) {
    Member& member = members.emplace_back();
    std::unique_ptr<Transport> transport = std::make_unique<SlowTransport>(network.join(id), slow);
    for (const auto& [peer, address] : of_node.addresses)
      if (peer != id) transport->add_peer(peer, address);
    for (Matrix& table : member.tables) {
      table = std::move(Matrix::make(kRows, kDim)).value();
      for (int64_t i = 0; i < kRows; ++i) std::fill_n(table.row(i), kDim, rows);
    }
    if (elastic_) of_node.registry = &notebook.page(id);
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

  // Parts at once, and its lease ends.
  void kill(NodeId id) {
    members[id - 1].node.reset();
    notebook.forget(id);
  }

  ClusterOptions options;
  InprocNetwork network;
  std::atomic<NodeId> slow = 0;  // this one is, in all that it says
  Notebook notebook;
  std::deque<Member> members;
  std::vector<int64_t> totals;

 private:
  const bool elastic_;
};

// Takes pieces of the text until there are none, a step each.
class Reader {
 public:
  Reader(Member& member, NodeId id, std::chrono::milliseconds a_piece)
      : Reader(member, id, [a_piece] { std::this_thread::sleep_for(a_piece); }) {}
  // `train` is called for each piece, and takes as long as that takes.
  Reader(Member& member, NodeId id, const std::function<void()>& train) {
    thread_ = std::thread([this, &member, id, train] {
      status = member.node->await_start().status();
      if (!status.ok()) return;
      PieceQueue& pieces = *member.node->pieces();
      for (int64_t piece = 0; !stop_;) {
        const PieceQueue::Next next = pieces.take(piece);
        if (next == PieceQueue::Next::kOver || next == PieceQueue::Next::kStopped) break;
        if (next == PieceQueue::Next::kNotYet) {
          pieces.await(std::chrono::milliseconds(5));
          continue;
        }
        member.add_one(static_cast<int>(piece), id);
        taken.insert(piece);
        own_.tokens += 10;
        train();
        pieces.finish(piece, own_);
        if (!member.node->trained(10).ok()) break;
      }
      if (stop_) return;
      const Result<TrainedTotals> all = member.node->finish(own_);
      status = all.status();
      if (all.ok()) tokens = all->tokens;
      if (status.ok() && !member.node->leads()) status = member.node->await_saved();
      led = member.node->leads();
      if (status.ok() && led) member.node->saved();
    });
  }
  ~Reader() { join(); }
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  void stop() {
    stop_ = true;
    join();
  }

  std::set<int64_t> taken;
  Status status;
  int64_t tokens = 0;
  bool led = false;  // at the end

 private:
  std::atomic<bool> stop_ = false;
  TrainedTotals own_;
  std::thread thread_;
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
