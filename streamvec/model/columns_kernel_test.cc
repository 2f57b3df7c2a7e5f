#include "streamvec/model/columns_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <thread>

#include "streamvec/model/testing.h"
#include "streamvec/model/workers.h"

namespace streamvec {
namespace {

using namespace streamvec::testing;  // NOLINT: the helpers of this folder

// How often the part that a node brings is in the sum that one gets: once, if no fault is planted.
using TimesInSum = std::function<float(size_t part, size_t node)>;

float once(size_t /*part*/, size_t /*node*/) {
  return 1;
}

// Adds up what nodes, which are threads, bring.
class SumOfThreads {
 public:
  SumOfThreads(int32_t nodes, TimesInSum times)
      : times_(std::move(times)), brought_(static_cast<size_t>(nodes)), all_(nodes) {}
  Status sum(size_t node, std::span<float> values) {
    brought_[node].assign(values.begin(), values.end());
    all_.arrive_and_wait();
    std::fill(values.begin(), values.end(), 0.0f);
    for (size_t part = 0; part < brought_.size(); ++part)
      for (size_t i = 0; i < values.size(); ++i) values[i] += times_(part, node) * brought_[part][i];
    all_.arrive_and_wait();
    return {};
  }

 private:
  const TimesInSum times_;
  std::vector<std::vector<float>> brought_;
  std::barrier<> all_;
};

// Columns begin .. end of whole rows.
Parameters some_columns(Parameters& whole, int64_t begin, int64_t end) {
  Parameters some = random_parameters(whole.rows(), end - begin);
  for (int64_t row = 0; row < whole.rows(); ++row) {
    std::copy_n(whole.input.rows.row(row) + begin, end - begin, some.input.rows.row(row));
    std::copy_n(whole.output.rows.row(row) + begin, end - begin, some.output.rows.row(row));
  }
  return some;
}

// How far the columns of three nodes end from those of one that has all, and their losses, as a share.
struct Distance {
  float values = 0;
  double losses = 0;
};
Distance distance_from_one_with_all_columns(float lr, int32_t batch, const TimesInSum& times) {
  const std::vector<int64_t> cuts = {0, 7, 24, 40};
  Parameters whole = random_parameters(60, 40);
  std::vector<Parameters> parts;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) parts.push_back(some_columns(whole, cuts[i], cuts[i + 1]));
  const SamplingTables tables(rarer_and_rarer_words(60), 0, {.pace_max = 8});
  const Chunk chunk = random_chunk(60, 600, 1);
  Random random(1);
  const StepStats wanted = make_sgns_worker({}, batch, whole, make_simd_pair_kernel())->step(chunk, tables, lr, random);
  SumOfThreads sums(static_cast<int32_t>(parts.size()), times);
  std::vector<StepStats> stats(parts.size());
  std::vector<std::thread> nodes;
  for (size_t node = 0; node < parts.size(); ++node)
    nodes.emplace_back([&, node] {
      const auto worker = make_sgns_worker(
          {}, batch, parts[node],
          std::make_unique<ColumnsPairKernel>([&](std::span<float> values) { return sums.sum(node, values); }));
      Random again(1);
      stats[node] = worker->step(chunk, tables, lr, again);
    });
  for (std::thread& node : nodes) node.join();
  Distance distance;
  for (size_t node = 0; node < parts.size(); ++node) {
    EXPECT_EQ(stats[node].pairs, wanted.pairs);
    distance.losses = std::max({distance.losses, std::abs(stats[node].loss / wanted.loss - 1),
                                std::abs(stats[node].slope / wanted.slope - 1)});
    for (const auto& [some, all] : {std::pair{&parts[node].input.rows, &whole.input.rows},
                                    std::pair{&parts[node].output.rows, &whole.output.rows}})
      for (int64_t row = 0; row < 60; ++row)
        for (int64_t k = cuts[node]; k < cuts[node + 1]; ++k)
          distance.values = std::max(distance.values, std::abs(some->row(row)[k - cuts[node]] - all->row(row)[k]));
  }
  return distance;
}

// Rates at which steps are cut, and at which they are not; one block at a time, and batches, whose rows are cut each by
// how often they are named.
TEST(ColumnsKernel, NodesWithSomeColumnsTakeTheStepsOfOneThatHasAll) {
  for (const auto& [lr, batch] : {std::pair{0.01f, 0}, {0.5f, 0}, {0.5f, 200}}) {
    const Distance distance = distance_from_one_with_all_columns(lr, batch, once);
    EXPECT_LT(distance.values, 2e-4f) << lr;
    EXPECT_LT(distance.losses, 1e-4) << lr;
  }
}

// What the test above is worth.
TEST(ColumnsKernel, PartsThatAreLeftOutOfASumOrInItTwiceOrNotOnAllNodesAreFound) {
  const auto found = [](const TimesInSum& times) {
    return distance_from_one_with_all_columns(0.5f, 0, times).values > 2e-3f;
  };
  EXPECT_TRUE(found([](size_t part, size_t) { return part == 2 ? 0.0f : 1.0f; }));
  EXPECT_TRUE(found([](size_t part, size_t) { return part == 2 ? 2.0f : 1.0f; }));
  EXPECT_TRUE(found([](size_t part, size_t node) { return node == 1 && part != 1 ? 0.0f : 1.0f; }));
}

TEST(ColumnsKernel, NothingChangesOnceTheOthersAreGone) {
  Parameters rows = random_parameters(60, 8);
  const Rows before = values_of(rows.input.rows);
  auto kernel = std::make_unique<ColumnsPairKernel>(
      [](std::span<float>) { return error(Code::kDeadlineExceeded, "the ring broke"); });
  const ColumnsPairKernel& status_of = *kernel;
  const auto worker = make_sgns_worker({}, 0, rows, std::move(kernel));
  Random random(1);
  EXPECT_EQ(worker->step(random_chunk(60, 600, 1), SamplingTables(equal_words(60), 0), 0.05f, random).pairs, 0);
  EXPECT_EQ(status_of.status().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(values_of(rows.input.rows), before);
}

TEST(ColumnsKernel, ARowThatIsNoNumberIsRefusedByAllNodes) {
  Parameters rows = random_parameters(60, 8);
  rows.input.rows.row(3)[2] = NAN;
  const auto worker =
      make_sgns_worker({}, 0, rows, std::make_unique<ColumnsPairKernel>([](std::span<float>) { return Status(); }));
  Random random(1);
  const StepStats stats = worker->step(random_chunk(60, 600, 1), SamplingTables(equal_words(60), 0), 0.05f, random);
  EXPECT_GT(stats.refused, 0);
  for (int64_t row = 0; row < 60; ++row)
    for (int64_t k = 0; k < 8; ++k) EXPECT_FALSE(row != 3 && std::isnan(rows.input.rows.row(row)[k]));
}

}  // namespace
}  // namespace streamvec
