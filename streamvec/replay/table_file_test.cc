#include "streamvec/replay/table_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

#include "streamvec/core/random.h"
#include "streamvec/replay/testing.h"

namespace streamvec {
namespace {

std::string bytes_of(const ReplaySnapshot& snapshot) {
  std::string bytes;
  EXPECT_TRUE(write_replay(snapshot, [&](std::string_view piece) {
                bytes += piece;
                return Status();
              }).ok());
  return bytes;
}

// Inserts, samples, priorities and deletes, all decided by `random`; appends what came out to `log`.
void live(ReplayTable& table, Random& random, int32_t begin, int32_t end, std::vector<std::string>& log) {
  for (int32_t i = begin; i < end; ++i) {
    log.push_back("i" + std::to_string(static_cast<int>(table.insert(item_of(i, random.below(9)), at_once()).code())));
    std::vector<ReplaySample> samples = take(table, random.below(12));
    std::vector<uint64_t> keys;
    std::vector<float> priorities;
    for (const ReplaySample& sample : samples) {
      log.push_back(std::to_string(sample.key) + ":" + std::to_string(number_of(sample)) + ":" +
                    std::to_string(sample.importance) + ":" + std::to_string(sample.times_sampled));
      keys.push_back(sample.key);
      priorities.push_back(random.uniform());
    }
    table.update_priorities(keys, priorities);
    if (random.below(30) == 0) log.push_back("e" + std::to_string(table.erase_record(random.below(9))));
  }
}

ReplayOptions lively(ReplaySelector selector) {
  ReplayOptions options = small(selector, 100, 3);
  options.bytes_max = 60 * item_of(0)->bytes();
  options.half_life = selector == ReplaySelector::kPrioritised ? 5.5 : ForwardDecay::kForever;
  return options;
}

TEST(ReplayFile, SamplingGoesOnBitForBitAfterARestart) {
  for (const ReplaySelector selector :
       {ReplaySelector::kInOrderOnce, ReplaySelector::kUniform, ReplaySelector::kPrioritised}) {
    Random random(3);
    const auto before = table_of(lively(selector));
    std::vector<std::string> log, again;
    live(*before, random, 0, 900, log);
    const std::string bytes = bytes_of(before->snapshot());

    ReplayOptions other_seed = lively(selector);
    other_seed.seed = 77;  // the saved one counts
    const auto after = table_of(other_seed);
    ASSERT_TRUE(after->restore(read_replay(bytes).value()).ok());
    EXPECT_EQ(bytes_of(after->snapshot()), bytes);

    Random same = random;
    log.clear();
    live(*before, random, 900, 2'000, log);
    live(*after, same, 900, 2'000, again);
    EXPECT_EQ(log, again);
    EXPECT_GT(log.size(), 1'500u);
    EXPECT_EQ(bytes_of(before->snapshot()), bytes_of(after->snapshot()));
  }
}

TEST(ReplayFile, ChunksComeBackWhole) {
  const auto table = table_of(small(ReplaySelector::kUniform));
  ASSERT_TRUE(table->insert(item_of(42, 7), at_once()).ok());
  const ReplaySnapshot snapshot = read_replay(bytes_of(table->snapshot())).value();
  ASSERT_EQ(snapshot.held.size(), 1u);
  const ReplayItem& item = *snapshot.held[0].item;
  const ReplayItem original = *item_of(42, 7);
  EXPECT_EQ(item.chunk.slots, original.chunk.slots);
  EXPECT_EQ(item.chunk.sentence_ends, original.chunk.sentence_ends);
  EXPECT_EQ(item.stamp, original.stamp);
  EXPECT_EQ(item.record, original.record);
  EXPECT_EQ(item.source, original.source);
  EXPECT_EQ(item.time_s, original.time_s);
  EXPECT_EQ(item.t, original.t);
}

TEST(ReplayFile, ASnapshotStaysAsItIsWhileTheTableGoesOn) {
  const auto table = table_of(small(ReplaySelector::kUniform, 4, 1));
  insert_numbers(*table, 0, 3);
  const ReplaySnapshot snapshot = table->snapshot();
  const std::string before = bytes_of(snapshot);
  for (int32_t i = 3; i < 20; ++i) {
    take(*table, 3);
    insert_numbers(*table, i, i + 1);
  }
  EXPECT_EQ(bytes_of(snapshot), before);
}

TEST(ReplayFile, EveryTruncationIsDataLoss) {
  const auto table = table_of(small(ReplaySelector::kPrioritised));
  insert_numbers(*table, 0, 3);
  const std::string bytes = bytes_of(table->snapshot());
  for (size_t length = 0; length < bytes.size(); ++length) {
    const auto read = read_replay(std::string_view(bytes).substr(0, length));
    ASSERT_EQ(read.status().code(), Code::kDataLoss) << length;
    EXPECT_NE(read.status().message().find("byte "), std::string::npos);
  }
  EXPECT_EQ(read_replay(bytes + "x").status().code(), Code::kDataLoss);
}

TEST(ReplayFile, FlippedBitsAreDataLossOrGiveATableThatWorks) {
  const auto table = table_of(small(ReplaySelector::kPrioritised));
  insert_numbers(*table, 0, 3);
  take(*table, 5);
  const std::string bytes = bytes_of(table->snapshot());
  int refused = 0;
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    auto snapshot = read_replay(damaged);
    if (!snapshot.ok()) {
      EXPECT_EQ(snapshot.status().code(), Code::kDataLoss);
      ++refused;
      continue;
    }
    const auto restored = table_of(small(ReplaySelector::kPrioritised));
    ASSERT_TRUE(restored->restore(std::move(snapshot).value()).ok());
    (void)restored->insert(item_of(9), at_once());
    take(*restored, 10);
  }
  EXPECT_GT(refused, 100);
}

TEST(ReplayFile, WeightsThatNoTableKeepsAreDataLoss) {
  const auto table = table_of(small(ReplaySelector::kPrioritised));
  insert_numbers(*table, 0, 2);
  ReplaySnapshot snapshot = table->snapshot();
  EXPECT_TRUE(read_replay(bytes_of(snapshot)).ok());
  for (const float weight : {0x1p-140f, 0.0f, -1.0f, 0x1p100f}) {
    snapshot.held[1].weight = weight;
    EXPECT_EQ(read_replay(bytes_of(snapshot)).status().code(), Code::kDataLoss) << weight;
  }
}

TEST(ReplayFile, HugeLengthFieldsTakeNoMemory) {
  const auto table = table_of(small(ReplaySelector::kUniform));
  insert_numbers(*table, 0, 1);
  const std::string bytes = bytes_of(table->snapshot());
  for (size_t at = 0; at + 8 <= bytes.size(); at += 4) {
    std::string damaged = bytes;
    std::memset(damaged.data() + at, 0x7F, 8);
    (void)read_replay(damaged);
  }
}

TEST(ReplayFile, AnErrorOfTheSinkIsReturned) {
  const auto table = table_of(small(ReplaySelector::kUniform));
  const Status status = write_replay(
      table->snapshot(), [](std::string_view) { return error(Code::kResourceExhausted, "the disk is full"); });
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
}

TEST(ReplayFile, ASmallerTableTakesAllAndLetsTheOldestLeaveInTheirTurn) {
  const auto large = table_of(small(ReplaySelector::kUniform, 64, 4));
  for (int32_t i = 0; i < 50; ++i) ASSERT_TRUE(large->insert(item_of(i, static_cast<uint64_t>(i % 2)), at_once()).ok());
  EXPECT_EQ(large->erase_record(1), 25);
  const auto little = table_of(small(ReplaySelector::kUniform, 8, 4));
  ASSERT_TRUE(little->restore(large->snapshot()).ok());
  EXPECT_EQ(little->size(), 25);
  std::set<int32_t> seen;
  for (const ReplaySample& sample : take(*little, 400)) seen.insert(number_of(sample));
  EXPECT_EQ(seen.size(), 25u);
  EXPECT_TRUE(little->insert(item_of(50), at_once()).ok());
  EXPECT_EQ(little->size(), 8);
}

TEST(ReplayFile, AnotherSelectorMayGoOn) {
  const auto uniform = table_of(small(ReplaySelector::kUniform, 64, 4));
  insert_numbers(*uniform, 0, 40);
  take(*uniform, 30);
  const int64_t unsampled = uniform->statistics().unsampled;
  const auto once = table_of(small(ReplaySelector::kInOrderOnce, 64));
  ASSERT_TRUE(once->restore(uniform->snapshot()).ok());
  EXPECT_EQ(once->size(), unsampled);
  EXPECT_EQ(static_cast<int64_t>(take(*once, 1'000).size()), unsampled);
  insert_numbers(*once, 40, 41);
  EXPECT_EQ(take(*once, 10).size(), 1u);
}

TEST(ReplayFile, OnlyAFreshTableIsRestored) {
  const auto table = table_of(small(ReplaySelector::kUniform));
  insert_numbers(*table, 0, 1);
  EXPECT_EQ(table->restore(ReplaySnapshot()).code(), Code::kFailedPrecondition);
}

}  // namespace
}  // namespace streamvec
