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

#include "streamvec/source/testing_files.h"
#include "streamvec/train/trainer.h"
#include "streamvec/transport/inproc.h"

namespace streamvec {
namespace {

using ::testing::HasSubstr;

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
  // What is said to a node that is not there yet is said again two seconds later.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
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

}  // namespace
}  // namespace streamvec
