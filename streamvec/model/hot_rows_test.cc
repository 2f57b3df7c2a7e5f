#include "streamvec/model/hot_rows.h"

#include <gtest/gtest.h>

#include <thread>

#include "streamvec/model/model.h"
#include "streamvec/model/testing.h"

namespace streamvec {
namespace {

using namespace streamvec::testing;  // NOLINT: the helpers of this folder

Matrix zeros(int64_t rows, int64_t cols) {
  return Matrix::make(rows, cols).value();
}

// Adds `value` to a row as a thread in training does.
void add_to_row(HotRows& hot, Slot slot, float value) {
  if (hot.use(slot)) hot.renew(slot);
  hot.row(slot)[0] += value;
}

void settle(HotRows& hot) {
  hot.settle([&](Slot slot) { hot.renew(slot); });
}

// Of one of two threads; all rows of so small a table are copied.
class CopiesOfAThread : public ::testing::Test {
 protected:
  Matrix table = zeros(10, 20);
  HotSlots slots{2, table};
  HotRows hot{slots, table};
};

TEST(HotSlots, AreNoneForOneThreadAndFewerForMore) {
  const Matrix table = zeros(1000, 200);
  EXPECT_EQ(HotSlots(1, table).count(), 0);
  EXPECT_GT(HotSlots(2, table).count(), HotSlots(4, table).count());
  EXPECT_GT(HotSlots(4, table).count(), 0);
}

TEST(HotSlots, AreNoMoreThanTheTableHasRows) {
  EXPECT_EQ(HotSlots(2, zeros(7, 20)).count(), 7);
}

TEST_F(CopiesOfAThread, KeepsChangesToItselfForSoManyUses) {
  for (uint32_t i = 0; i < HotRows::kUses; ++i) add_to_row(hot, 3, 1);
  EXPECT_EQ(table.row(3)[0], 0);
  add_to_row(hot, 3, 1);
  EXPECT_EQ(table.row(3)[0], HotRows::kUses);
}

TEST(HotRows, GivesALittleMoreThanTheMeanWhereOthersHaveGivenToo) {
  Matrix table = zeros(10, 20);
  HotSlots slots(4, table);
  std::vector<HotRows> hot;
  for (int i = 0; i < 4; ++i) hot.emplace_back(slots, table);
  for (int round = 0; round < 2; ++round)
    for (HotRows& one : hot) {
      add_to_row(one, 3, round == 0 ? 0 : 1);
      settle(one);
    }
  EXPECT_EQ(table.row(3)[0], 1.5f);
}

TEST(HotRows, AThreadThatComesLateGivesAllAsLongAsNobodyElseDoes) {
  Matrix table = zeros(10, 20);
  HotSlots slots(2, table);
  HotRows first(slots, table), late(slots, table);
  for (int i = 0; i < 100; ++i) {
    add_to_row(first, 3, 0);
    settle(first);
  }
  add_to_row(late, 3, 1);
  settle(late);
  EXPECT_EQ(table.row(3)[0], 1);
}

TEST_F(CopiesOfAThread, TakesWhatOthersHaveChanged) {
  add_to_row(hot, 3, 0);
  table.row(3)[0] = 5;
  EXPECT_EQ(hot.row(3)[0], 0);
  for (uint32_t i = 0; i < HotRows::kUses; ++i) add_to_row(hot, 3, 0);
  EXPECT_EQ(hot.row(3)[0], 5);
}

TEST(HotRows, GivesOutTheTablesOwnRowWhereThereIsNoCopy) {
  Matrix table = zeros(100'000, 200);
  HotSlots slots(2, table);
  HotRows hot(slots, table);
  const Slot cold = static_cast<Slot>(slots.count());
  EXPECT_TRUE(hot.holds(cold - 1));
  EXPECT_FALSE(hot.holds(cold));
  EXPECT_EQ(hot.row(cold), table.row(cold));
  add_to_row(hot, cold - 1, 1);
  EXPECT_NE(hot.row(cold - 1), table.row(cold - 1));
}

TEST(HotRows, WantsTheTablesRowWhenItWillBeRead) {
  Matrix table = zeros(100'000, 200);
  HotSlots slots(2, table);
  HotRows hot(slots, table);
  EXPECT_TRUE(hot.wants_row(0));
  add_to_row(hot, 0, 1);
  EXPECT_FALSE(hot.wants_row(0));
  for (uint32_t i = 1; i < HotRows::kUses; ++i) add_to_row(hot, 0, 1);
  EXPECT_TRUE(hot.wants_row(0));
  EXPECT_TRUE(hot.wants_row(static_cast<Slot>(slots.count())));
}

TEST(HotRows, ThreadsThatSettleHaveLostNothingOfTheirShares) {
  constexpr int kThreads = 4, kAdds = 20'000, kRows = 3;
  Matrix table = zeros(kRows, 20);
  HotSlots slots(kThreads, table);
  double given[kThreads] = {};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      HotRows hot(slots, table);
      double kept[kRows] = {}, sum = 0;
      const auto renew = [&](Slot slot) {
        const float share = hot.renew(slot);
        sum += double{share} * kept[slot];
        if (share > 0) kept[slot] = 0;
      };
      for (int i = 0; i < kAdds; ++i) {
        const Slot slot = i % kRows;
        if (hot.use(slot)) renew(slot);
        hot.row(slot)[t] += 1;
        kept[slot] += 1;
      }
      hot.settle(renew);
      given[t] = sum;
    });
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < kThreads; ++t) {
    double sum = 0;
    for (int64_t i = 0; i < kRows; ++i) sum += double{table.row(i)[t]};
    EXPECT_NEAR(sum, given[t], 0.5) << "a lost merge is ten and more";
  }
}

TEST_F(CopiesOfAThread, ARowThatBeginsAnewIsTakenAnewWithoutWhatWasChangedBefore) {
  add_to_row(hot, 3, 1);
  table.row(3)[0] = 50;
  slots.restart(3);
  hot.notice_restarts();
  add_to_row(hot, 3, 0);
  EXPECT_EQ(hot.row(3)[0], 50);
  settle(hot);
  EXPECT_EQ(table.row(3)[0], 50);
}

TEST_F(CopiesOfAThread, ARowThatBeginsAnewIsNotGivenWhatWasChangedBeforeEvenIfNobodyLooked) {
  for (uint32_t i = 0; i < HotRows::kUses; ++i) add_to_row(hot, 3, 1);
  slots.restart(3);
  add_to_row(hot, 3, 0);
  EXPECT_EQ(table.row(3)[0], 0);
  EXPECT_EQ(hot.row(3)[0], 0);
}

TEST_F(CopiesOfAThread, SettlingDropsChangesOfARowThatHasBegunAnew) {
  add_to_row(hot, 3, 1);
  slots.restart(3);
  settle(hot);
  EXPECT_EQ(table.row(3)[0], 0);
}

TEST_F(CopiesOfAThread, SettlingTellsOfRowsThatHaveChangedAlone) {
  add_to_row(hot, 7, 1);
  std::vector<Slot> changed;
  hot.settle([&](Slot slot) {
    if (hot.renew(slot) > 0) changed.push_back(slot);
  });
  EXPECT_EQ(changed, std::vector<Slot>{7});
}

class WithCopies : public ::testing::TestWithParam<const char*> {
 protected:
  static Parameters tables(int32_t threads) {
    Parameters::Options options;
    options.rows = kPlantedWords;
    options.dim = 20;
    options.threads = threads;
    return Parameters::make(options).value();
  }
  static std::unique_ptr<ModelWorker> make_worker(Parameters& parameters) {
    ModelOptions options;
    options.model = GetParam();
    options.kernel = "reference";
    return make_model_worker(options, parameters).value();
  }

  Parameters parameters = tables(2);
  const SamplingTables sampling{equal_words(kPlantedWords), 0};
  Random random{1};
};

INSTANTIATE_TEST_SUITE_P(Models, WithCopies, ::testing::Values("sgns", "cbow"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(WithCopies, OneWorkerThatHasSettledHasLearntWhatItWouldWithoutCopies) {
  Parameters plain = tables(1);
  for (Parameters* each : {&plain, &parameters}) {
    const auto worker = make_worker(*each);
    Random draws(1);
    for (uint64_t i = 0; i < 20; ++i) worker->step(planted_chunk(i), sampling, 0.05f, draws);
    ASSERT_TRUE(worker->settle().ok());
  }
  EXPECT_GT(class_gap(plain.input.rows), 0.1) << "there is something to compare";
  for (int64_t i = 0; i < kPlantedWords; ++i)
    for (int64_t d = 0; d < 20; ++d) {
      ASSERT_NEAR(parameters.input.rows.row(i)[d], plain.input.rows.row(i)[d], 1e-4) << "row " << i;
      ASSERT_NEAR(parameters.output.rows.row(i)[d], plain.output.rows.row(i)[d], 1e-4) << "row " << i;
    }
}

TEST_P(WithCopies, RowsAreNotedWhenTheTableHasTheirChanges) {
  parameters.changed = std::make_unique<RowMarks>(2 * kPlantedWords);
  const auto worker = make_worker(parameters);
  const Chunk once = chunk_of({{0, 1, 2}});
  const std::vector<uint64_t> all{~uint64_t{0}};
  const auto noted = [&](Slot slot) {
    std::vector<int64_t> rows;
    parameters.changed->take(all, rows);
    return std::count(rows.begin(), rows.end(), 2 * slot + 1) > 0;
  };
  worker->step(once, sampling, 0.05f, random);
  EXPECT_FALSE(noted(1));
  ASSERT_TRUE(worker->settle().ok());
  EXPECT_TRUE(noted(1));
}

}  // namespace
}  // namespace streamvec
