#include "streamvec/model/rbsg.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/model/rbsg_testing.h"

namespace streamvec {
namespace {

using testing::batch_of_pairs;
using testing::kSpelledWords;
using testing::Negatives;
using testing::small_rbsg;
using testing::spelled_model;
using testing::spelled_vectors;

// The summed loss of a batch, word by word from the vectors.
double plain_loss(Rbsg& rbsg, const RbsgBatch& batch) {
  const auto u = spelled_vectors(rbsg, Rbsg::kCentre), v = spelled_vectors(rbsg, Rbsg::kContext);
  const auto miss = [&](size_t i, Slot output, double sign) {
    double g = 0;
    for (size_t d = 0; d < u[0].size(); ++d) g += u[batch.centres[i]][d] * v[output][d];
    return std::log1p(std::exp(-sign * g));
  };
  double loss = 0;
  const size_t each = batch.form == Negatives::kPool ? batch.negatives.size() : 3;
  for (size_t i = 0; i < batch.centres.size(); ++i) {
    loss += miss(i, batch.contexts[i], 1);
    for (size_t k = 0; k < each; ++k) {
      const Slot negative = batch.negatives[batch.form == Negatives::kPool ? k : i * each + k];
      if (negative != batch.contexts[i]) loss += 3.0 / static_cast<double>(each) * miss(i, negative, -1);
    }
  }
  return loss;
}

TEST(Rbsg, ReportsTheLossOfItsVectorsBeforeTheStep) {
  for (const Negatives form : {Negatives::kPool, Negatives::kPerPair}) {
    auto rbsg = spelled_model();
    for (uint64_t seed = 1; seed < 5; ++seed) {
      const RbsgBatch batch = batch_of_pairs(40, form, seed);
      const double wanted = plain_loss(*rbsg, batch);
      const Rbsg::BatchStats stats = rbsg->train_batch(batch, 0.01f);
      EXPECT_NEAR(stats.loss, wanted, 2e-4 * wanted);
      EXPECT_EQ(stats.pairs, 40);
      EXPECT_FALSE(stats.refused);
    }
  }
}

// Adam's first step is lr towards the sign of each slope, which finite differences of the whole loss must agree with.
TEST(Rbsg, EveryParameterGoesWhereFiniteDifferencesPoint) {
  for (const Negatives form : {Negatives::kPool, Negatives::kPerPair}) {
    auto rbsg = spelled_model(1, false), stepped = spelled_model(1, false);
    const RbsgBatch batch = batch_of_pairs(40, form);
    (void)stepped->train_batch(batch, 1e-3f);
    const auto before = rbsg->states(), after = stepped->states();
    int compared = 0;
    for (size_t m = 0; m < before.size(); ++m) {
      if (before[m].name.find("adam") != std::string::npos || before[m].name == "rbsg.steps") continue;
      Matrix& values = *before[m].values;
      for (int64_t i = 0; i < values.rows(); i += 1 + values.rows() / 300)
        for (int64_t k = i % 3; k < values.cols(); k += 1 + values.cols() / 3) {
          float& value = values.row(i)[k];
          const float kept = value;
          value = kept + 0.02f;
          const double above = plain_loss(*rbsg, batch);
          value = kept - 0.02f;
          const double below = plain_loss(*rbsg, batch);
          value = kept;
          const double slope = (below - above) / 0.04 / 40;
          if (std::abs(slope) < 1e-3) continue;
          ++compared;
          EXPECT_NEAR(after[m].values->row(i)[k] - kept, slope > 0 ? 1e-3 : -1e-3, 2e-5)
              << before[m].name << " " << i << " " << k << ": " << slope;
        }
    }
    EXPECT_GT(compared, 50);
  }
}

Matrix& state_of(Rbsg& rbsg, const std::string& name) {
  for (const Rbsg::Named& state : rbsg.states())
    if (state.name == name) return *state.values;
  ADD_FAILURE() << "no state is called " << name;
  std::abort();
}

// The first mean of slopes is a tenth of them.
TEST(Rbsg, MatricesOfWeightsStepByMuonAndTheRestByAdam) {
  auto before = spelled_model(), after = spelled_model();
  (void)after->train_batch(batch_of_pairs(40, Negatives::kPool), 1e-2f);
  ThreadTeam alone(1);
  Muon muon(std::move(make_packed_gemm("simd")).value(), alone);
  for (const std::string side : {"rbsg.centre.", "rbsg.context."}) {
    for (const std::string part : {"input", "recurrent", "output"}) {
      Matrix values = std::move(state_of(*before, side + part).copy()).value();
      Matrix slopes = std::move(state_of(*after, side + part + ".adam.mean").copy()).value();
      Matrix momentum = std::move(Matrix::make(values.rows(), values.cols())).value();
      for (int64_t i = 0; i < slopes.rows(); ++i)
        for (int64_t k = 0; k < slopes.cols(); ++k) slopes.row(i)[k] *= 10;
      const Muon::Part moved{&values, &momentum, &slopes};
      muon.step({&moved, 1}, 1e-2f);
      for (int64_t i = 0; i < values.rows(); ++i)
        for (int64_t k = 0; k < values.cols(); ++k)
          ASSERT_NEAR(state_of(*after, side + part).row(i)[k], values.row(i)[k], 1e-4) << side << part;
    }
    for (const std::string part : {"bias", "output_bias"}) {
      const Matrix &is = state_of(*after, side + part), &was = state_of(*before, side + part);
      EXPECT_NEAR(std::abs(is.row(0)[1] - was.row(0)[1]), 0.25e-2, 1e-4) << side << part;
    }
  }
}

// Somebody looks at the encoders between batches and puts them back as they were.
TEST(Rbsg, TakingTurnsChangesNothingOfWhatIsLearnt) {
  auto alone = spelled_model(2), in_turn = spelled_model(2);
  const auto turns = std::make_shared<Turns>(Turns::Options{.patience = 1});
  in_turn->take_turns(turns);
  std::atomic<bool> done = false;
  int64_t exchanges = 0;
  std::thread other([&] {
    const Matrix* recurrent = in_turn->shared_tables()[2].values;
    while (!done) {
      turns->await_step(0.001);
      float seen = 0;
      const auto with_values = [&](const auto& use) {
        return [&] {
          const auto lock = in_turn->lock_values();
          use();
        };
      };
      if (!turns->begin_exchange([&] { return done.load(); }, with_values([&] { seen = recurrent->row(3)[5]; })))
        continue;
      turns->end_exchange(with_values([&] { exchanges += seen != 0; }));
    }
  });
  for (uint64_t seed = 1; seed < 40; ++seed) {
    const RbsgBatch batch = batch_of_pairs(50, Negatives::kPool, seed);
    EXPECT_EQ(alone->train_batch(batch, 1e-2f).loss, in_turn->train_batch(batch, 1e-2f).loss);
  }
  done = true;
  other.join();
  turns->close();
  EXPECT_GT(exchanges, 0);
  EXPECT_EQ(spelled_vectors(*alone, Rbsg::kCentre), spelled_vectors(*in_turn, Rbsg::kCentre));
}

// Words are told by a thread that has others to answer.
TEST(Rbsg, TellingAWordWaitsForNoBatch) {
  auto rbsg = spelled_model();
  const auto turns = std::make_shared<Turns>(Turns::Options{.patience = 1e9, .wait_max_s = 1e9});
  rbsg->take_turns(turns);
  const RbsgBatch batch = batch_of_pairs(50, Negatives::kPool);
  rbsg->train_batch(batch, 1e-2f);
  ASSERT_TRUE(turns->begin_exchange([] { return false; }, [] {}));
  std::thread training([&] { rbsg->train_batch(batch, 1e-2f); });  // waits for what goes on
  std::thread telling([&] {
    rbsg->set_word(0, "sing");
    turns->end_exchange([] {});
  });
  telling.join();
  training.join();
}

TEST(Rbsg, ThreadsShareTheWorkWithoutChangingTheResult) {
  for (const int32_t threads : {2, 3, 16}) {
    auto rbsg = spelled_model(1), shared = spelled_model(threads);
    for (uint64_t seed = 1; seed < 4; ++seed) {
      const RbsgBatch batch = batch_of_pairs(50, Negatives::kPool, seed);
      const double loss = rbsg->train_batch(batch, 1e-3f).loss;
      EXPECT_NEAR(shared->train_batch(batch, 1e-3f).loss, loss, 1e-3 * loss) << threads;
    }
    const auto one = spelled_vectors(*rbsg, Rbsg::kCentre), other = spelled_vectors(*shared, Rbsg::kCentre);
    for (size_t i = 0; i < one.size(); ++i)
      for (size_t d = 0; d < one[i].size(); ++d) EXPECT_NEAR(one[i][d], other[i][d], 2e-3) << threads;
  }
}

TEST(Rbsg, EqualSeedsAndThreadsGiveEqualBits) {
  auto first = spelled_model(2), second = spelled_model(2);
  for (uint64_t seed = 1; seed < 4; ++seed) {
    const RbsgBatch batch = batch_of_pairs(50, Negatives::kPool, seed);
    EXPECT_EQ(first->train_batch(batch, 1e-3f).loss, second->train_batch(batch, 1e-3f).loss);
  }
  EXPECT_EQ(spelled_vectors(*first, Rbsg::kCentre), spelled_vectors(*second, Rbsg::kCentre));
}

TEST(Rbsg, LearnsWhichWordsBelongTogether) {
  auto rbsg = spelled_model(2);
  RbsgBatch batch;
  for (Slot slot = 0; slot < 8; ++slot)
    for (int i = 0; i < 4; ++i) {
      batch.centres.push_back(slot);
      batch.contexts.push_back(slot ^ 1);
    }
  for (Slot slot = 0; slot < 8; ++slot) batch.negatives.push_back(slot);
  const double before = rbsg->train_batch(batch, 0.01f).loss;
  for (int i = 0; i < 150; ++i) (void)rbsg->train_batch(batch, 0.01f);
  EXPECT_LT(rbsg->train_batch(batch, 0.01f).loss, 0.2 * before);
}

// Pairs that belong together as above, and the same words asked for in bulk and, in f32, one by one.
TEST(Rbsg, VectorsMadeIn8BitsPointWhereThoseInF32Do) {
  RbsgOptions options = small_rbsg();
  options.hidden = 64;
  options.kernel = "auto";
  auto rbsg = std::move(Rbsg::make(options)).value();
  if (rbsg->kernel_name() != "amx+int8") GTEST_SKIP() << "needs AMX with whole numbers of 8 bits";
  for (size_t slot = 0; slot < kSpelledWords.size(); ++slot)
    rbsg->set_word(static_cast<Slot>(slot), kSpelledWords[slot]);
  for (uint64_t seed = 1; seed < 60; ++seed) (void)rbsg->train_batch(batch_of_pairs(40, Negatives::kPool, seed), 0.01f);
  const auto got = spelled_vectors(*rbsg, Rbsg::kCentre);
  const auto exact = std::move(rbsg->vectors()).value();
  std::vector<float> wanted(got[0].size());
  double difference = 0;
  for (size_t i = 0; i < kSpelledWords.size(); ++i) {
    ASSERT_TRUE(exact->generate(kSpelledWords[i], wanted).ok());
    double product = 0, squares[2] = {0, 0};
    for (size_t d = 0; d < wanted.size(); ++d) {
      product += wanted[d] * got[i][d];
      squares[0] += wanted[d] * wanted[d];
      squares[1] += got[i][d] * got[i][d];
      difference += std::abs(wanted[d] - got[i][d]);
    }
    EXPECT_GT(product / std::sqrt(squares[0] * squares[1]), 0.999) << kSpelledWords[i];
  }
  EXPECT_GT(difference, 0) << "8 bits were not used";
}

TEST(Rbsg, AWordHasOneVectorWhateverStandsBesideIt) {
  auto rbsg = spelled_model();
  const auto together = spelled_vectors(*rbsg, Rbsg::kContext), by_threads = spelled_vectors(*rbsg, Rbsg::kContext, 3);
  std::vector<float> single(11);
  for (size_t i = 0; i < kSpelledWords.size(); ++i) {
    const std::string_view word = kSpelledWords[i];
    ASSERT_TRUE(rbsg->embed({&word, 1}, Rbsg::kContext, 1, {single.data(), 1, 11, 11}).ok());
    for (size_t d = 0; d < single.size(); ++d) EXPECT_NEAR(single[d], together[i][d], 1e-6);
    EXPECT_EQ(by_threads[i], together[i]);
  }
}

#ifndef __SANITIZE_THREAD__
// A look at the first row is all that tells from outside that embedding has begun: a data race, in this test alone.
TEST(Rbsg, TrainingGoesOnWhileTheVocabularyIsEmbedded) {
  constexpr Slot kMany = 30'000;
  auto rbsg = spelled_model();
  for (Slot slot = static_cast<Slot>(kSpelledWords.size()); slot < kMany; ++slot)
    rbsg->set_word(slot, "word" + std::to_string(mix(static_cast<uint64_t>(slot))));
  const RbsgBatch batch = batch_of_pairs(40, Negatives::kPool);
  bool met = false;
  for (int tries = 0; tries < 20 && !met; ++tries) {
    Matrix out = std::move(Matrix::make(kMany, 11)).value();
    std::atomic<bool> over = false;
    std::thread embedding([&] {
      EXPECT_TRUE(rbsg->embed_slots(Rbsg::kCentre, out.view()).ok());
      over = true;
    });
    const auto begun = [&] {
      for (Slot slot = 0; slot < kMany; slot += 100)
        if (std::atomic_ref(*out.row(slot)).load() != 0) return true;
      return false;
    };
    while (!begun()) std::this_thread::yield();
    EXPECT_EQ(rbsg->train_batch(batch, 1e-3f).pairs, 40);
    met = !over;
    embedding.join();
  }
  EXPECT_TRUE(met) << "each batch waited for the whole vocabulary";
}
#endif

TEST(Rbsg, MoreThanThereIsMemoryForIsResourceExhausted) {
  RbsgOptions options;
  options.hidden = 1 << 20;
  const Status status = Rbsg::make(options).status();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_NE(status.message().find("--hidden 1048576"), std::string::npos) << status.message();
}

TEST(Rbsg, AnyBytesHaveAVectorAndTheEmptyWordAnError) {
  auto rbsg = spelled_model();
  const std::string bytes("\xFF\0\xC3 \x7F", 5), longest(5'000, 'x');
  const std::vector<std::string_view> words{bytes, longest, "未知"};
  Matrix out = std::move(Matrix::make(3, 11)).value();
  ASSERT_TRUE(rbsg->embed(words, Rbsg::kCentre, 1, out.view()).ok());
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t d = 0; d < 11; ++d) EXPECT_TRUE(std::isfinite(out.row(i)[d]));
  const std::vector<std::string_view> empty{"a", ""};
  EXPECT_EQ(rbsg->embed(empty, Rbsg::kCentre, 1, {out.row(0), 2, 11, out.stride()}).code(), Code::kInvalidArgument);
}

TEST(Rbsg, ABatchWithoutPairsChangesNothing) {
  auto rbsg = spelled_model();
  const auto before = spelled_vectors(*rbsg, Rbsg::kCentre);
  EXPECT_EQ(rbsg->train_batch({}, 0.1f).pairs, 0);
  EXPECT_EQ(spelled_vectors(*rbsg, Rbsg::kCentre), before);
}

TEST(Rbsg, RefusesAStepThatIsNotFinite) {
  auto rbsg = spelled_model();
  Matrix& bias = *rbsg->states()[5].values;
  ASSERT_EQ(rbsg->states()[5].name, "rbsg.centre.output_bias");
  const float kept = bias.row(0)[0];
  bias.row(0)[0] = std::numeric_limits<float>::infinity();
  const auto outputs = spelled_vectors(*rbsg, Rbsg::kContext);
  EXPECT_TRUE(rbsg->train_batch(batch_of_pairs(20, Negatives::kPool), 0.01f).refused);
  EXPECT_EQ(spelled_vectors(*rbsg, Rbsg::kContext), outputs);
  bias.row(0)[0] = kept;
  EXPECT_FALSE(rbsg->train_batch(batch_of_pairs(20, Negatives::kPool), 0.01f).refused)
      << "nothing of the bad slopes stays";
}

TEST(Rbsg, AModelFilledWithAnothersStatesGoesOnAlike) {
  auto rbsg = spelled_model();
  for (uint64_t seed = 1; seed < 4; ++seed) (void)rbsg->train_batch(batch_of_pairs(30, Negatives::kPool, seed), 0.01f);
  RbsgOptions options = small_rbsg();
  options.seed = 99;
  auto other = std::move(Rbsg::make(options)).value();
  ASSERT_TRUE(other->restore_characters(rbsg->characters().admitted()).ok());
  for (size_t slot = 0; slot < kSpelledWords.size(); ++slot)
    other->set_word(static_cast<Slot>(slot), kSpelledWords[slot]);
  const auto from = rbsg->states(), to = other->states();
  ASSERT_EQ(from.size(), to.size());
  for (size_t m = 0; m < from.size(); ++m) {
    EXPECT_EQ(from[m].name, to[m].name);
    ASSERT_EQ(from[m].values->rows(), to[m].values->rows());
    for (int64_t i = 0; i < from[m].values->rows(); ++i)
      std::copy_n(from[m].values->row(i), from[m].values->cols(), to[m].values->row(i));
  }
  for (uint64_t seed = 4; seed < 7; ++seed) {
    const RbsgBatch batch = batch_of_pairs(30, Negatives::kPool, seed);
    EXPECT_EQ(rbsg->train_batch(batch, 0.01f).loss, other->train_batch(batch, 0.01f).loss);
  }
  EXPECT_EQ(spelled_vectors(*rbsg, Rbsg::kCentre), spelled_vectors(*other, Rbsg::kCentre));
}

TEST(Rbsg, NewCharactersMayComeBetweenBatches) {
  auto rbsg = spelled_model(2);
  (void)rbsg->train_batch(batch_of_pairs(30, Negatives::kPool), 0.01f);
  rbsg->set_word(3, "ωμέγα");
  const Rbsg::BatchStats stats = rbsg->train_batch(batch_of_pairs(30, Negatives::kPool), 0.01f);
  EXPECT_FALSE(stats.refused);
  EXPECT_TRUE(std::isfinite(stats.loss));
}

TEST(Rbsg, RefusesSizesThatCannotBe) {
  EXPECT_EQ(Rbsg::make({.hidden = 20}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(Rbsg::make({.threads = 0}).status().code(), Code::kInvalidArgument);
}

TEST(RbsgPlan, CutsWordsWithoutLosingOrRepeatingAny) {
  std::vector<Spelling> spellings{{5, 6, 7}, {5, 6}, {9}, {5, 6, 8}, {}, {1, 2, 3, 4, 5, 6}};
  const std::vector<std::span<const CharacterId>> words(spellings.begin(), spellings.end());
  std::vector<int32_t> order, cuts;
  order_by_spelling(words, order);
  EXPECT_EQ(order, (std::vector<int32_t>{4, 5, 1, 0, 3, 2}));
  std::vector<std::span<const CharacterId>> ordered;
  for (const int32_t i : order) ordered.push_back(words[static_cast<size_t>(i)]);
  for (const int32_t parts : {1, 2, 3, 10}) {
    cut_evenly(ordered, parts, cuts);
    ASSERT_EQ(cuts.size(), static_cast<size_t>(parts) + 1);
    EXPECT_EQ(cuts.front(), 0);
    EXPECT_EQ(cuts.back(), 6);
    EXPECT_TRUE(std::is_sorted(cuts.begin(), cuts.end()));
  }
}

}  // namespace
}  // namespace streamvec
