// A node of bench_faults: a process that takes part in a cluster, adds whole numbers to a column of its own, and leaves
// what it did in memory that outlives it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "streamvec/sync/scheme.h"
#include "streamvec/transport/transport.h"

namespace streamvec {

constexpr int kNodes = 5, kTables = 2, kRows = 10, kKeys = kTables * kRows;
constexpr int kTotalsMax = 4'096;
constexpr double kDeadAfter = 1.5, kHangsAfter = 150;  // seconds

// How changes are taken in.
struct Way {
  enum class Keeps {
    kAll,      // every change as it is
    kLess,     // some, or parts of them
    kOneStep,  // no changes: all nodes make one step of their slopes, and what counts is how often
  };
  const char* name;
  Admission admission = Admission::kBsp;
  int ring_tables = 0;  // the last so many of the tables go round; the others' rows have owners
  Keeps keeps = Keeps::kAll;
  bool adaptive = false;  // the admission's bound follows what is measured
  bool in_turns = false;  // a round of the ring follows every batch

  bool exact() const { return keeps == Keeps::kAll; }
};
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

inline void sleep_for(double seconds) {
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
  int32_t batches = 0;        // kOneStep: that this node has left slopes of
  int32_t steps = 0;          // and what all have stepped, at the end

  int32_t last(int key) const { return totals[key] == 0 ? 0 : total[key][static_cast<size_t>(totals[key] - 1)]; }
  bool had(int key, int32_t value) const {
    return value == 0 || std::count(total[key].begin(), total[key].begin() + totals[key], value) > 0;
  }
};

struct ClusterLog {
  std::atomic<bool> finish{false};
  NodeLog nodes[kNodes];
};

// Does what the node has to do in a process of its own, and ends it. SIGUSR1 cuts its network, SIGUSR2 mends it.
[[noreturn]] void be_node(ClusterLog& log, int node, Roles roles, const Way& scheme, uint64_t seed);

}  // namespace streamvec
