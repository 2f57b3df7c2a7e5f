#include "streamvec/replay/union.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "streamvec/replay/testing.h"
#include "streamvec/replay/weights.h"

namespace streamvec {
namespace {

// A node's chunks by weight, and how often it draws.
struct Node {
  std::vector<float> weights;
  int64_t draws = 0;
};
const std::vector<Node> kNodes = {{{1, 2, 4}, 300}, {{8, 0.5f}, 100}, {{3}, 50}};

ReplayWeights weights_of(const std::vector<float>& all, double beta) {
  ReplayWeights made({.prioritised = true, .alpha = 1, .beta = beta}, all.size());
  for (size_t i = 0; i < all.size(); ++i) made.restore(i, 0, all[i]);
  return made;
}

ReplayUnion union_of(const std::vector<Node>& nodes) {
  ReplayUnion all;
  for (uint32_t node = 0; node < nodes.size(); ++node) {
    const ReplayWeights table = weights_of(nodes[node].weights, 1);
    all.receive(node, {table.log2_sum(), table.least(), 7});
    all.receive(node, {table.log2_sum(), table.least(), 7 + nodes[node].draws});
  }
  return all;
}

// Every chunk of all nodes in one table, with the weights by which it would draw each as often as the nodes do.
ReplayWeights one_table(double beta) {
  std::vector<float> all;
  for (const Node& node : kNodes) {
    const float sum = std::accumulate(node.weights.begin(), node.weights.end(), 0.0f);
    for (const float weight : node.weights) all.push_back(static_cast<float>(node.draws) * weight / sum);
  }
  return weights_of(all, beta);
}

TEST(ReplayUnion, ADrawCountsForWhatItWouldInOneTableOfAllChunks) {
  const ReplayUnion all = union_of(kNodes);
  for (const double beta : {0.4, 1.0}) {
    const ReplayWeights together = one_table(beta);
    size_t place = 0;
    for (uint32_t node = 0; node < kNodes.size(); ++node) {
      ReplayWeights own = weights_of(kNodes[node].weights, beta);
      own.set_reference(all.reference(node));
      for (size_t i = 0; i < kNodes[node].weights.size(); ++i)
        EXPECT_NEAR(own.importance(i), together.importance(place++), 1e-6) << node << " " << i;
    }
  }
}

TEST(ReplayUnion, TheExpectedStepIsThatOfChunksDrawnAlike) {
  const ReplayUnion all = union_of(kNodes);
  const std::vector<double> slopes = {1, -2, 3, 5, 0.25, -7};  // of each chunk
  double expected = 0, largest = 0;
  size_t at = 0;
  for (uint32_t node = 0; node < kNodes.size(); ++node) {
    ReplayWeights own = weights_of(kNodes[node].weights, 1);
    own.set_reference(all.reference(node));
    const double sum = std::accumulate(kNodes[node].weights.begin(), kNodes[node].weights.end(), 0.0);
    for (size_t i = 0; i < kNodes[node].weights.size(); ++i) {
      const double probability = kNodes[node].draws / 450.0 * kNodes[node].weights[i] / sum;
      expected += probability * own.importance(i) * slopes[at++];
      largest = std::max(largest, double{own.importance(i)});
    }
  }
  EXPECT_NEAR(largest, 1, 1e-6);
  // In proportion to their plain sum: by the probability of the chunk whose importance is 1, the one drawn least.
  const double rarest = 100 / 450.0 * 0.5 / 8.5;
  EXPECT_NEAR(expected, rarest * std::accumulate(slopes.begin(), slopes.end(), 0.0), 1e-6);
}

TEST(ReplayUnion, OneNodeGoesByItsLeastWeight) {
  EXPECT_NEAR(union_of({kNodes[0]}).reference(0).value(), 1, 1e-6);
}

TEST(ReplayUnion, KnowsNothingOfTablesThatHaveNotDrawn) {
  ReplayUnion all = union_of(kNodes);
  all.receive(9, {});
  EXPECT_EQ(all.reference(9), std::nullopt);
  EXPECT_EQ(all.reference(10), std::nullopt);
  all.forget(0);
  EXPECT_EQ(all.reference(0), std::nullopt);
}

TEST(ReplayUnion, FollowsANodeThatDrawsFaster) {
  ReplayUnion all = union_of({kNodes[0], kNodes[1]});
  const float before = all.reference(0).value();
  const ReplayWeights table = weights_of(kNodes[0].weights, 1);
  for (int64_t sampled = 1'000; sampled <= 1'000'000; sampled += 1'000)
    all.receive(0, {table.log2_sum(), table.least(), sampled});
  EXPECT_LT(all.reference(0).value(), before / 100);
}

TEST(ReplayTable, TellsItsShareAndGoesByTheReference) {
  ReplayOptions options = small(ReplaySelector::kPrioritised);
  options.beta = 1;
  options.in_order_share = 0;
  const auto table = table_of(options);
  EXPECT_EQ(table->share().sampled, 0);
  EXPECT_FALSE(std::isfinite(table->share().log2_sum));
  insert_numbers(*table, 0, 4);
  EXPECT_EQ(table->share().log2_sum, 2);
  EXPECT_EQ(table->share().least, 1);
  EXPECT_EQ(take(*table, 1).at(0).importance, 1);
  table->set_reference(0.25f);
  EXPECT_EQ(take(*table, 1).at(0).importance, 0.25f);
  EXPECT_EQ(table->share().sampled, 2);
}

}  // namespace
}  // namespace streamvec
