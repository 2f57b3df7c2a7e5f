#include "streamvec/cluster/virtual_cluster.h"

#include <gtest/gtest.h>

namespace streamvec {
namespace {

constexpr int64_t kWords = 60, kChunks = 32, kChunkWords = 500;

// Text of four topics, each a quarter of the words: something to learn.
class Text {
 public:
  Text() : tables(make_tables()) {
    Random random(3);
    for (int64_t i = 0; i < kChunks; ++i) {
      Chunk chunk;
      for (int64_t k = 0; k < kChunkWords; ++k) {
        const auto topic = static_cast<Slot>((k / 10 + i) % 4);
        chunk.slots.push_back(topic + 4 * static_cast<Slot>(random.uniform() * (kWords / 4)));
        if (k % 10 == 9) chunk.sentence_ends.push_back(static_cast<int32_t>(k + 1));
      }
      chunks.push_back(std::move(chunk));
    }
  }

  VirtualOptions options(int32_t nodes, Admission admission = Admission::kBsp) const {
    VirtualOptions made;
    made.nodes = nodes;
    made.scheme.admission = admission;
    made.model.kernel = "simd";
    made.parameters.rows = kWords;
    made.parameters.dim = 16;
    made.pull.assign(2 * kWords, 5e-3f);  // what row_pulls() would say of so few words
    made.words_min = 1'000;
    made.words_max = 30'000;
    made.epochs = 4;
    made.costs = {.word_s = 1e-4, .row_s = 0, .bytes_per_s = 1e12, .latency_s = 0, .answer_s = 0};
    return made;
  }

  VirtualReport run(const VirtualOptions& options) const {
    auto cluster = VirtualCluster::make(options, chunks, tables);
    EXPECT_TRUE(cluster.ok()) << cluster.status().message();
    const Result<VirtualReport> report = (*cluster)->run();
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? *report : VirtualReport();
  }

  std::vector<Chunk> chunks;
  SamplingTables tables;

 private:
  static SamplingTables make_tables();
};

SamplingTables Text::make_tables() {
  Vocabulary vocabulary;
  for (int64_t i = 0; i < kWords; ++i) vocabulary.add("w" + std::to_string(i), 1'000 - i);
  return SamplingTables(vocabulary, 0);
}

class EveryAdmission : public ::testing::TestWithParam<Admission> {};

TEST_P(EveryAdmission, FreeTalkingLeavesOnlyTheTrainingItself) {
  const Text text;
  for (const int32_t nodes : {1, 2, 4}) {
    const VirtualReport report = text.run(text.options(nodes, GetParam()));
    EXPECT_EQ(report.words, 4 * kChunks * kChunkWords);
    EXPECT_NEAR(report.seconds, 4 * kChunks * kChunkWords * 1e-4 / nodes, 0.01) << nodes;
    EXPECT_GT(report.pushes, nodes);
    EXPECT_EQ(report.bytes > 0, nodes > 1);
  }
}

TEST_P(EveryAdmission, SeveralNodesLearnWhatOneLearns) {
  const Text text;
  const double one = text.run(text.options(1, GetParam())).loss, untrained = 11 * 0.6931;
  EXPECT_LT(one, 0.8 * untrained);
  EXPECT_LT(text.run(text.options(4, GetParam())).loss, 0.5 * (one + untrained));
}

// So that the loss of a cluster of one is what larger ones are held against.
TEST_P(EveryAdmission, OneNodeLearnsAsMuchAsWithoutACluster) {
  const Text text;
  const VirtualOptions options = text.options(1, GetParam());
  auto parameters = Parameters::make(options.parameters);
  ASSERT_TRUE(parameters.ok());
  auto worker = make_model_worker(options.model, *parameters);
  ASSERT_TRUE(worker.ok());
  const int64_t chunks = options.epochs * kChunks;
  double loss = 0, pairs = 0;
  for (int64_t i = 0; i < chunks; ++i) {
    const double done = static_cast<double>(i) / static_cast<double>(chunks);
    Random random(mix(options.seed, static_cast<uint64_t>(i / kChunks), static_cast<uint64_t>(i % kChunks)));
    const StepStats stats = (*worker)->step(text.chunks[static_cast<size_t>(i % kChunks)], text.tables,
                                            static_cast<float>(options.lr * (1 - done)), random);
    if (static_cast<double>(i + 1) <= 0.9 * static_cast<double>(chunks)) continue;
    loss += stats.loss;
    pairs += static_cast<double>(stats.pairs);
  }
  EXPECT_NEAR(text.run(options).loss, loss / pairs, 0.001);
}

INSTANTIATE_TEST_SUITE_P(Schemes, EveryAdmission,
                         ::testing::Values(Admission::kBsp, Admission::kBackup, Admission::kSsp, Admission::kSoftsync,
                                           Admission::kAsync));

TEST(VirtualCluster, TwoRunsAreEqual) {
  const Text text;
  VirtualOptions options = text.options(3, Admission::kAsync);
  options.costs = VirtualCosts();
  const VirtualReport a = text.run(options), b = text.run(options);
  EXPECT_EQ(a.seconds, b.seconds);
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.bytes, b.bytes);
}

TEST(VirtualCluster, WhatComesOutDoesNotDependOnTheThreadsThatRunTheNodes) {
  const Text text;
  for (const Admission admission : {Admission::kBsp, Admission::kSsp, Admission::kAsync}) {
    VirtualOptions options = text.options(6, admission);
    options.costs = VirtualCosts();
    const VirtualReport a = text.run(options);
    options.threads = 4;
    const VirtualReport b = text.run(options);
    EXPECT_EQ(a.seconds, b.seconds);
    EXPECT_EQ(a.loss, b.loss);
    EXPECT_EQ(a.bytes, b.bytes);
    EXPECT_EQ(a.rows_moved, b.rows_moved);
  }
}

TEST(VirtualCluster, NodesThatFindTheirBoundStayInStepWhileAllAreEquallyFast) {
  const Text text;
  VirtualOptions options = text.options(4, Admission::kSsp);
  options.scheme.adaptive = true;
  options.scheme.staleness = 100;  // not theirs: each has its own
  const VirtualReport report = text.run(options);
  EXPECT_EQ(report.words, 4 * kChunks * kChunkWords);
  EXPECT_LE(report.staleness_most, 2);
}

TEST(VirtualCluster, ASlowWireMakesNodesSendFewerBitsWhereTheyFindTheirCodec) {
  const Text text;
  VirtualOptions options = text.options(4);
  options.scheme.codec = CodecKind::kFourBit;
  options.costs.bytes_per_s = 5'000;
  options.epochs = 40;  // pushes enough to look at
  const VirtualReport four_bits = text.run(options);
  options.scheme.finds_codec = true;
  const VirtualReport found = text.run(options);
  EXPECT_LT(found.bytes / found.pushes, four_bits.bytes / four_bits.pushes);
}

TEST(VirtualCluster, NothingIsFasterThanItsWire) {
  const Text text;
  VirtualOptions options = text.options(4);
  options.costs.bytes_per_s = 1'000;
  const VirtualReport report = text.run(options);
  EXPECT_GE(report.seconds, static_cast<double>(report.bytes) / 4 / options.costs.bytes_per_s);
  EXPECT_GT(report.seconds, 1.2 * 4 * kChunks * kChunkWords * 1e-4 / 4);
}

TEST(VirtualCluster, RowsThatTakeTimeAreTakenFromTraining) {
  const Text text;
  VirtualOptions options = text.options(2);
  options.costs.row_s = 1e-4;
  const VirtualReport report = text.run(options);
  const double training_s = 4 * kChunks * kChunkWords * 1e-4 / 2;
  EXPECT_NEAR(report.seconds, training_s + report.talking_s, 0.1 * training_s);
  EXPECT_GT(report.talking_s, 0);
}

}  // namespace
}  // namespace streamvec
