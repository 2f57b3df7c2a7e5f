#include "streamvec/replay/sum_tree.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

size_t find_one(const SumTree& tree, double target) {
  std::vector<double> targets = {target};
  std::vector<size_t> places(1);
  tree.find(targets, places);
  return places[0];
}

// Sixty-fourths, so that sums are exact in any order.
std::vector<float> random_weights(size_t size, Random& random, bool with_zeros) {
  std::vector<float> weights(size);
  for (float& weight : weights)
    weight = with_zeros && random.below(3) == 0 ? 0 : static_cast<float>(1 + random.below(255)) / 64;
  return weights;
}

size_t place_by_adding(const std::vector<float>& weights, double target) {
  double running = 0;
  for (size_t i = 0; i < weights.size(); ++i)
    if ((running += weights[i]) > target) return i;
  return weights.size();
}

TEST(SumTree, FindsThePlaceThatAddingUpFinds) {
  Random random(1);
  for (const size_t size : {1u, 2u, 15u, 16u, 17u, 255u, 256u, 257u, 5'000u}) {
    const std::vector<float> weights = random_weights(size, random, size > 1);
    SumTree tree(size);
    for (size_t i = 0; i < size; ++i) tree.set(i, weights[i]);
    EXPECT_EQ(tree.total(), std::accumulate(weights.begin(), weights.end(), 0.0));
    for (int draw = 0; draw < 300; ++draw) {
      const double target = std::floor(random.uniform() * tree.total() * 64) / 64;
      EXPECT_EQ(find_one(tree, target), place_by_adding(weights, target));
    }
  }
}

TEST(SumTree, ManyTargetsAtOnceFindWhatEachFindsAlone) {
  Random random(2);
  SumTree tree(3'000);
  tree.assign(random_weights(3'000, random, true));
  std::vector<double> targets(500);
  for (double& target : targets) target = random.uniform() * tree.total();
  const std::vector<double> kept = targets;
  std::vector<size_t> places(targets.size());
  tree.find(targets, places);
  for (size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(places[i], find_one(tree, kept[i]));
}

TEST(SumTree, DrawsInProportionToWeight) {
  Random random(3);
  const std::vector<float> weights = {1, 0, 2, 4, 0, 0, 8, 1};
  SumTree tree(1'000);
  for (size_t i = 0; i < weights.size(); ++i) tree.set(i * 100, weights[i]);
  std::vector<int> drawn(weights.size());
  constexpr int kDraws = 64'000;
  for (int i = 0; i < kDraws; ++i) ++drawn[find_one(tree, random.uniform() * tree.total()) / 100];
  for (size_t i = 0; i < weights.size(); ++i)
    EXPECT_NEAR(drawn[i], kDraws * weights[i] / 16, 5 * std::sqrt(kDraws * weights[i] / 16.0)) << i;
}

TEST(SumTree, NeverFindsAPlaceOfWeightZeroHoweverTheTargetIsRounded) {
  Random random(4);
  SumTree tree(600);
  for (int round = 0; round < 200; ++round) {
    tree.set(random.below(600), random.below(2) == 0 ? 0 : std::exp2(static_cast<float>(random.below(80)) - 40));
    if (tree.total() == 0) continue;
    for (const double target : {0.0, tree.total() * 0.999999999, std::nextafter(tree.total(), 0.0), tree.total(),
                                tree.total() * 2, std::numeric_limits<double>::denorm_min()})
      EXPECT_GT(tree.get(find_one(tree, target)), 0) << target;
  }
}

TEST(SumTree, SumsDoNotDrift) {
  Random random(5);
  SumTree worn(700), fresh(700);
  for (int i = 0; i < 200'000; ++i) worn.set(random.below(700), std::exp2(static_cast<float>(random.below(60)) - 30));
  std::vector<float> weights(700);
  for (size_t i = 0; i < weights.size(); ++i) worn.set(i, weights[i] = random.uniform());
  fresh.assign(weights);
  EXPECT_EQ(worn.total(), fresh.total());
  EXPECT_EQ(worn.least(), fresh.least());
  for (int i = 0; i < 1'000; ++i) {
    const double target = random.uniform() * fresh.total();
    EXPECT_EQ(find_one(worn, target), find_one(fresh, target));
  }
}

TEST(SumTree, LeastIsThatOfTheWeightsThatAreNotZero) {
  SumTree tree(300);
  EXPECT_EQ(tree.least(), std::numeric_limits<float>::infinity());
  EXPECT_EQ(tree.total(), 0);
  tree.set(299, 4);
  tree.set(17, 2);
  EXPECT_EQ(tree.least(), 2);
  tree.set(17, 0);
  EXPECT_EQ(tree.least(), 4);
  EXPECT_EQ(tree.total(), 4);
}

}  // namespace
}  // namespace streamvec
