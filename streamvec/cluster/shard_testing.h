// Nodes that share tables out, as threads over a network inside the process, for tests of them.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "streamvec/cluster/shard_node.h"
#include "streamvec/transport/inproc.h"

namespace streamvec::testing {

constexpr RowKey kShardRows = 500;
constexpr int64_t kShardDim = 4;

inline void first_values(RowKey row, std::span<float> values) {
  for (float& value : values) value = static_cast<float>(row);
}

// Nodes as threads: workers 1 .. n, then nodes that only own rows.
class Shards {
 public:
  Shards(int32_t workers, int32_t owners, double dead_after_s = 60) {
    for (int32_t i = 0; i < workers + owners; ++i) {
      if (i < workers) options.workers.push_back(static_cast<NodeId>(i + 1));
      if (i >= workers || owners == 0) options.owners.push_back(static_cast<NodeId>(i + 1));
    }
    options.row_end = kShardRows;
    options.dim = kShardDim;
    options.initial = first_values;
    options.dead_after_s = dead_after_s;
    nodes.resize(static_cast<size_t>(workers + owners));
    finished.resize(nodes.size());
  }
  ~Shards() {  // a test that has failed must not wait for ever: its nodes lose each other
    for (const auto& waiting : finished)
      for (size_t i = 0; waiting.valid() && i < nodes.size(); ++i)
        for (size_t k = 0; k < i; ++k) network.cut(static_cast<NodeId>(i + 1), static_cast<NodeId>(k + 1));
  }
  void start(size_t i) {
    auto transport = network.join(static_cast<NodeId>(i + 1));
    for (size_t other = 0; other < nodes.size(); ++other)
      if (other != i) transport->add_peer(static_cast<NodeId>(other + 1), "");
    nodes[i] = std::move(ShardNode::start(options, std::move(transport))).value();
  }
  // All but that one, which a test has in its own place.
  void start_all(std::optional<size_t> but = {}) {
    for (size_t i = 0; i < nodes.size(); ++i)
      if (i != but) start(i);
    for (const auto& node : nodes) ASSERT_TRUE(node == nullptr || *node->await_start());
  }
  void finish_later(size_t i) {
    finished[i] = std::async(std::launch::async, [this, i] {
      return nodes[i]->finish({static_cast<int64_t>(i) + 10, 0, 0, 0});
    });
  }

  InprocNetwork network;
  ShardNodeOptions options;
  std::vector<std::unique_ptr<ShardNode>> nodes;
  std::vector<std::future<Result<TrainedTotals>>> finished;
};

template <typename Value>
bool is_ready(const std::future<Value>& future) {
  return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace streamvec::testing
