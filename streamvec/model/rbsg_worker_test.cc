#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/core/turns.h"
#include "streamvec/model/model.h"

namespace streamvec {
namespace {

// Text of two kinds of words, those of a kind together.
class Text {
 public:
  Text() {
    for (int i = 0; i < 20; ++i)
      vocabulary.add(std::string(1, static_cast<char>('a' + i)) + (i % 2 ? "less" : "ful"), 50);
    Random random(1);
    for (int sentence = 0; sentence < 100; ++sentence) {
      const auto kind = random.below(2);
      for (int i = 0; i < 10; ++i) chunk.slots.push_back(static_cast<Slot>(2 * random.below(10) + kind));
      chunk.sentence_ends.push_back(static_cast<int32_t>(chunk.slots.size()));
    }
  }
  Vocabulary vocabulary;
  Chunk chunk;
};

Parameters parameters_for(const Vocabulary& vocabulary) {
  Parameters parameters = std::move(Parameters::make({.rows = vocabulary.size(), .dim = 8})).value();
  parameters.rbsg = std::move(Rbsg::make({.dim = 8, .hidden = 16, .character_dim = 6})).value();
  for (Slot slot = 0; slot < vocabulary.size(); ++slot) parameters.set_word(slot, vocabulary.word(slot));
  return parameters;
}

TEST(RbsgWorker, CutsAChunkIntoBatchesOfAboutTheSizeAskedFor) {
  const Text text;
  const SamplingTables tables(text.vocabulary, 0);
  for (const auto& [batch, steps] : {std::pair{100'000, 1.0}, {1'000, 3.0}, {500, 5.0}, {100, 26.0}}) {
    Parameters parameters = parameters_for(text.vocabulary);
    auto worker =
        std::move(make_model_worker({.model = "rbsg", .windows = {.window = 2}, .batch = batch}, parameters)).value();
    Random random(3);
    const StepStats stats = worker->step(text.chunk, tables, 1e-3f, random);
    EXPECT_NEAR(static_cast<double>(stats.pairs), 2600, 150);
    EXPECT_EQ(parameters.rbsg->steps(), steps);
  }
}

// 20,800 pairs.
TEST(RbsgWorker, NodesThatMakeOneStepHaveLargerBatchesUnlessTheSizeIsAskedFor) {
  const Text text;
  Chunk chunk;
  for (int i = 0; i < 8; ++i)
    for (int32_t begin = 0; const int32_t end : text.chunk.sentence_ends) {
      chunk.slots.insert(chunk.slots.end(), text.chunk.slots.begin() + begin, text.chunk.slots.begin() + end);
      chunk.sentence_ends.push_back(static_cast<int32_t>(chunk.slots.size()));
      begin = end;
    }
  const SamplingTables tables(text.vocabulary, 0);
  const auto batches = [&](int64_t asked_for, bool shares) {
    Parameters parameters = parameters_for(text.vocabulary);
    const auto turns = std::make_shared<Turns>(Turns::Options{.always = true});
    if (shares) (void)parameters.rbsg->share_slopes();
    parameters.rbsg->take_turns(turns);
    auto worker =
        std::move(make_model_worker({.model = "rbsg", .windows = {.window = 2}, .batch = asked_for}, parameters))
            .value();
    std::atomic<bool> over = false;
    int count = 0;
    std::thread exchanges([&] {
      while (true) {
        turns->await_step(0.01);
        if (!turns->stepped() && over) return;
        if (!turns->stepped()) continue;
        ++count;
        EXPECT_TRUE(turns->begin_exchange([] { return false; }, [] {}));
        turns->end_exchange([] {});
      }
    });
    Random random(3);
    (void)worker->step(chunk, tables, 1e-3f, random);
    over = true;
    exchanges.join();
    return count;
  };
  EXPECT_EQ(batches(0, false), 3);
  EXPECT_EQ(batches(0, true), 2);
  EXPECT_EQ(batches(8'192, true), 3);
}

TEST(RbsgWorker, LearnsWhichWordsStandTogether) {
  const Text text;
  const SamplingTables tables(text.vocabulary, 0);
  Parameters parameters = parameters_for(text.vocabulary);
  auto worker = std::move(make_model_worker({.model = "rbsg", .windows = {}, .batch = 500}, parameters)).value();
  Random random(3);
  std::vector<double> losses;
  for (int i = 0; i < 30; ++i) {
    const StepStats stats = worker->step(text.chunk, tables, 1e-2f, random);
    EXPECT_EQ(stats.refused, 0);
    losses.push_back(stats.loss / static_cast<double>(stats.pairs));
  }
  EXPECT_LT(losses.back(), losses.front() - 0.3);
}

// Adam's first step changes every value by its rate, a quarter of the model's, so that what it changed tells the rate.
TEST(RbsgWorker, NodesThatStepTogetherWarmUpTogetherAndTakeTheRootOfTheirNumberTimesTheRate) {
  const Text text;
  const SamplingTables tables(text.vocabulary, 0);
  constexpr size_t kBiasPart = 3;
  const auto rate_with = [&](int32_t nodes) {
    Parameters parameters = parameters_for(text.vocabulary);
    ModelOptions options{.model = "rbsg", .windows = {.window = 2}, .batch = 100'000};
    options.nodes = nodes;
    auto worker = std::move(make_model_worker(options, parameters)).value();
    const Matrix before = std::move(parameters.rbsg->shared_tables()[kBiasPart].values->copy()).value();
    Random random(3);
    (void)worker->step(text.chunk, tables, 1e-2f, random);
    float most = 0;
    for (int64_t i = 0; i < before.cols(); ++i)
      most = std::max(most, std::abs(parameters.rbsg->shared_tables()[kBiasPart].values->row(0)[i] - before.row(0)[i]));
    return 4 * most;
  };
  EXPECT_NEAR(rate_with(1), 1e-2 / 100, 1e-5);
  EXPECT_NEAR(rate_with(4), 1e-2 * 4 / 100 * 2, 1e-5);
  EXPECT_NEAR(rate_with(400), 1e-2 * 20, 1e-4);
}

TEST(RbsgWorker, AChunkWithoutPairsTrainsNothing) {
  const Text text;
  const SamplingTables tables(text.vocabulary, 0);
  Parameters parameters = parameters_for(text.vocabulary);
  auto worker = std::move(make_model_worker({.model = "rbsg", .windows = {}}, parameters)).value();
  Random random(3);
  EXPECT_EQ(worker->step({{1, 2}, {1, 2}}, tables, 1e-3f, random).pairs, 0);
  EXPECT_EQ(parameters.rbsg->steps(), 0);
}

TEST(RbsgWorker, OneWorkerUsesAllThreads) {
  EXPECT_EQ(worker_count({.model = "rbsg", .windows = {}, .threads = 8}), 1);
  EXPECT_EQ(worker_count({.model = "sgns", .windows = {}, .threads = 8}), 8);
}

}  // namespace
}  // namespace streamvec
