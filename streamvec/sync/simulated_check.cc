// What has to add up when a SimulatedCluster has come to rest.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "streamvec/sync/simulated_node.h"

namespace streamvec {

std::string SimulatedCluster::check() {
  std::ostringstream wrong;
  const auto value = [&](const Node& node, RowKey key, int64_t column) {
    return std::llround(node.tables[key % kTables].row(key / kTables)[column - 1]);
  };
  const Node& first = *nodes_.begin()->second;
  for (RowKey key = 0; key < static_cast<RowKey>(options_.rows); ++key) {
    for (const auto& [id, node] : nodes_) {
      const auto began = options_.turnover > 0 ? value(*node, key, node->tables[0].cols()) : 0;
      if (began != static_cast<long long>(first.generations->born(key)))
        wrong << "row " << key << " of node " << id << " began with change " << began << ", not "
              << first.generations->born(key) << "; ";
      for (NodeId column = 1; column < next_id_; ++column)
        if (value(*node, key, column) != value(first, key, column))
          wrong << "node " << id << " and node " << first.id << " differ in row " << key << ": "
                << value(*node, key, column) << ", " << value(first, key, column) << "; ";
      if (value(first, key, id) != node->trained[key])
        wrong << "node " << id << " added " << node->trained[key] << " to row " << key << ", which has "
              << value(first, key, id) << "; ";
    }
    // What a dead worker pushed last may be in or not, in its order; what a server that lives acknowledged must be.
    for (const auto& [id, node] : dead_) {
      std::vector<int64_t> possible = {0};
      for (const Node::Push& push : node->pushes) {
        const auto total = push.totals.find(key);
        if (total == push.totals.end() || !first.generations->counts(key, push.stamp)) continue;
        if (push.acknowledged && dead_.count(push.server) == 0) possible.clear();
        possible.push_back(total->second);
      }
      if (std::find(possible.begin(), possible.end(), value(first, key, id)) == possible.end())
        wrong << "dead node " << id << " pushed " << possible.back() << " to row " << key << ", which has "
              << value(first, key, id) << "; ";
    }
  }
  return wrong.str();
}

// A push counts once: by 1 / (its group's size times its staleness) under softsync, where one that counts twice mostly
// has none of these shares (1/2 + 1/3, 1 + 1/2); by 1 where late ones are dropped, or not at all. What a dead worker
// pushed last may be in or not.
std::string SimulatedCluster::check_marks() {
  constexpr float kTolerance = 1e-4f;
  const bool drops = options_.scheme.admission == Admission::kBackup;
  std::ostringstream wrong;
  const auto check_mark = [&](const Node& by, bool lives, size_t push, RowKey key) {
    const int64_t column = int64_t{by.id - 1} * options_.marks + static_cast<int64_t>(push);
    const auto value = [&](const Node& node) { return node.tables[key % kTables].row(key / kTables)[column]; };
    const float share = value(*nodes_.begin()->second);
    for (const auto& [id, node] : nodes_)
      if (std::abs(value(*node) - share) > kTolerance)
        wrong << "nodes differ in row " << key << ": " << value(*node) << ", " << share << "; ";
    const bool lost = std::abs(share) < kTolerance && by.marks[push].count(key) > 0;
    const bool none = std::abs(share) < kTolerance && (!lost || !lives || drops);
    (lost ? dropped_ : counted_) += by.marks[push].count(key) > 0 ? 1 : 0;
    if (none) return;
    const float whole = share * (drops ? 1 : std::round(1 / share));
    if (lost || share < 0 || by.marks[push].count(key) == 0 || std::abs(whole - 1) > kTolerance)
      wrong << "push " << push + 1 << " of node " << by.id << " counts " << share << " in row " << key << "; ";
  };
  const auto check_node = [&](const Node& by, bool lives) {
    for (size_t push = 0; push < by.marks.size(); ++push)
      for (RowKey key = 0; key < static_cast<RowKey>(options_.rows); ++key) check_mark(by, lives, push, key);
  };
  for (const auto& [id, node] : nodes_) check_node(*node, true);
  for (const auto& [id, node] : dead_) check_node(*node, false);
  return wrong.str();
}

}  // namespace streamvec
