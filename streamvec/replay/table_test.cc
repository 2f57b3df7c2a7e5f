#include "streamvec/replay/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <thread>

#include "streamvec/replay/testing.h"

namespace streamvec {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<int32_t> numbers_of(const std::vector<ReplaySample>& samples) {
  std::vector<int32_t> numbers;
  for (const ReplaySample& sample : samples) numbers.push_back(number_of(sample));
  return numbers;
}

TEST(ReplayTable, InOrderOnceHandsOutEveryChunkExactlyOnceInOrder) {
  const auto table = table_of(small(ReplaySelector::kInOrderOnce, 100));
  std::vector<int32_t> seen;
  for (int32_t i = 0; i < 1'000; i += 10) {
    insert_numbers(*table, i, i + 10);
    for (const int32_t number : numbers_of(take(*table, 7 + i % 9))) seen.push_back(number);
  }
  table->finish();
  for (const int32_t number : numbers_of(take(*table, 1'000))) seen.push_back(number);
  ASSERT_EQ(seen.size(), 1'000u);
  for (int32_t i = 0; i < 1'000; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)], i);
  EXPECT_EQ(table->size(), 0);
  std::vector<ReplaySample> none;
  EXPECT_EQ(table->sample(1, Deadline::never(), none).value(), 0);
  EXPECT_THAT(none, IsEmpty());
}

TEST(ReplayTable, InOrderOnceWaitsWithInsertingWhenItIsFull) {
  const auto table = table_of(small(ReplaySelector::kInOrderOnce, 4));
  insert_numbers(*table, 0, 4);
  EXPECT_EQ(table->insert(item_of(4), at_once()).code(), Code::kDeadlineExceeded);
  EXPECT_THAT(numbers_of(take(*table, 1)), ElementsAre(0));
  EXPECT_TRUE(table->insert(item_of(4), at_once()).ok());
  EXPECT_THAT(numbers_of(take(*table, 9)), ElementsAre(1, 2, 3, 4));
}

TEST(ReplayTable, UniformDrawsEveryChunkEquallyOften) {
  auto options = small(ReplaySelector::kUniform, 16, 100'000);
  options.in_order_share = 0;
  const auto table = table_of(options);
  insert_numbers(*table, 0, 10);
  std::map<int32_t, int> drawn;
  for (const int32_t number : numbers_of(take(*table, 50'000))) ++drawn[number];
  for (int32_t i = 0; i < 10; ++i) EXPECT_NEAR(drawn[i], 5'000, 5 * std::sqrt(5'000.0)) << i;
}

TEST(ReplayTable, PrioritisedDrawsInProportionAndSaysWhatADrawCountsFor) {
  auto options = small(ReplaySelector::kPrioritised, 16, 100'000);
  options.in_order_share = 0;
  options.alpha = 1;
  options.beta = 1;
  const auto table = table_of(options);
  insert_numbers(*table, 0, 4);
  table->update_priorities(std::vector<uint64_t>{0, 1, 2, 3}, std::vector<float>{1, 2, 3, 4});
  std::map<int32_t, double> drawn, counted;
  for (const ReplaySample& sample : take(*table, 50'000)) {
    drawn[number_of(sample)] += 1;
    counted[number_of(sample)] += sample.importance;
  }
  for (int32_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(drawn[i], 5'000 * (i + 1), 5 * std::sqrt(5'000.0 * (i + 1))) << i;
    EXPECT_NEAR(counted[i], 5'000, 400) << i;
  }
}

TEST(ReplayTable, EveryChunkIsSeenWhateverTheSelectorAndTheRatio) {
  for (const ReplaySelector selector : {ReplaySelector::kUniform, ReplaySelector::kPrioritised})
    for (const double ratio : {1.0, 1.3, 2.0, 4.0, 20.0}) {
      const auto table = table_of(small(selector, 32, ratio));
      std::set<int32_t> seen;
      for (int32_t i = 0; i < 2'000; ++i) {
        while (!table->insert(item_of(i), at_once()).ok())
          for (const ReplaySample& sample : take(*table, 3)) seen.insert(number_of(sample));
        if (i % 2 == 0)
          for (const ReplaySample& sample : take(*table, 5)) {
            seen.insert(number_of(sample));
            table->update_priorities(std::vector{sample.key}, std::vector{static_cast<float>(number_of(sample) % 7)});
          }
      }
      table->finish();
      for (const ReplaySample& sample : take(*table, 1'000'000)) seen.insert(number_of(sample));
      EXPECT_EQ(seen.size(), 2'000u) << ratio;
      const auto statistics = table->statistics();
      EXPECT_EQ(statistics.evicted_unsampled, 0);
      EXPECT_EQ(statistics.unsampled, 0);
      EXPECT_NEAR(static_cast<double>(statistics.sampled), 2'000 * ratio, 1.0 + 0.02 * 2'000);
    }
}

TEST(ReplayTable, TimesSampledCountsFromTheFirst) {
  const auto table = table_of(small(ReplaySelector::kUniform, 8, 10));
  insert_numbers(*table, 0, 3);
  std::map<int32_t, uint32_t> times;
  for (const ReplaySample& sample : take(*table, 30)) EXPECT_EQ(sample.times_sampled, times[number_of(sample)]++);
}

TEST(ReplayTable, AtLeastTheShareIsInOrderWhileThereIsSomethingNew) {
  auto options = small(ReplaySelector::kUniform, 1'024, 4);
  options.in_order_share = 0.5;
  const auto table = table_of(options);
  insert_numbers(*table, 0, 1'000);
  std::set<int32_t> unseen;
  for (int32_t i = 0; i < 1'000; ++i) unseen.insert(i);
  int in_order = 0;
  for (const ReplaySample& sample : take(*table, 400)) {
    in_order += number_of(sample) == *unseen.begin();
    unseen.erase(number_of(sample));
  }
  EXPECT_NEAR(in_order, 200, 3);
}

TEST(ReplayTable, TheOldestLeavesWhenThereIsNoRoom) {
  const auto table = table_of(small(ReplaySelector::kUniform, 4, 1));
  for (int32_t i = 0; i < 100; ++i) {
    insert_numbers(*table, i, i + 1);
    EXPECT_THAT(numbers_of(take(*table, 5)), ElementsAre(i));
  }
  const ReplaySnapshot snapshot = table->snapshot();
  ASSERT_EQ(snapshot.held.size(), 4u);
  EXPECT_EQ(snapshot.held[0].key, 96u);
  EXPECT_EQ(table->statistics().evicted, 96);
}

TEST(ReplayTable, AChunkNotYetSampledIsNotPushedOut) {
  auto options = small(ReplaySelector::kUniform, 4, 2);
  const auto table = table_of(options);
  insert_numbers(*table, 0, 4);
  EXPECT_EQ(table->insert(item_of(4), at_once()).code(), Code::kDeadlineExceeded);
  EXPECT_EQ(table->size(), 4);
  EXPECT_THAT(numbers_of(take(*table, 1)), ElementsAre(0));
  EXPECT_TRUE(table->insert(item_of(4), at_once()).ok());
  EXPECT_EQ(table->statistics().evicted_unsampled, 0);
}

TEST(ReplayTable, WithoutAShareInOrderUnseenChunksLeaveAndAreCounted) {
  auto options = small(ReplaySelector::kUniform, 4, 0.5);
  options.in_order_share = 0;
  const auto table = table_of(options);
  insert_numbers(*table, 0, 10);
  EXPECT_EQ(table->statistics().evicted, 6);
  EXPECT_EQ(table->statistics().evicted_unsampled, 6);
}

TEST(ReplayTable, BytesAreBoundedToo) {
  auto options = small(ReplaySelector::kUniform, 1'000, 1);
  options.bytes_max = 10 * item_of(0, 0, 100)->bytes();
  const auto table = table_of(options);
  for (int32_t i = 0; i < 50; ++i) {
    ASSERT_TRUE(table->insert(item_of(i, 0, 100), at_once()).ok());
    EXPECT_EQ(take(*table, 1).size(), 1u);
    EXPECT_LE(table->statistics().bytes, options.bytes_max);
  }
  EXPECT_EQ(table->size(), 10);
  EXPECT_TRUE(table->insert(item_of(50, 0, 100'000), at_once()).ok()) << "one larger than all is held alone";
  EXPECT_EQ(table->size(), 1);
}

TEST(ReplayTable, SamplesBelongToTheirReaderWhenTheChunkHasLeft) {
  const auto table = table_of(small(ReplaySelector::kUniform, 2, 1));
  insert_numbers(*table, 0, 1);
  const std::vector<ReplaySample> kept = take(*table, 1);
  for (int32_t i = 1; i < 10; ++i) {
    insert_numbers(*table, i, i + 1);
    take(*table, 1);
  }
  EXPECT_EQ(number_of(kept[0]), 0);
  EXPECT_EQ(kept[0].item.use_count(), 1);
  const ReplaySnapshot before = table->snapshot();
  table->update_priorities(std::vector<uint64_t>{kept[0].key, 12'345}, std::vector<float>{5, 5});
  EXPECT_EQ(table->statistics().priorities_refused, 0);
}

TEST(ReplayTable, BadPrioritiesAreRefusedAndCounted) {
  const auto table = table_of(small(ReplaySelector::kPrioritised));
  insert_numbers(*table, 0, 2);
  table->update_priorities(std::vector<uint64_t>{0, 1, 0, 1}, std::vector<float>{NAN, INFINITY, -1, 2});
  EXPECT_EQ(table->statistics().priorities_refused, 3);
}

TEST(ReplayTable, ARecordsDeleteTakesItsChunksOutAndNoOthers) {
  for (const ReplaySelector selector :
       {ReplaySelector::kInOrderOnce, ReplaySelector::kUniform, ReplaySelector::kPrioritised}) {
    const auto table = table_of(small(selector, 64, 50));
    for (int32_t i = 0; i < 40; ++i)
      ASSERT_TRUE(table->insert(item_of(i, static_cast<uint64_t>(i % 4)), at_once()).ok());
    EXPECT_EQ(table->erase_record(3), 10);
    EXPECT_EQ(table->erase_record(3), 0);
    EXPECT_EQ(table->erase_record(77), 0);
    EXPECT_EQ(table->erase_record(0), 0) << "0 names no record";
    EXPECT_EQ(table->size(), 30);
    for (const ReplaySample& sample : take(*table, 200)) EXPECT_NE(number_of(sample) % 4, 3);
    EXPECT_EQ(table->statistics().erased, 10);
  }
}

TEST(ReplayTable, ARecordWrittenAnewAfterItsDeleteIsKept) {
  const auto table = table_of(small(ReplaySelector::kUniform));
  ASSERT_TRUE(table->insert(item_of(1, 9), at_once()).ok());
  EXPECT_EQ(table->erase_record(9), 1);
  ASSERT_TRUE(table->insert(item_of(2, 9), at_once()).ok());
  EXPECT_EQ(table->size(), 1);
  EXPECT_EQ(table->erase_record(9), 1);
  EXPECT_EQ(table->size(), 0);
}

TEST(ReplayTable, ADeleteFindsWhatIsLeftOfARecordThatIsLeaving) {
  const auto table = table_of(small(ReplaySelector::kUniform, 4, 1));
  for (int32_t i = 0; i < 6; ++i) {
    ASSERT_TRUE(table->insert(item_of(i, 9), at_once()).ok());
    take(*table, 1);
  }
  EXPECT_EQ(table->erase_record(9), 4);
  EXPECT_EQ(table->size(), 0);
}

TEST(ReplayTable, DeletesDoNotBringItToAHalt) {
  auto options = small(ReplaySelector::kUniform, 64, 4);
  options.limiter = {.samples_per_insert = 4, .size_min = 16, .inserts_ahead_max = 32};
  const auto table = table_of(options);
  for (int32_t round = 0; round < 200; ++round) {
    const bool inserted = table->insert(item_of(round, 1 + static_cast<uint64_t>(round % 3)), at_once()).ok();
    const bool sampled = !take(*table, 1 + round % 5).empty();
    ASSERT_TRUE(inserted || sampled) << round;
    if (round % 7 == 0) table->erase_record(1 + static_cast<uint64_t>(round % 3));
  }
}

TEST(ReplayTable, SamplingGoesOnBeforeSizeMinWhenBytesHaveRunOut) {
  auto options = small(ReplaySelector::kUniform, 1'000, 2);
  options.limiter.size_min = 500;
  options.bytes_max = 10 * item_of(0)->bytes();
  const auto table = table_of(options);
  insert_numbers(*table, 0, 10);
  EXPECT_THAT(take(*table, 1), IsEmpty());
  EXPECT_FALSE(table->insert(item_of(10), at_once()).ok());
  EXPECT_THAT(numbers_of(take(*table, 5)), ElementsAre(0));
  EXPECT_TRUE(table->insert(item_of(10), at_once()).ok());
}

TEST(ReplayTable, FinishOnAnEmptyTableIsTheEnd) {
  const auto table = table_of(small(ReplaySelector::kUniform));
  ASSERT_TRUE(table->insert(item_of(1, 9), at_once()).ok());
  table->erase_record(9);
  table->finish();
  std::vector<ReplaySample> samples;
  EXPECT_EQ(table->sample(4, Deadline::never(), samples).value(), 0);
  EXPECT_EQ(table->insert(item_of(2), Deadline::never()).code(), Code::kFailedPrecondition);
}

TEST(ReplayTable, OneSeedGivesOneResult) {
  std::vector<std::vector<int32_t>> runs;
  for (const uint64_t seed : {1u, 1u, 2u}) {
    auto options = small(ReplaySelector::kPrioritised, 64, 8);
    options.seed = seed;
    const auto table = table_of(options);
    insert_numbers(*table, 0, 50);
    runs.push_back(numbers_of(take(*table, 300)));
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_NE(runs[0], runs[2]);
}

TEST(ReplayTable, BatchSizesDoNotChangeWhatIsDrawn) {
  std::vector<std::vector<int32_t>> runs;
  for (const int64_t batch : {1, 7, 500}) {
    const auto table = table_of(small(ReplaySelector::kUniform, 64, 8));
    insert_numbers(*table, 0, 50);
    runs.emplace_back();
    while (runs.back().size() < 350)
      for (const int32_t number :
           numbers_of(take(*table, std::min<int64_t>(batch, 350 - static_cast<int64_t>(runs.back().size())))))
        runs.back().push_back(number);
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_EQ(runs[0], runs[2]);
}

TEST(ReplayTable, ManyThreadsLoseNothingAndTakeNothingTwice) {
  auto options = small(ReplaySelector::kInOrderOnce, 16);
  const auto table = table_of(options);
  constexpr int32_t kEach = 3'000, kInserters = 3;
  std::vector<std::thread> inserters, samplers;
  for (int32_t t = 0; t < kInserters; ++t)
    inserters.emplace_back([&, t] {
      for (int32_t i = 0; i < kEach; ++i) EXPECT_TRUE(table->insert(item_of(t * kEach + i), Deadline::never()).ok());
    });
  std::vector<std::vector<int32_t>> seen(3);
  for (std::vector<int32_t>& mine : seen)
    samplers.emplace_back([&] {
      std::vector<ReplaySample> samples;
      while (table->sample(5, Deadline::never(), samples).value() > 0) {
        for (const ReplaySample& sample : samples) mine.push_back(number_of(sample));
        samples.clear();
      }
    });
  for (std::thread& thread : inserters) thread.join();
  table->finish();
  for (std::thread& thread : samplers) thread.join();
  std::multiset<int32_t> all;
  for (const auto& mine : seen) all.insert(mine.begin(), mine.end());
  ASSERT_EQ(all.size(), static_cast<size_t>(kEach * kInserters));
  EXPECT_EQ(std::set<int32_t>(all.begin(), all.end()).size(), all.size());
}

TEST(ReplayTable, EverythingAtOnceFromManyThreads) {
  auto options = small(ReplaySelector::kPrioritised, 128, 4);
  options.limiter = {.samples_per_insert = 4, .size_min = 32, .inserts_ahead_max = 64};
  const auto table = table_of(options);
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      std::vector<ReplaySample> samples;
      while (table->sample(8, Deadline::never(), samples).value() > 0) {
        std::vector<uint64_t> keys;
        std::vector<float> priorities;
        for (const ReplaySample& sample : samples) {
          keys.push_back(sample.key);
          priorities.push_back(static_cast<float>(sample.times_sampled + 1));
        }
        table->update_priorities(keys, priorities);
        samples.clear();
      }
    });
  threads.emplace_back([&] {
    for (uint64_t i = 0; i < 200; ++i) {
      table->erase_record(1 + i % 50);
      EXPECT_LE(table->snapshot().held.size(), 128u);
      std::this_thread::yield();
    }
  });
  for (int32_t i = 0; i < 5'000; ++i)
    EXPECT_TRUE(table->insert(item_of(i, static_cast<uint64_t>(i % 60)), Deadline::never()).ok());
  table->finish();
  for (std::thread& thread : threads) thread.join();
  const auto statistics = table->statistics();
  EXPECT_EQ(statistics.inserted, 5'000);
  EXPECT_EQ(statistics.unsampled, 0);
  EXPECT_EQ(statistics.size + statistics.evicted + statistics.erased, 5'000);
}

TEST(ReplayTable, CloseWakesEveryWaiter) {
  const auto empty = table_of(small(ReplaySelector::kUniform));
  const auto full = table_of(small(ReplaySelector::kInOrderOnce, 1));
  insert_numbers(*full, 0, 1);
  std::thread sampler([&] {
    std::vector<ReplaySample> samples;
    EXPECT_EQ(empty->sample(1, Deadline::never(), samples).status().code(), Code::kCancelled);
  });
  std::thread inserter([&] { EXPECT_EQ(full->insert(item_of(1), Deadline::never()).code(), Code::kCancelled); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  empty->close();
  full->close();
  sampler.join();
  inserter.join();
}

TEST(ReplayTable, OptionsThatMakeNoSenseTogetherAreNamed) {
  std::string message;
  const auto code = [&](auto change) {
    ReplayOptions options;
    change(options);
    const Status status = ReplayTable::create(options).status();
    message = status.message();
    return status.code();
  };
  EXPECT_EQ(code([](ReplayOptions&) {}), Code::kOk);
  EXPECT_EQ(code([](ReplayOptions& o) { o.capacity = 0; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](ReplayOptions& o) { o.capacity = int64_t{1} << 40; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](ReplayOptions& o) { o.capacity = 10; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](ReplayOptions& o) { o.alpha = NAN; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](ReplayOptions& o) { o.in_order_share = 1.5; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](ReplayOptions& o) { o.half_life = 0; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](ReplayOptions& o) { o.limiter.samples_per_insert = 0.5; }), Code::kInvalidArgument);
  EXPECT_THAT(message, testing::HasSubstr("try --replay-ratio 1 or more, or --replay once"));
  EXPECT_EQ(code([](ReplayOptions& o) { o.limiter.samples_per_insert = -1; }), Code::kInvalidArgument);
}

}  // namespace
}  // namespace streamvec
