// Replay tables of several nodes as one: what a draw of each counts for where all train the same model.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>

namespace streamvec {

// What a table tells of itself.
struct ReplayShare {
  double log2_sum = -std::numeric_limits<double>::infinity();  // of its weights (ReplayWeights::log2_sum)
  float least = std::numeric_limits<float>::infinity();        // of them
  int64_t sampled = 0;                                         // draws since it began
};

// A node n draws d of all D draws, and of those the chunk i of weight w with probability w / S, S the sum there: in all
// with P(i) = d / D * w / S. Its importance, 1 / P(i), is S / (d w) but for factors that all chunks share; the largest
// is that of the node with the greatest S / (d least). So a draw's importance relative to the largest of all nodes is
// r / w, where r = S / (d max(S' / (d' least'))) is the same for all chunks of a node: the weight whose importance
// is 1. With one node r is its least weight. d counts about the last 2^16 draws of all, so that it follows nodes that
// become faster or slower. Not thread-safe.
class ReplayUnion {
 public:
  void receive(uint32_t node, const ReplayShare& share);
  void forget(uint32_t node) { tables_.erase(node); }  // it takes no further part
  // r; nullopt while it is not known: the node's table goes by itself.
  std::optional<float> reference(uint32_t node) const;

 private:
  struct Table {
    ReplayShare share;
    double draws = 0;  // of late
  };
  static bool draws(const Table& table);

  std::map<uint32_t, Table> tables_;
};

}  // namespace streamvec
