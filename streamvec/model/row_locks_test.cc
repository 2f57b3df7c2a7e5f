#include "streamvec/model/row_locks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "streamvec/kernel/pair_block.h"
#include "streamvec/model/testing.h"

namespace streamvec {
namespace {

using namespace streamvec::testing;  // NOLINT: the helpers of this folder

struct Setting {
  std::string model, kernel;
  OptimizerKind optimizer;
};

std::vector<Setting> every_setting() {
  std::vector<Setting> settings;
  for (const char* model : {"sgns", "cbow"})
    for (const std::string& kernel : pair_kernels_available())
      for (const OptimizerKind optimizer : {OptimizerKind::kSgd, OptimizerKind::kAdagrad, OptimizerKind::kAdam})
        settings.push_back({model, kernel, optimizer});
  return settings;
}

// Ordinary builds race on rows by design; the tsan preset locks them, and then this test must be free of reports.
TEST(RowLocks, TwoThreadsTrainOnTheSameRows) {
  const SamplingTables tables(equal_words(kPlantedWords), 0);
  for (const Setting& setting : every_setting()) {
    Parameters parameters =
        std::move(Parameters::make({.rows = kPlantedWords, .dim = 20, .optimizer = setting.optimizer})).value();
    double losses[2] = {};
    const auto train = [&](uint64_t thread) {
      const auto worker = make_worker(setting.model, setting.kernel, {.negatives = 5}, parameters);
      for (uint64_t round = 0; round < 30; ++round) {
        Random random(mix(thread, round));
        const float lr = setting.optimizer == OptimizerKind::kAdam ? 0.01f : 0.05f;
        const StepStats stats = worker->step(planted_chunk(mix(thread, round), 20), tables, lr, random);
        losses[thread] = stats.loss / static_cast<double>(stats.pairs);
      }
    };
    std::thread other(train, 1);
    train(0);
    other.join();
    for (const double loss : losses)
      EXPECT_LT(loss, 6 * std::log(2.0) - 0.05)
          << setting.model << " " << setting.kernel << " " << optimizer_name(setting.optimizer);
  }
}

TEST(RowLocks, TwoThreadsTrainInBlocksOfManyRows) {
  constexpr int32_t kWords = 1'000;  // a block has a hundred rows and more
  const SamplingTables tables(equal_words(kWords), 0);
  for (const char* model : {"sgns", "cbow"}) {
    Parameters parameters = random_parameters(kWords, 20);
    int64_t pairs[2] = {};
    const auto train = [&](uint64_t thread) {
      Random random(thread);
      pairs[thread] = make_worker(model, "simd", {}, parameters)
                          ->step(random_chunk(kWords, 2'000, thread), tables, 0.01f, random)
                          .pairs;
    };
    std::thread other(train, 1);
    train(0);
    other.join();
    EXPECT_GT(pairs[0], 1'000) << model;
    EXPECT_GT(pairs[1], 1'000) << model;
  }
}

#ifdef STREAMVEC_ROW_LOCKS
TEST(RowLocks, AGuardKeepsOthersFromItsRowsInBothTables) {
  RowLocks locks;
  int64_t input = 0, output = 0;
  const std::vector<Slot> rows{5, 3, 5}, crossed{3, 900, 5};  // a row twice; another order; a shared stripe
  const auto count = [&](const std::vector<Slot>& inputs, const std::vector<Slot>& outputs) {
    for (int i = 0; i < 10'000; ++i) {
      const RowLocks::Guard guard(locks, inputs, outputs);
      ++input;
      ++output;
    }
  };
  std::thread other([&] { count(crossed, rows); });
  count(rows, crossed);
  other.join();
  EXPECT_EQ(input, 20'000);
  EXPECT_EQ(output, 20'000);
}
#endif

}  // namespace
}  // namespace streamvec
