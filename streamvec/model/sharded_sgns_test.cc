#include "streamvec/model/sharded_sgns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>

#include "streamvec/model/testing.h"

namespace streamvec {
namespace {

using namespace streamvec::testing;  // NOLINT: the helpers of this folder

constexpr int64_t kShardedDim = 12;

// Planted faults, to see that they are found.
enum class Mistake {
  kNone,
  kTwice,      // a change is added twice
  kDropped,    // one in three is not added
  kOvertaken,  // a question is answered before what was added before it
  kLate,       // it is answered when the answer is waited for: what was added since is in it
};

// Rows at hand that are read when they are asked for, as an owner reads them; what was added since is not in them.
class RowsElsewhere final : public RemoteRows {
 public:
  explicit RowsElsewhere(Parameters& parameters, Mistake mistake = Mistake::kNone)
      : parameters_(parameters), mistake_(mistake) {}
  uint64_t ask(std::span<const uint32_t> rows) override {
    questions_[++asked_].assign(rows.begin(), rows.end());
    if (mistake_ != Mistake::kLate) answer(asked_);
    named_ = std::max(named_, rows.size());
    if (mistake_ == Mistake::kOvertaken) add_waiting();
    return asked_;
  }
  Status await(uint64_t question, std::vector<float>& values) override {
    if (fails_from_ > 0 && question >= fails_from_) return error(Code::kUnavailable, "gone");
    if (mistake_ == Mistake::kLate) answer(question);
    values = answers_.at(question);
    answers_.erase(question);
    return {};
  }
  void add(std::span<const uint32_t> rows, std::span<const float> changes) override {
    ++added_;
    rows_waiting_.assign(rows.begin(), rows.end());
    changes_waiting_.assign(changes.begin(), changes.end());
    if (mistake_ == Mistake::kOvertaken || (mistake_ == Mistake::kDropped && added_ % 3 == 0)) return;
    if (mistake_ == Mistake::kTwice) add_waiting();
    add_waiting();
  }
  void fail_from(uint64_t question) { fails_from_ = question; }
  uint64_t asked() const { return asked_; }
  size_t rows_at_once() const { return named_; }

 private:
  float* row(uint32_t key) {
    Table& table = key % 2 == 0 ? parameters_.input : parameters_.output;
    return table.rows.row(key / 2);
  }
  void answer(uint64_t question) {
    for (const uint32_t key : questions_.at(question))
      answers_[question].insert(answers_[question].end(), row(key), row(key) + kShardedDim);
  }
  void add_waiting() {
    for (size_t i = 0; i < rows_waiting_.size(); ++i)
      for (int64_t k = 0; k < kShardedDim; ++k)
        row(rows_waiting_[i])[k] += changes_waiting_[i * kShardedDim + static_cast<size_t>(k)];
  }
  Parameters& parameters_;
  const Mistake mistake_;
  std::map<uint64_t, std::vector<uint32_t>> questions_;
  std::map<uint64_t, std::vector<float>> answers_;
  std::vector<uint32_t> rows_waiting_;
  std::vector<float> changes_waiting_;
  uint64_t asked_ = 0, added_ = 0, fails_from_ = 0;
  size_t named_ = 0;
};

ShardedOptions sharded_options(int32_t blocks) {
  ShardedOptions options;
  options.model.kernel = "simd";
  options.dim = kShardedDim;
  options.blocks = blocks;
  return options;
}

// How far the rows end from those of a worker that has them all.
float distance_from_one_with_all_rows(int32_t blocks, Mistake mistake = Mistake::kNone) {
  Parameters whole = random_parameters(50, kShardedDim), shared = random_parameters(50, kShardedDim);
  const SamplingTables tables(rarer_and_rarer_words(50), 0, {.pace_max = 8});
  const auto plain = make_worker("sgns", "simd", {}, whole);
  RowsElsewhere elsewhere(shared, mistake);
  const auto sharded = std::move(make_sharded_sgns_worker(sharded_options(blocks), elsewhere)).value();
  for (uint64_t seed = 1; seed < 4; ++seed) {
    const Chunk chunk = random_chunk(50, 700, seed);
    Random random(seed), again(seed);
    const StepStats one = plain->step(chunk, tables, 0.05f, random);
    const StepStats other = sharded->step(chunk, tables, 0.05f, again);
    EXPECT_EQ(one.pairs, other.pairs);
    EXPECT_NEAR(one.loss, other.loss, (mistake == Mistake::kNone ? 1e-4 : 1) * one.loss);
  }
  EXPECT_TRUE(sharded->settle().ok());
  float most = 0;
  for (const auto& [rows, wanted] :
       {std::pair{&shared.input.rows, &whole.input.rows}, std::pair{&shared.output.rows, &whole.output.rows}})
    for (int64_t i = 0; i < 50; ++i)
      for (int64_t k = 0; k < kShardedDim; ++k) most = std::max(most, std::abs(rows->row(i)[k] - wanted->row(i)[k]));
  return most;
}

constexpr float kRounding = 1e-4f;

TEST(ShardedSgns, TakesTheStepsOfTheWorkerThatHasAllRows) {
  for (const int32_t blocks : {1, 3, 1'000}) EXPECT_LT(distance_from_one_with_all_rows(blocks), kRounding) << blocks;
}

// What the test above is worth: with a mistake planted it fails.
TEST(ShardedSgns, MistakesWithRowsThatLieElsewhereAreFound) {
  for (const Mistake mistake : {Mistake::kTwice, Mistake::kDropped, Mistake::kOvertaken, Mistake::kLate})
    EXPECT_GT(distance_from_one_with_all_rows(3, mistake), 10 * kRounding) << static_cast<int>(mistake);
}

TEST(ShardedSgns, AsksForTheRowsOfASectionOnly) {
  Parameters rows = random_parameters(5'000, kShardedDim);
  const SamplingTables tables(equal_words(5'000), 0);
  RowsElsewhere elsewhere(rows);
  const auto worker = std::move(make_sharded_sgns_worker(sharded_options(2), elsewhere)).value();
  Random random(1);
  worker->step(random_chunk(5'000, 2'000, 1), tables, 0.05f, random);
  EXPECT_GT(elsewhere.asked(), 40u);
  EXPECT_LT(elsewhere.rows_at_once(), 400u);
}

TEST(ShardedSgns, SendsTheShareOfAChange) {
  const SamplingTables tables(equal_words(50), 0);
  std::vector<Rows> moved;
  for (const float share : {1.0f, 0.25f}) {
    Parameters rows = random_parameters(50, kShardedDim);
    const Rows before = values_of(rows.input.rows);
    RowsElsewhere elsewhere(rows);
    ShardedOptions options = sharded_options(1'000);  // one section: what it has sent does not come back
    options.share = [&](uint32_t, double trained, double square) {
      EXPECT_GT(trained, 0);
      EXPECT_NEAR(square, kShardedDim / 12.0, 0.6);  // of rows that are uniform in +-0.5, before they have moved
      return share;
    };
    const auto worker = std::move(make_sharded_sgns_worker(options, elsewhere)).value();
    Random random(1);
    worker->step(random_chunk(50, 300, 1), tables, 0.01f, random);
    Rows change = values_of(rows.input.rows);
    for (size_t i = 0; i < change.size(); ++i) add(-1, before[i], change[i]);
    moved.push_back(std::move(change));
  }
  for (size_t i = 0; i < moved[0].size(); ++i)
    for (size_t k = 0; k < kShardedDim; ++k) EXPECT_NEAR(moved[1][i][k], 0.25 * moved[0][i][k], 1e-6);
}

TEST(ShardedSgns, RowsThatNeverComeEndItWithTheirError) {
  Parameters rows = random_parameters(50, kShardedDim);
  const SamplingTables tables(equal_words(50), 0);
  RowsElsewhere elsewhere(rows);
  elsewhere.fail_from(2);
  const auto worker = std::move(make_sharded_sgns_worker(sharded_options(1), elsewhere)).value();
  Random random(1);
  worker->step(random_chunk(50, 300, 1), tables, 0.05f, random);
  EXPECT_TRUE(worker->failed());
  EXPECT_EQ(worker->settle().status().code(), Code::kUnavailable);
  const uint64_t asked = elsewhere.asked();
  EXPECT_EQ(worker->step(random_chunk(50, 300, 1), tables, 0.05f, random).pairs, 0);
  EXPECT_EQ(elsewhere.asked(), asked);
}

}  // namespace
}  // namespace streamvec
