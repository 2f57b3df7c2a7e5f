#include "streamvec/model/columns_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <thread>

#include "streamvec/model/testing.h"
#include "streamvec/model/workers.h"

namespace streamvec {
namespace {

using namespace streamvec::testing;  // NOLINT: the helpers of this folder

// Adds up what nodes, which are threads, bring.
class SumOfThreads {
 public:
  explicit SumOfThreads(int32_t nodes) : brought_(static_cast<size_t>(nodes)), all_(nodes) {}
  Status sum(size_t node, std::span<float> values) {
    brought_[node].assign(values.begin(), values.end());
    all_.arrive_and_wait();
    std::fill(values.begin(), values.end(), 0.0f);
    for (const std::vector<float>& each : brought_)
      for (size_t i = 0; i < values.size(); ++i) values[i] += each[i];
    all_.arrive_and_wait();
    return {};
  }

 private:
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

TEST(ColumnsKernel, NodesWithSomeColumnsTakeTheStepsOfOneThatHasAll) {
  const std::vector<int64_t> cuts = {0, 7, 24, 40};
  // Rates at which steps are cut, and at which they are not; one block at a time, and batches, whose rows are cut each
  // by how often they are named.
  for (const auto& [lr, batch] : {std::pair{0.01f, 0}, {0.5f, 0}, {0.5f, 200}}) {
    Parameters whole = random_parameters(60, 40);
    std::vector<Parameters> parts;
    for (size_t i = 0; i + 1 < cuts.size(); ++i) parts.push_back(some_columns(whole, cuts[i], cuts[i + 1]));
    const SamplingTables tables(rarer_and_rarer_words(60), 0, {.pace_max = 8});
    const Chunk chunk = random_chunk(60, 600, 1);
    Random random(1);
    const StepStats wanted =
        make_sgns_worker({}, batch, whole, make_simd_pair_kernel())->step(chunk, tables, lr, random);
    SumOfThreads sums(static_cast<int32_t>(parts.size()));
    std::vector<std::thread> nodes;
    for (size_t node = 0; node < parts.size(); ++node)
      nodes.emplace_back([&, node] {
        const auto worker = make_sgns_worker(
            {}, batch, parts[node],
            std::make_unique<ColumnsPairKernel>([&](std::span<float> values) { return sums.sum(node, values); }));
        Random again(1);
        const StepStats stats = worker->step(chunk, tables, lr, again);
        EXPECT_EQ(stats.pairs, wanted.pairs);
        EXPECT_NEAR(stats.loss, wanted.loss, 1e-4 * wanted.loss);
        EXPECT_NEAR(stats.slope, wanted.slope, 1e-4 * wanted.slope);
      });
    for (std::thread& node : nodes) node.join();
    for (size_t node = 0; node < parts.size(); ++node)
      for (int64_t row = 0; row < 60; ++row)
        for (int64_t k = cuts[node]; k < cuts[node + 1]; ++k) {
          ASSERT_NEAR(parts[node].input.rows.row(row)[k - cuts[node]], whole.input.rows.row(row)[k], 2e-4) << lr;
          ASSERT_NEAR(parts[node].output.rows.row(row)[k - cuts[node]], whole.output.rows.row(row)[k], 2e-4) << lr;
        }
  }
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
