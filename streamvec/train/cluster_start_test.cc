// What nodes compare before they begin, each a thread of its own.
#include "streamvec/train/cluster_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "streamvec/model/hybrid.h"
#include "streamvec/source/testing_files.h"
#include "streamvec/train/checkpoint.h"
#include "streamvec/train/hybrid_state.h"
#include "streamvec/train/trainer.h"
#include "streamvec/transport/inproc.h"

namespace streamvec {
namespace {

using ::testing::HasSubstr;

// What is said to a node that is not there yet is said again two seconds later.
constexpr std::chrono::milliseconds kUntilItListens(50);

// What a second node is told whose options differ; the first waits for another until it is to stop.
Status second_with(bool stream, const std::function<void(TrainOptions&)>& change) {
  InprocNetwork network;
  const TemporaryDirectory directory;
  const std::string text = directory.path() + "/text.txt";
  for (std::ofstream file(text); file.tellp() < 4'000;) file << "some words come again and again\n";
  std::atomic<bool> stop = false;
  const auto run = [&](int32_t rank) {
    TrainOptions options;
    options.dim = 8;
    options.threads = 1;
    options.vocab_max = 100;
    options.lr = 0.1;
    options.stream.on = stream;
    options.cluster.nodes = {"a thread", "another"};
    options.cluster.network = &network;
    options.cluster.rank = rank;
    if (rank > 0) change(options);
    TrainHooks hooks;
    hooks.stop = &stop;
    return train(options, {text}, directory.path() + "/model", hooks).status();
  };
  std::thread first([&] { (void)run(0); });
  std::this_thread::sleep_for(kUntilItListens);
  const Status told = run(1);
  stop = true;
  first.join();
  return told;
}

void expect_refused(bool stream, const std::string& there, const std::string& here,
                    const std::function<void(TrainOptions&)>& change) {
  const Status told = second_with(stream, change);
  EXPECT_EQ(told.code(), Code::kFailedPrecondition) << there;
  EXPECT_THAT(told.message(), HasSubstr("node 2 has " + there + ", node 1 has " + here + "; give all nodes"));
}

class NodesOf : public ::testing::TestWithParam<bool> {};

TEST_P(NodesOf, OneTextHaveToAgreeOnWhoOwnsRowsAndHowTheyStep) {
  const bool stream = GetParam();
  expect_refused(stream, "--servers 1", "--servers 0", [](TrainOptions& options) { options.cluster.servers = 1; });
  expect_refused(stream, "3 nodes", "2 nodes",
                 [](TrainOptions& options) { options.cluster.nodes.push_back("a third"); });
  expect_refused(stream, "--optimizer adagrad, --sample 0.0020000000001", "--optimizer sgd, --sample 0.002",
                 [](TrainOptions& options) { options.optimizer = "adagrad", options.sample = 0.0020000000001; });
}

INSTANTIATE_TEST_SUITE_P(FilesAndStreams, NodesOf, ::testing::Values(false, true));

TEST(NodesOfAStream, HaveToAgreeOnHowItsWordsAreMadeAndFade) {
  expect_refused(true, "--lr 0.5, --min-count 50, --half-life 5000, --keep-case, --stem english",
                 "--lr 0.1, --min-count 3, --half-life never, no --keep-case, --stem none", [](TrainOptions& options) {
                   options.lr = 0.5;
                   options.min_count = 50;
                   options.stream.half_life.value = 5'000;
                   options.tokenizer.fold_case = false;
                   options.stem = "english";
                 });
}

// They may have different checkpoints of one run.
TEST(NodesThatBegin, HaveToAgreeOnWhatIsFinished) {
  const TrainOptions options;
  TrainingStart one, other;
  one.state.finished_ahead = {{1, 3}, {5, 6}};
  other.state.finished_ahead = {{1, 2}, {4, 6}};
  EXPECT_NE(cluster_fingerprint(options, one), cluster_fingerprint(options, other));
  EXPECT_EQ(vocabulary_fingerprint(options, one), vocabulary_fingerprint(options, other)) << "one may join later";
  other.state = one.state;
  EXPECT_EQ(cluster_fingerprint(options, one), cluster_fingerprint(options, other));
  other.state.step = 1;
  EXPECT_NE(cluster_fingerprint(options, one), cluster_fingerprint(options, other));
}

// How often words were met, as the newest checkpoint of a hybrid model has it.
int64_t met_in(const std::string& model) {
  Checkpoint made = std::move(load_checkpoint(model)).value();
  const auto hybrid = Hybrid::restore(made.extra[kHybridFile], model, made.vocabulary.size(),
                                      made.optimizer[kHybridNgrams].view(), made.optimizer[kHybridDuals].view());
  int64_t met = 0;
  for (Slot slot = 0; slot < made.vocabulary.size(); ++slot) met += hybrid.value()->met(slot);
  return met;
}

TEST(NodesThatGoOn, CountOnceHowOftenWordsWereMetBefore) {
  const TemporaryDirectory directory;
  const std::string text = directory.path() + "/text.txt", model = directory.path() + "/model";
  for (std::ofstream file(text); file.tellp() < 4'000;) file << "some words come again and again\n";
  std::vector<int64_t> met;
  for (int run = 0; run < 2; ++run) {
    InprocNetwork network;
    std::vector<std::thread> nodes;
    for (int32_t rank = 0; rank < 2; ++rank) {
      nodes.emplace_back([&, rank] {
        TrainOptions options;
        options.model = "hybrid";
        options.dim = 8;
        options.threads = 1;
        options.sample = 0;
        options.cluster.nodes = {"a thread", "another"};
        options.cluster.network = &network;
        options.cluster.rank = rank;
        const auto trained = train(options, {text}, model, {});
        EXPECT_TRUE(trained.ok()) << trained.status().message();
      });
      std::this_thread::sleep_for(kUntilItListens);
    }
    for (std::thread& node : nodes) node.join();
    met.push_back(met_in(model));
  }
  EXPECT_GT(met[0], 0);
  EXPECT_EQ(met[1], 2 * met[0]);
}

}  // namespace
}  // namespace streamvec
