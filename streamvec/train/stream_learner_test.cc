#include "streamvec/train/stream_learner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "streamvec/core/random.h"
#include "streamvec/cuda/sgns_trainer.h"
#include "streamvec/replay/testing.h"
#include "streamvec/vocab/stream_vocabulary_testing.h"

namespace streamvec {
namespace {

constexpr int32_t kWords = 40, kDim = 8;

// A vocabulary of kWords words, tables for it, and replay that is filled by hand.
class StreamLearnerTest : public ::testing::Test {
 protected:
  StreamLearnerTest() : vocabulary_({.min_count = 1, .vocab_max = kWords}), tables_({.sample = 0}) {
    for (int32_t i = 0; i < kWords; ++i) map(vocabulary_, {"word" + std::to_string(i)});
    tables_.stage(vocabulary_);
    tables_.build();
    replay_ = ReplayTable::create(small(ReplaySelector::kInOrderOnce, 64, 1)).value();
  }

  static Parameters rows(uint64_t seed) {
    return Parameters::make({.rows = kWords, .dim = kDim, .seed = seed}).value();
  }
  // A chunk of `slots`, mapped now; `record` names its document.
  void insert(std::vector<Slot> slots, uint64_t record) {
    auto item = std::make_shared<ReplayItem>();
    item->chunk.sentence_ends = {static_cast<int32_t>(slots.size())};
    item->chunk.slots = std::move(slots);
    item->stamp = vocabulary_.stamp();
    item->record = record;
    ASSERT_TRUE(replay_->insert(std::move(item), Deadline::after(std::chrono::seconds(30))).ok());
  }
  LearnerTotals learn(const StreamLearner::Parts& parts, ReplayPriority priority = ReplayPriority::kNone) {
    StreamLearner::Options options;
    options.priority = priority;
    options.model.kernel = "simd";
    auto learner = StreamLearner::create(options, parts).value();
    replay_->finish();
    learner->start();
    const Deadline deadline = Deadline::after(std::chrono::seconds(30));
    while (!learner->over() && !deadline.passed()) std::this_thread::yield();
    learner->stop();
    EXPECT_TRUE(learner->settle().ok());
    return learner->totals();
  }
  static std::set<Slot> moved(const Parameters& then, const Parameters& now) {
    std::set<Slot> slots;
    for (Slot slot = 0; slot < kWords; ++slot)
      if (!std::equal(then.input.rows.row(slot), then.input.rows.row(slot) + kDim, now.input.rows.row(slot)))
        slots.insert(slot);
    return slots;
  }

  StreamVocabulary vocabulary_;
  SamplingTablesBuffer tables_;
  std::unique_ptr<ReplayTable> replay_;
};

TEST_F(StreamLearnerTest, AWordThatTookASlotDoesNotInheritItsText) {
  insert({0, 1, 2, 3, 4, 5}, 1);
  const Slot taken = map(vocabulary_, {"newcomer", "newcomer", "newcomer"}).back();
  ASSERT_NE(taken, kNoSlot);
  insert({taken, 20, 21, 22}, 2);
  insert({10, 11, 12}, 3);
  ASSERT_LE(taken, 5) << "of equals the first leaves";
  Parameters parameters = rows(1);
  const LearnerTotals totals = learn({vocabulary_, tables_, *replay_, parameters});
  EXPECT_EQ(totals.samples, 3);
  EXPECT_EQ(totals.stale_tokens, 1);
  EXPECT_EQ(totals.tokens, 5 + 4 + 3);
}

TEST_F(StreamLearnerTest, NeitherHalfSeesADocumentOfTheOther) {
  // Three times: output rows begin at zero, and what is multiplied with them moves only then.
  for (int times = 0; times < 3; ++times)
    for (Slot first = 0; first < kWords; first += 4) {
      const auto document = static_cast<uint64_t>(first + 1);
      insert({first, first + 1}, document);
      insert({first + 2, first + 3}, document);
    }
  Parameters parameters = rows(1), a = rows(2), b = rows(3);
  learn({vocabulary_, tables_, *replay_, parameters, {&a, &b}});
  const std::set<Slot> in_whole = moved(rows(1), parameters), in_a = moved(rows(2), a), in_b = moved(rows(3), b);
  EXPECT_EQ(in_whole.size(), static_cast<size_t>(kWords));
  EXPECT_EQ(in_a.size() + in_b.size(), static_cast<size_t>(kWords));
  for (Slot slot = 0; slot < kWords; ++slot) {
    EXPECT_NE(in_a.contains(slot), in_b.contains(slot)) << slot;
    EXPECT_EQ(in_a.contains(slot), in_a.contains(slot - slot % 4)) << "a document's chunks go to one half";
  }
  EXPECT_FALSE(in_a.empty() || in_b.empty());
}

TEST_F(StreamLearnerTest, FreshTextIsCountedOnceAndItsLossIsFromBeforeItsSteps) {
  replay_ = ReplayTable::create(small(ReplaySelector::kUniform, 64, 4)).value();
  for (uint64_t document = 1; document <= 30; ++document) insert({0, 1, 0, 1, 0, 1, 0, 1}, document);
  Parameters parameters = rows(1);
  const LearnerTotals totals = learn({vocabulary_, tables_, *replay_, parameters});
  ASSERT_GT(totals.fresh_pairs, 0);
  EXPECT_LT(totals.fresh_pairs, totals.pairs / 2);
  const double fresh = totals.fresh_loss / static_cast<double>(totals.fresh_pairs);
  const double all = totals.loss / static_cast<double>(totals.pairs);
  EXPECT_GT(fresh, all);
}

TEST_F(StreamLearnerTest, WhatAChunkWasLikeBecomesItsPriority) {
  for (const ReplayPriority priority : {ReplayPriority::kLoss, ReplayPriority::kGradient}) {
    replay_ = ReplayTable::create(small(ReplaySelector::kPrioritised, 64, 60)).value();
    Random random(1);
    for (uint64_t document = 0; document < 30; ++document) {
      const bool easy = document % 2 == 0;
      std::vector<Slot> slots;
      for (Slot i = 0; i < 40; ++i) slots.push_back(easy ? i % 2 : 2 + static_cast<Slot>(random.below(kWords - 2)));
      insert(slots, document + 1);
    }
    Parameters parameters = rows(1);
    learn({vocabulary_, tables_, *replay_, parameters}, priority);
    double weights[2] = {0, 0};
    for (const ReplaySnapshot::Held& held : replay_->snapshot().held)
      weights[held.item->record % 2] += held.weight;  // easy ones are odd
    EXPECT_LT(weights[1], 0.9 * weights[0]);
  }
}

TEST_F(StreamLearnerTest, WhoWaitsForRoomIsToldWhenTheClusterHasFailed) {
  for (uint64_t record = 1; record <= 64; ++record) insert({0, 1, 2}, record);
  Parameters parameters = rows(1);
  StreamLearner::Parts parts{vocabulary_, tables_, *replay_, parameters};
  parts.trained = [](int64_t) { return false; };
  StreamLearner::Options options;
  options.model.kernel = "simd";
  options.samples_at_once = 1;
  auto learner = StreamLearner::create(options, parts).value();
  learner->start();
  Status full;
  for (int i = 0; full.ok() && i < 100; ++i)
    full = replay_->insert(std::make_shared<ReplayItem>(), Deadline::after(std::chrono::seconds(30)));
  EXPECT_EQ(full.code(), Code::kCancelled);
  learner->stop();
}

TEST_F(StreamLearnerTest, EveryFreshChunkIsShownOnce) {
  replay_ = ReplayTable::create(small(ReplaySelector::kUniform, 64, 4)).value();
  for (uint64_t document = 1; document <= 9; ++document) insert({0, 1, 2, 3}, document);
  Parameters parameters = rows(1);
  StreamLearner::Parts parts{vocabulary_, tables_, *replay_, parameters};
  int shown = 0;
  parts.watch = [&](const Chunk& chunk, double) { shown += chunk.slots.size() == 4; };
  learn(parts);
  EXPECT_EQ(shown, 9);
}

// A card that takes a few chunks and then fails, as real ones say it: with whatever call comes next.
class FailingCard final : public cuda::SgnsTrainer {
 public:
  explicit FailingCard(int chunks = 3) : chunks_(chunks) {}
  std::string name() const override { return "failing"; }
  Status put(MatrixView<const float>, MatrixView<const float>) override { return {}; }
  Status put_sums(MatrixView<const float>, MatrixView<const float>) override { return {}; }
  Status put_row(int64_t, std::span<const float>, std::span<const float>) override { return {}; }
  Status set_tables(const SamplingTables&) override { return status_; }
  Status add(const Chunk&, const cuda::SgnsManner&) override {
    if (++added_ == chunks_) status_ = error(Code::kInternal, "the card fell off the bus");
    return {};
  }
  Status add(const Chunk&, float, uint64_t, uint64_t) override { return status_; }
  bool known(uint64_t) const override { return false; }
  bool keeps_all() const override { return false; }
  Status add_known(uint64_t, float, uint64_t) override { return status_; }
  Result<cuda::SgnsTotals> totals(bool) override {
    if (!status_.ok()) return status_;
    return cuda::SgnsTotals();
  }
  std::vector<cuda::SgnsTold> told() override { return {}; }
  Status get(MatrixView<float>, MatrixView<float>) override { return status_; }
  Status get_sums(MatrixView<float>, MatrixView<float>) override { return status_; }

  int added() const { return added_; }

 private:
  const int chunks_;
  int added_ = 0;
  Status status_;
};

// A stream with more to give than is taken before the card of `failing` fails.
class FailingCardTest : public StreamLearnerTest {
 protected:
  void expect_end(Parameters& failing, const StreamLearner::Parts& parts) {
    for (uint64_t document = 1; document <= 40; ++document) insert({0, 1, 2, 3}, document);
    const auto card = std::make_shared<FailingCard>();
    failing.card = card;
    StreamLearner::Options options;
    options.model.cuda = true;
    options.samples_at_once = 1;
    const auto learner = StreamLearner::create(options, parts).value();
    learner->start();
    const Deadline deadline = Deadline::after(std::chrono::seconds(60));
    while (!learner->over() && !deadline.passed()) std::this_thread::yield();
    EXPECT_TRUE(learner->over());
    learner->stop();
    EXPECT_EQ(card->added(), 3);
    EXPECT_EQ(learner->settle().message(), "the card fell off the bus");
  }
};

TEST_F(FailingCardTest, ItEndsAStreamThatHasMoreToGive) {
  Parameters parameters = rows(1);
  expect_end(parameters, {vocabulary_, tables_, *replay_, parameters});
}

TEST_F(FailingCardTest, SoDoesOneThatTrainsAHalf) {
  Parameters parameters = rows(1), a = rows(2), b = rows(3);
  for (Parameters* sound : {&parameters, &b}) sound->card = std::make_shared<FailingCard>(1'000'000);
  expect_end(a, {vocabulary_, tables_, *replay_, parameters, {&a, &b}});
}

}  // namespace
}  // namespace streamvec
