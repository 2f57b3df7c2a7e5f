#include "streamvec/reproduce/cluster_2018.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include "streamvec/reproduce/careless_reducer.h"
#include "streamvec/transport/collective.h"

namespace streamvec {
namespace {

constexpr uint64_t kOrderDraws = 21, kNegativeDraws = 22;
constexpr std::chrono::seconds kReduceWithin{60};

std::vector<NodeId> ring_of(int32_t nodes) {
  std::vector<NodeId> ring(static_cast<size_t>(nodes));
  std::iota(ring.begin(), ring.end(), NodeId{1});
  return ring;
}

void pin_this_thread(int32_t core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(core), &set);
  ::sched_setaffinity(0, sizeof set, &set);  // where it is refused, training is slower and nothing else
}

std::vector<uint32_t> shuffled(size_t size, Random random) {
  std::vector<uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0u);
  for (size_t i = size; i > 1; --i) std::swap(order[i - 1], order[random.below(static_cast<uint32_t>(i))]);
  return order;
}

}  // namespace

struct Cluster2018::Node {
  Node(const SgnsOptions2018& sgns, int64_t rows, int32_t node_rank, Random draws)
      : model(sgns, rows), rank(node_rank), random(draws) {}

  Sgns2018 model;
  int32_t rank = 0;
  Random random;
  std::unique_ptr<Transport> transport;
  std::unique_ptr<RingCollective> ring;
  std::unique_ptr<CarelessReducer> careless;
  std::vector<Pair2018> batch;
  std::vector<float> slopes;
  EpochStats2018 stats;
  Status status;
};

Cluster2018::Cluster2018(const ClusterOptions2018& options, const Vocabulary& vocabulary,
                         std::span<const Pair2018> pairs)
    : options_(options), pairs_(pairs), negatives_(vocabulary) {
  const std::vector<NodeId> ring = ring_of(options.nodes);
  for (int32_t rank = 0; rank < options.nodes; ++rank) {
    SgnsOptions2018 sgns = options.sgns;
    if (!options.broadcasts) sgns.seed = mix(options.sgns.seed, static_cast<uint64_t>(rank));
    const Random draws(mix(options.sgns.seed, kNegativeDraws, static_cast<uint64_t>(rank)));
    nodes_.push_back(std::make_unique<Node>(sgns, vocabulary.size(), rank, draws));
    Node& node = *nodes_.back();
    if (options.nodes == 1) continue;
    node.transport = network_.join(ring[static_cast<size_t>(rank)]);
    for (const NodeId peer : ring) node.transport->add_peer(peer, "");
    node.ring = std::make_unique<RingCollective>(*node.transport, ring);
    if (!options.awaits) node.careless = std::make_unique<CarelessReducer>(*node.ring);
  }
}

Cluster2018::~Cluster2018() = default;

const Sgns2018& Cluster2018::node(int32_t rank) const {
  return nodes_[static_cast<size_t>(rank)]->model;
}

int64_t Cluster2018::slope_bytes() const {
  return static_cast<int64_t>(nodes_.front()->model.values().size() * sizeof(float));
}

Status Cluster2018::train_share(Node& node, const std::vector<uint32_t>& order, const std::atomic<bool>* stop) {
  const auto nodes = static_cast<size_t>(options_.nodes), batch = static_cast<size_t>(options_.batch);
  const size_t share = (order.size() + nodes - 1) / nodes;
  node.stats = {};
  // Every node takes the same number of steps, or the ring would wait for one: the last batch of some is shorter. For
  // the same reason a cluster ends its epoch before it stops.
  for (size_t begin = 0; begin < share; begin += batch) {
    node.batch.clear();
    for (size_t i = begin; i < std::min(begin + batch, share); ++i)
      if (const size_t at = i * nodes + static_cast<size_t>(node.rank); at < order.size())
        node.batch.push_back(pairs_[order[at]]);
    node.stats.loss += node.model.slopes_of(node.batch, negatives_, node.random, node.slopes);
    ++node.stats.steps;
    if (node.careless != nullptr) {
      STREAMVEC_RETURN_IF_ERROR(
          node.careless->exchange(node.slopes, [&](const std::vector<float>& found) { node.model.step(found); }));
      continue;
    }
    if (node.ring != nullptr)
      STREAMVEC_RETURN_IF_ERROR(node.ring->all_reduce_mean(node.slopes, Deadline::after(kReduceWithin)));
    node.model.step(node.slopes);
    if (nodes == 1 && stop != nullptr && *stop) return error(Code::kCancelled, "stopped");
  }
  return node.careless != nullptr ? node.careless->settle() : Status();
}

Result<EpochStats2018> Cluster2018::train_epoch(const std::atomic<bool>* stop) {
  const std::vector<uint32_t> order =
      shuffled(pairs_.size(), Random(mix(options_.sgns.seed, kOrderDraws, static_cast<uint64_t>(epoch_++))));
  const auto begin = std::chrono::steady_clock::now();
  int64_t sent_before = 0, sent = 0;
  for (const auto& node : nodes_)
    if (node->transport != nullptr) sent_before += node->transport->totals().bytes_sent;
  std::vector<std::thread> threads;
  for (const auto& node : nodes_)
    threads.emplace_back([&, each = node.get()] {
      if (const auto rank = static_cast<size_t>(each->rank); rank < options_.cores.size())
        pin_this_thread(options_.cores[rank]);
      each->status = train_share(*each, order, stop);
    });
  for (std::thread& thread : threads) thread.join();
  EpochStats2018 all;
  for (const auto& node : nodes_) {
    STREAMVEC_RETURN_IF_ERROR(node->status);
    all.loss += node->stats.loss / static_cast<double>(pairs_.size());
    if (node->transport != nullptr) sent += node->transport->totals().bytes_sent;
  }
  all.steps = nodes_.front()->stats.steps;
  all.bytes_sent = sent - sent_before;
  all.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (stop != nullptr && *stop) return error(Code::kCancelled, "stopped");
  return all;
}

}  // namespace streamvec
