// The faults of 2018, each seen at work and seen gone where it can be mended.
#include "streamvec/reproduce/cluster_2018.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "streamvec/core/random.h"
#include "streamvec/eval/pip.h"

namespace streamvec {
namespace {

constexpr int64_t kDim = 18;  // rows that kernels have to pad

// Sentences of one topic each: 4 topics of 10 words.
class Experiment2018 : public ::testing::Test {
 protected:
  void SetUp() override {
    Random random(7);
    for (int32_t i = 0; i < 600; ++i) {
      const uint32_t topic = random.below(4);
      std::vector<Slot> sentence;
      for (int j = 0; j < 8; ++j) sentence.push_back(static_cast<Slot>(topic * 10 + random.below(10)));
      sentences_.push_back(sentence);
    }
    std::vector<int64_t> counts(40);
    for (const auto& sentence : sentences_)
      for (const Slot slot : sentence) ++counts[static_cast<size_t>(slot)];
    for (size_t i = 0; i < counts.size(); ++i) vocabulary_.add("w" + std::to_string(i), counts[i]);
    pairs_ = *make_pairs_2018(stream(), vocabulary_, {.sample = 0});
  }

  SentenceStream stream() const {
    return [this](const SentenceVisitor& visitor) -> Status {
      for (const auto& sentence : sentences_) visitor(sentence);
      return {};
    };
  }

  static ClusterOptions2018 options(int32_t nodes) {
    ClusterOptions2018 options;
    options.sgns.dim = kDim;
    options.sgns.negatives = 3;
    options.sgns.lr = 0.01f;
    options.batch = 64;
    options.nodes = nodes;
    return options;
  }

  // How far two nodes are from each other, root of the mean square.
  static double distance(const Cluster2018& cluster, int32_t a = 0, int32_t b = 1) {
    const std::vector<float>&x = cluster.node(a).values(), &y = cluster.node(b).values();
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
    return std::sqrt(sum / static_cast<double>(x.size()));
  }

  std::vector<std::vector<Slot>> sentences_;
  Vocabulary vocabulary_;
  std::vector<Pair2018> pairs_;
};

TEST_F(Experiment2018, WithoutBroadcastNodesBeginApart) {
  const Cluster2018 cluster(options(3), vocabulary_, pairs_);
  EXPECT_NEAR(distance(cluster, 0, 1), std::sqrt(2.0), 0.2);  // two independent N(0, 1)
  EXPECT_NEAR(distance(cluster, 1, 2), std::sqrt(2.0), 0.2);
}

TEST_F(Experiment2018, WithBroadcastNodesBeginEqual) {
  ClusterOptions2018 mended = options(3);
  mended.broadcasts = true;
  const Cluster2018 cluster(mended, vocabulary_, pairs_);
  EXPECT_EQ(distance(cluster, 0, 1), 0);
  EXPECT_EQ(distance(cluster, 1, 2), 0);
}

TEST_F(Experiment2018, NodesThatBeganApartNeverMeet) {
  Cluster2018 cluster(options(2), vocabulary_, pairs_);
  const double before = distance(cluster);
  for (int epoch = 0; epoch < 3; ++epoch) ASSERT_TRUE(cluster.train_epoch().ok());
  EXPECT_NEAR(distance(cluster), before, 1e-4);  // the same steps from different weights
}

TEST_F(Experiment2018, NodesThatBeganEqualAndWaitStayEqual) {
  ClusterOptions2018 mended = options(3);
  mended.broadcasts = true;
  Cluster2018 cluster(mended, vocabulary_, pairs_);
  ASSERT_TRUE(cluster.train_epoch().ok());
  EXPECT_EQ(distance(cluster, 0, 1), 0);
  EXPECT_EQ(distance(cluster, 0, 2), 0);
}

TEST_F(Experiment2018, SumsThatNobodyWaitsForPartEvenEqualNodes) {
  ClusterOptions2018 careless = options(2);
  careless.broadcasts = true;
  careless.awaits = false;
  Cluster2018 cluster(careless, vocabulary_, pairs_);
  ASSERT_TRUE(cluster.train_epoch().ok());
  EXPECT_GT(distance(cluster), 1e-3);
}

TEST_F(Experiment2018, EveryStepSendsBothTables) {
  Cluster2018 cluster(options(2), vocabulary_, pairs_);
  const auto stats = cluster.train_epoch();
  ASSERT_TRUE(stats.ok());
  const int64_t share = (static_cast<int64_t>(pairs_.size()) + 1) / 2;
  EXPECT_EQ(stats->steps, (share + 63) / 64);
  EXPECT_EQ(cluster.slope_bytes(), 2 * 40 * kDim * 4);
  // Two nodes: each sends all of it once, in two halves, with some bytes of frames.
  EXPECT_GE(stats->bytes_sent, 2 * stats->steps * cluster.slope_bytes());
  EXPECT_LE(stats->bytes_sent, 2 * stats->steps * (cluster.slope_bytes() + 200));
}

TEST_F(Experiment2018, LargeFirstWeightsScoreWorseThanZerosInItsOwnMeasure) {
  OracleOptions measuring;
  measuring.dim = kDim;
  measuring.split_half = false;
  measuring.counts.pairs.negatives = 1;  // with more, this small text's SPPMI is empty
  const auto oracle = make_oracle(stream(), vocabulary_, measuring);
  ASSERT_TRUE(oracle.ok());
  const auto score = [&](bool starts_normal) {
    SgnsOptions2018 sgns = options(1).sgns;
    sgns.starts_normal = starts_normal;
    return measure_pip(*Sgns2018(sgns, 40).input(), *oracle)->model.mean_square;
  };
  double zero = 0;
  const auto report = measure_pip(*Sgns2018(options(1).sgns, 40).input(), *oracle);
  for (const auto& [name, figures] : report->references)
    if (name == "zero") zero = figures.mean_square;
  ASSERT_GT(zero, 0.01);
  EXPECT_GT(score(true), 10 * zero);
  EXPECT_NEAR(score(false), zero, 0.01 * zero);
}

TEST_F(Experiment2018, ItsSubsamplingKeepsAWordEverywhereOrNowhere) {
  std::vector<int64_t> all(40), kept(40), thinned(40);
  const auto count = [&](const PairOptions2018& drawn, std::vector<int64_t>& into) {
    const auto pairs = make_pairs_2018(stream(), vocabulary_, drawn);
    ASSERT_TRUE(pairs.ok());
    for (const Pair2018& pair : *pairs) ++into[static_cast<size_t>(pair.centre)];
  };
  count({.sample = 0}, all);
  count({.sample = 5e-3, .removes_types = true}, kept);
  count({.sample = 5e-3, .removes_types = false}, thinned);
  EXPECT_GT(std::count(kept.begin(), kept.end(), 0), 5);
  EXPECT_LT(std::count(kept.begin(), kept.end(), 0), 40);
  EXPECT_EQ(std::count(thinned.begin(), thinned.end(), 0), 0);
  EXPECT_LT(std::accumulate(thinned.begin(), thinned.end(), int64_t{0}),
            std::accumulate(all.begin(), all.end(), int64_t{0}));
}

TEST_F(Experiment2018, OneNodeFromSmallWeightsLearnsTopics) {
  ClusterOptions2018 mended = options(1);
  mended.sgns.starts_normal = false;
  Cluster2018 cluster(mended, vocabulary_, pairs_);
  double loss = 0;
  for (int epoch = 0; epoch < 4; ++epoch) loss = cluster.train_epoch()->loss;
  EXPECT_LT(loss, 0.95 * 4 * std::log(2.0));  // what zeros lose
  const Matrix rows = cluster.node(0).input().value();
  const auto product = [&](int64_t a, int64_t b) {
    return std::inner_product(rows.row(a), rows.row(a) + kDim, rows.row(b), 0.0f);
  };
  EXPECT_GT(product(0, 1), product(0, 11));
  EXPECT_GT(product(20, 25), product(20, 35));
}

TEST_F(Experiment2018, ThreadsThatShareABatchAddUpToIt) {
  SgnsOptions2018 one = options(1).sgns, several = one;
  one.negatives = several.negatives = 0;  // which threads draw apart
  several.threads = 3;
  const AliasTable negatives(vocabulary_);
  std::vector<float> alone, shared;
  Random random(1);
  const std::span<const Pair2018> batch(pairs_.data(), 100);
  const double loss = Sgns2018(one, 40).slopes_of(batch, negatives, random, alone);
  EXPECT_NEAR(Sgns2018(several, 40).slopes_of(batch, negatives, random, shared), loss, 1e-6 * loss);
  ASSERT_EQ(alone.size(), shared.size());
  for (size_t i = 0; i < alone.size(); ++i) ASSERT_NEAR(alone[i], shared[i], 1e-4) << i;
}

TEST_F(Experiment2018, ThreadsThatShareAStepTakeTheSame) {
  SgnsOptions2018 one = options(1).sgns, several = one;
  one.dim = several.dim = 250;  // several blocks of Adam's
  several.threads = 3;
  Sgns2018 alone(one, 40), shared(several, 40);
  std::vector<float> slopes(alone.values().size());
  for (size_t i = 0; i < slopes.size(); ++i) slopes[i] = static_cast<float>(i % 7) - 3;
  const std::vector<float> before = alone.values();
  alone.step(slopes);
  shared.step(slopes);
  EXPECT_EQ(alone.values(), shared.values());
  for (size_t i = 0; i < slopes.size(); ++i) ASSERT_EQ(alone.values()[i] != before[i], slopes[i] != 0) << i;
}

TEST_F(Experiment2018, SlopesAreThoseOfTheLoss) {
  SgnsOptions2018 sgns = options(1).sgns;
  Sgns2018 model(sgns, 40);
  for (float& value : model.values()) value *= 0.3f;
  const AliasTable negatives(vocabulary_);
  const std::span<const Pair2018> batch(pairs_.data(), 20);
  std::vector<float> slopes, ignored;
  const auto loss = [&](std::vector<float>& into) {
    Random random(5);
    return model.slopes_of(batch, negatives, random, into);
  };
  loss(slopes);
  for (const size_t i : {size_t(batch[0].centre) * kDim, (40 + size_t(batch[0].context)) * kDim + 3, size_t(5)}) {
    const float value = model.values()[i], h = 0.01f;
    model.values()[i] = value + h;
    const double above = loss(ignored);
    model.values()[i] = value - h;
    const double below = loss(ignored);
    model.values()[i] = value;
    EXPECT_NEAR(slopes[i], -(above - below) / (2 * h), 2e-3 * (1 + std::abs(slopes[i]))) << i;
  }
}

TEST_F(Experiment2018, OneSeedAndOneNodeGiveOneResult) {
  Cluster2018 a(options(1), vocabulary_, pairs_), b(options(1), vocabulary_, pairs_);
  ASSERT_TRUE(a.train_epoch().ok());
  ASSERT_TRUE(b.train_epoch().ok());
  EXPECT_EQ(a.node(0).values(), b.node(0).values());
}

TEST_F(Experiment2018, AWishToStopEndsAnEpoch) {
  const std::atomic<bool> stop{true};
  for (const int32_t nodes : {1, 2}) {
    Cluster2018 cluster(options(nodes), vocabulary_, pairs_);
    EXPECT_EQ(cluster.train_epoch(&stop).status().code(), Code::kCancelled);
  }
}

TEST(ReversedBatches, GiveWordsTheVectorsOfOthers) {
  Matrix rows = Matrix::make(5, 1).value();
  for (int64_t i = 0; i < 5; ++i) rows.row(i)[0] = static_cast<float>(i);
  const Matrix reversed = reversed_batches(rows, 3).value();
  const float expected[] = {2, 1, 0, 4, 3};
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(reversed.row(i)[0], expected[i]);
}

}  // namespace
}  // namespace streamvec
