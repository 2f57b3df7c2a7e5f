#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/cuda/card_testing.h"
#include "streamvec/cuda/copies.h"
#include "streamvec/model/rbsg.h"

namespace streamvec {
namespace {

// Words of a few syllables, so that beginnings are shared.
std::string drawn_word(Random& random) {
  static const char* kSyllables[] = {"sing", "er", "ly", "con", "a", "tion", "ver", "naïve", "한", "국"};
  std::string word;
  for (uint32_t i = 0; i <= random.below(4); ++i) word += kSyllables[random.below(10)];
  return word;
}

constexpr int32_t kDrawnWords = 200;

RbsgOptions card_options(bool cuda, RecurrentCell cell, bool bf16) {
  return {.dim = 50,
          .hidden = 64,
          .character_dim = 24,
          .negatives = 5,
          .threads = 2,
          .seed = 5,
          .cell = cell,
          .cuda = cuda,
          .cuda_bf16 = bf16};
}

std::unique_ptr<Rbsg> drawn_model(bool cuda, RecurrentCell cell = RecurrentCell::kLstm, bool bf16 = false) {
  auto made = std::move(Rbsg::make(card_options(cuda, cell, bf16))).value();
  Random random(3);
  for (Slot slot = 0; slot < kDrawnWords; ++slot) made->set_word(slot, drawn_word(random));
  return made;
}

RbsgBatch drawn_batch(uint64_t seed) {
  Random random(seed);
  RbsgBatch batch;
  for (int i = 0; i < 500; ++i) {
    batch.centres.push_back(static_cast<Slot>(random.below(kDrawnWords)));
    batch.contexts.push_back(static_cast<Slot>((batch.centres.back() + random.below(5)) % kDrawnWords));
  }
  for (int i = 0; i < 40; ++i) batch.negatives.push_back(static_cast<Slot>(random.below(kDrawnWords)));
  return batch;
}

class RbsgOnCard : public ::testing::Test {
 protected:
  void SetUp() override { STREAMVEC_SKIP_WITHOUT_CARD(); }
};

struct Kind {
  RecurrentCell cell;
  bool bf16;            // products in bf16, not in tf32
  double slopes_apart;  // from the CPU's, as a share of their length
};

class RbsgCellsOnCard : public RbsgOnCard, public ::testing::WithParamInterface<Kind> {};
INSTANTIATE_TEST_SUITE_P(Cells, RbsgCellsOnCard,
                         ::testing::Values(Kind{RecurrentCell::kLstm, false, 1e-2},
                                           Kind{RecurrentCell::kGru, false, 1e-2},
                                           Kind{RecurrentCell::kLstm, true, 3e-2},
                                           Kind{RecurrentCell::kGru, true, 3e-2}));

// Adam's first mean is a tenth of the slope. The CPU's slopes agree with finite differences (rbsg_test.cc).
TEST_P(RbsgCellsOnCard, LossAndSlopesAreTheCpus) {
  const Kind kind = GetParam();
  const auto card = drawn_model(true, kind.cell, kind.bf16), cpu = drawn_model(false, kind.cell);
  const RbsgBatch batch = drawn_batch(1);
  const Rbsg::BatchStats expected = cpu->train_batch(batch, 1e-3f);
  Rbsg::BatchStats stats = card->train_batch(batch, 1e-3f);
  const Rbsg::BatchStats rest = card->settle().value();
  EXPECT_EQ(stats.pairs + rest.pairs, expected.pairs);
  EXPECT_NEAR((stats.loss + rest.loss) / expected.loss, 1, 1e-3);
  const auto expected_states = cpu->states(), states = card->states();
  ASSERT_EQ(states.size(), expected_states.size());
  for (size_t i = 0; i < states.size(); ++i) {
    if (states[i].name.find("adam.mean") == std::string::npos) continue;
    double difference = 0, size = 0;
    for (int64_t row = 0; row < states[i].values->rows(); ++row)
      for (int64_t k = 0; k < states[i].values->cols(); ++k) {
        const double is = states[i].values->row(row)[k], should = expected_states[i].values->row(row)[k];
        difference += (is - should) * (is - should);
        size += should * should;
      }
    EXPECT_LT(std::sqrt(difference / size), kind.slopes_apart) << states[i].name;
  }
}

TEST_P(RbsgCellsOnCard, LearnAsTheCpuDoes) {
  double losses[2];
  for (const bool cuda : {false, true}) {
    const auto rbsg = drawn_model(cuda, GetParam().cell, GetParam().bf16);
    double loss = 0;
    for (uint64_t i = 0; i < 60; ++i) {
      const double done = rbsg->train_batch(drawn_batch(i), 3e-3f).loss + rbsg->settle().value().loss;
      if (i >= 50) loss += done;
    }
    losses[cuda] = loss;
  }
  EXPECT_NEAR(losses[1] / losses[0], 1, 0.02);
}

TEST_F(RbsgOnCard, ABatchCopiesItsPlanThereAndItsLossBack) {
  const auto rbsg = drawn_model(true);
  (void)rbsg->train_batch(drawn_batch(1), 1e-3f);
  ASSERT_TRUE(rbsg->settle().ok());
  const cuda::Copies before = cuda::copies_so_far();
  (void)rbsg->train_batch(drawn_batch(2), 1e-3f);
  ASSERT_TRUE(rbsg->settle().ok());
  const cuda::Copies after = cuda::copies_so_far();
  // 500 pairs, and for each of at most 2 x 200 words some numbers for a few nodes: far from 4 x 64 x 64 weights.
  EXPECT_GE(after.to_card - before.to_card, 500 * 8);
  EXPECT_LE(after.to_card - before.to_card, 500 * 8 + 2 * kDrawnWords * 20 * 8);
  EXPECT_EQ(after.to_card_count - before.to_card_count, 1);
  EXPECT_LE(after.from_card - before.from_card, 64);
}

TEST_F(RbsgOnCard, NewCharactersInTheMiddleGetRowsThere) {
  const auto rbsg = drawn_model(true);
  (void)rbsg->train_batch(drawn_batch(1), 1e-3f);
  rbsg->set_word(0, "żółć");
  (void)rbsg->train_batch(drawn_batch(2), 1e-3f);
  const Rbsg::BatchStats rest = rbsg->settle().value();
  EXPECT_TRUE(std::isfinite(rest.loss));
  EXPECT_EQ(rbsg->steps(), 2);
}

TEST_F(RbsgOnCard, ABatchThatIsNotFiniteChangesNothing) {
  const auto rbsg = drawn_model(true);
  for (const Rbsg::Named& state : rbsg->states())
    if (state.name == "rbsg.centre.output") state.values->row(0)[0] = std::nanf("");
  const Rbsg::BatchStats stats = rbsg->train_batch(drawn_batch(1), 1e-3f);
  const Rbsg::BatchStats rest = rbsg->settle().value();
  EXPECT_TRUE(stats.refused || rest.refused);
  for (const Rbsg::Named& state : rbsg->states())
    if (state.name == "rbsg.context.recurrent.adam.mean") {
      EXPECT_EQ(state.values->row(1)[1], 0);
    }
}

}  // namespace
}  // namespace streamvec
