// The hybrid's generator taught by moves; hybrid_test.cc has the one that is taught by rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "streamvec/model/hybrid.h"
#include "streamvec/model/hybrid_testing.h"
#include "streamvec/model/hybrid_vectors.h"
#include "streamvec/model/model.h"
#include "streamvec/model/parameters.h"
#include "streamvec/model/testing.h"

namespace streamvec {
namespace {

using testing::distance, testing::made_of, testing::place_of_largest;

constexpr int32_t kMovedDim = 16;
constexpr int32_t kMovedStems = 8, kMovedEndings = 8, kMovedWords = kMovedStems * kMovedEndings;
const char* const kMovedStem[kMovedStems] = {"boater", "shipal", "lampis", "treeor",
                                             "frogen", "milken", "windar", "songis"};
const char* const kMovedEnding[kMovedEndings] = {"", "s", "ing", "ed", "ly", "dom", "less", "ful"};

std::string moved_word(Slot slot) {
  return std::string(kMovedStem[slot / kMovedEndings]) + kMovedEnding[slot % kMovedEndings];
}

Parameters moved_model(int32_t threads = 1) {
  Parameters parameters =
      std::move(
          Parameters::make({.rows = kMovedWords, .rows_max = 2 * kMovedWords, .dim = kMovedDim, .threads = threads}))
          .value();
  parameters.hybrid =
      std::move(Hybrid::make({.dim = kMovedDim, .words_max = 2 * kMovedWords, .bag = Hybrid::moved_bag()})).value();
  for (Slot slot = 0; slot < kMovedWords; ++slot) parameters.hybrid->set_word(slot, moved_word(slot));
  return parameters;
}

using Move = std::function<void(Slot, float*)>;
// What a worker does with some text, in which each word stands `times` times; training is `move`.
void visit(Parameters& parameters, const std::vector<Slot>& slots, int32_t times, const Move& move) {
  Hybrid::Scratch scratch;
  std::vector<VisitedWord> words;
  for (const Slot slot : slots) words.push_back({slot, times});
  parameters.hybrid->take_up(words, parameters, scratch);
  for (const Slot slot : slots) move(slot, parameters.input.rows.row(slot));
  parameters.hybrid->share_moves(words, parameters, scratch);
}

// Every word's row goes a part of the way to a mean that all share, and to what the stem means.
void learn_stems(Parameters& parameters, int rounds, Slot without = kNoSlot) {
  for (int round = 0; round < rounds; ++round)
    for (Slot slot = 0; slot < kMovedWords; ++slot) {
      if (slot == without) continue;
      visit(parameters, {slot}, 1, [](Slot of, float* row) {
        for (int32_t d = 0; d < kMovedDim; ++d) row[d] += 0.2f * (0.5f + (d == of / kMovedEndings ? 2 : 0) - row[d]);
      });
    }
}

void push(float* row, int32_t d, float by) {
  row[d] += by;
}

std::vector<float> row_of(Parameters& parameters, Slot slot) {
  return {parameters.input.rows.row(slot), parameters.input.rows.row(slot) + kMovedDim};
}

TEST(HybridMoves, GiveUnseenWordsTheMeaningOfTheirStem) {
  Parameters parameters = moved_model();
  EXPECT_FALSE(parameters.hybrid->has_learnt());
  learn_stems(parameters, 30);
  EXPECT_TRUE(parameters.hybrid->has_learnt());
  for (int32_t stem = 0; stem < kMovedStems; ++stem)
    EXPECT_EQ(place_of_largest(made_of(*parameters.hybrid, std::string(kMovedStem[stem]) + "ist")), stem);
}

TEST(HybridMoves, ARareWordsRowIsWhereItHasMovedAndWhereWordsSpelledAlikeHaveTakenIt) {
  Parameters parameters = moved_model();
  learn_stems(parameters, 2);
  const auto stay = [](Slot, float*) {};
  const Slot word = 3, alike = 5, unlike = 33;
  visit(parameters, {word, alike, unlike}, 1, stay);
  const std::vector<float> before = row_of(parameters, word), alike_before = row_of(parameters, alike),
                           unlike_before = row_of(parameters, unlike);
  visit(parameters, {word}, 1, [](Slot, float* row) { push(row, 9, 1); });
  EXPECT_EQ(row_of(parameters, alike), alike_before) << "before it is visited";
  visit(parameters, {word, alike, unlike}, 1, stay);
  EXPECT_NEAR(row_of(parameters, word)[9], before[9] + 1, 1e-4);
  EXPECT_GT(row_of(parameters, alike)[9], alike_before[9] + 0.2);
  EXPECT_LT(distance(row_of(parameters, unlike), unlike_before), 1e-3);
}

TEST(HybridMoves, FrequentWordsShareOnceInAWhileAndLoseNothing) {
  Parameters parameters = moved_model();
  const Slot often = 3;
  visit(parameters, {often}, 64 * 10, [](Slot, float* row) { push(row, 9, 1); });  // shared: it was rare before
  const auto ngrams = [&] { return testing::values_of(parameters.hybrid->bag().rows()); };
  const auto before = ngrams();
  for (int i = 0; i < 9; ++i) visit(parameters, {often}, 1, [](Slot, float* row) { push(row, 10, 1); });
  EXPECT_EQ(ngrams(), before) << "a tenth occurrence is awaited";
  EXPECT_NEAR(row_of(parameters, often)[10], 9, 0.1);
  visit(parameters, {often}, 1, [](Slot, float* row) { push(row, 10, 1); });
  EXPECT_NE(ngrams(), before);
  EXPECT_NEAR(row_of(parameters, often)[10], 10, 0.1);
}

TEST(HybridMoves, TheEndSharesWhatWaitsAndLetsAllTakeItUp) {
  Parameters parameters = moved_model();
  learn_stems(parameters, 40);
  const Slot often = 3, alike = 5;
  visit(parameters, {often}, 1, [](Slot, float* row) { push(row, 9, 4); });
  const std::vector<float> alike_before = row_of(parameters, alike);
  parameters.hybrid->finish(parameters);
  EXPECT_GT(row_of(parameters, often)[9], 4);
  EXPECT_GT(row_of(parameters, alike)[9], alike_before[9] + 0.2);
  const testing::Rows rows = testing::values_of(parameters.input.rows);
  parameters.hybrid->finish(parameters);
  EXPECT_EQ(testing::values_of(parameters.input.rows), rows) << "nothing is left to do";
  EXPECT_EQ(parameters.hybrid->save().composed.rows, 0);
}

TEST(HybridMoves, AlongTheMeanOfAllRowsTheyAreSharedLess) {
  const auto shared_along = [](int32_t d) {
    Parameters parameters = moved_model();
    for (int round = 0; round < 300; ++round)
      for (Slot slot = 0; slot < kMovedWords; slot += 8)
        visit(parameters, {slot}, 1, [](Slot, float* row) { row[15] = 1; });
    const Slot word = 3, alike = 5;
    visit(parameters, {word, alike}, 1, [](Slot, float*) {});
    visit(parameters, {word}, 1, [&](Slot, float* row) { push(row, d, 1); });
    const float before = row_of(parameters, alike)[static_cast<size_t>(d)];
    visit(parameters, {alike}, 1, [](Slot, float*) {});
    EXPECT_GT(row_of(parameters, word)[static_cast<size_t>(d)], 0.9) << "itself it moves all the way";
    return row_of(parameters, alike)[static_cast<size_t>(d)] - before;
  };
  EXPECT_NEAR(shared_along(15) / shared_along(9), 0.45, 0.05);
}

TEST(HybridMoves, WordsThatAllGoOneWayAtOnceDoNotSwingPastIt) {
  Parameters parameters = moved_model();
  std::vector<Slot> all;
  for (Slot slot = 0; slot < kMovedWords; ++slot) all.push_back(slot);
  for (int round = 0; round < 100; ++round)
    visit(parameters, all, 20, [](Slot of, float* row) {
      const int32_t d = 8 + of % kMovedEndings;  // by their endings
      for (int32_t i = 0; i < kMovedDim; ++i) row[i] += 0.5f * ((i == d ? 1.0f : 0.0f) - row[i]);
    });
  parameters.hybrid->finish(parameters);
  for (const Slot slot : all)
    EXPECT_NEAR(row_of(parameters, slot)[static_cast<size_t>(8 + slot % kMovedEndings)], 1, 0.5) << moved_word(slot);
}

TEST(HybridMoves, ASpellingOfWhichNothingIsKnownGetsWhatAllHaveInCommon) {
  Parameters parameters = moved_model();
  learn_stems(parameters, 30);
  parameters.hybrid->finish(parameters);
  parameters.hybrid->note_common(parameters);
  const HybridVectors vectors(std::move(parameters.hybrid->copy_spellings()).value());
  std::vector<float> out(kMovedDim);
  ASSERT_TRUE(vectors.generate("zzz", out).ok());
  EXPECT_TRUE(std::equal(out.begin(), out.end(), vectors.common_part().begin(), vectors.common_part().end()));
  EXPECT_NEAR(out[kMovedDim - 1], 0.5, 0.05);  // no stem means anything there
  const std::vector<float> known = made_of(*parameters.hybrid, "boatering"),
                           half = made_of(*parameters.hybrid, "boaterzzzz");
  EXPECT_GT(known[0], half[0]) << "what is not known of a spelling is as words are on the average";
  EXPECT_GT(half[0], out[0]);
}

// Words enough to tell where they spread most: along kWide, by their number and not by their meaning.
constexpr int32_t kWide = 12, kManyWords = 10 * kMovedDim;
Parameters spread_model() {
  Parameters parameters = std::move(Parameters::make({.rows = kManyWords, .dim = kMovedDim})).value();
  parameters.hybrid =
      std::move(Hybrid::make({.dim = kMovedDim, .words_max = kManyWords, .bag = Hybrid::moved_bag()})).value();
  for (Slot slot = 0; slot < kManyWords; ++slot) {
    parameters.hybrid->set_word(slot, moved_word(slot % kMovedWords) + std::string(1 + slot / kMovedWords, 'a'));
    visit(parameters, {slot}, 1, [](Slot of, float* row) {
      row[(of % kMovedWords) / kMovedEndings] += 1;
      row[kWide] += 10 * (of % 2 == 0 ? 1.0f : -1.0f);
    });
  }
  parameters.hybrid->finish(parameters);
  return parameters;
}

TEST(HybridMoves, VectorsAreServedWithHalfOfWhereAllSpreadMost) {
  Parameters parameters = spread_model();
  const testing::Rows trained = testing::values_of(parameters.input.rows);
  const std::vector<float> unseen = made_of(*parameters.hybrid, "lampisless");
  parameters.hybrid->note_common(parameters);
  const Matrix served = std::move(parameters.hybrid->served_rows(parameters, kManyWords)).value();
  EXPECT_EQ(testing::values_of(parameters.input.rows), trained) << "they stay as they are";
  for (Slot slot = 0; slot < kManyWords; ++slot)
    EXPECT_NEAR(served.row(slot)[kWide], 0.5f * row_of(parameters, slot)[kWide], 0.2);
  EXPECT_NEAR(made_of(*parameters.hybrid, "lampisless")[kWide], 0.5f * unseen[kWide], 0.2);
  EXPECT_GT(std::abs(unseen[kWide]), 1);
}

TEST(HybridMoves, WhereAllSpreadMostIsKeptForWhoAsksLater) {
  Parameters parameters = spread_model();
  parameters.hybrid->note_common(parameters);
  const auto copy = std::move(parameters.hybrid->copy_spellings()).value();
  EXPECT_EQ(made_of(*copy, "lampisless"), made_of(*parameters.hybrid, "lampisless"));
  EXPECT_EQ(copy->mean(), parameters.hybrid->mean());
}

TEST(HybridMoves, AStateWithoutWhereAllSpreadMostIsReadAndOneThatCannotBeIsNot) {
  Parameters parameters = spread_model();
  const std::vector<float> whole = made_of(*parameters.hybrid, "lampisless");
  parameters.hybrid->note_common(parameters);
  const Hybrid::Saved saved = parameters.hybrid->save();
  const auto restore = [&](const std::string& state) {
    return Hybrid::restore(state, "x", kManyWords, saved.rows, saved.duals);
  };
  const size_t wide_bytes = 2 * kMovedDim * sizeof(float);
  const size_t wide =
      saved.state.size() - sizeof(int64_t) - parameters.hybrid->bag().buckets().size_bytes() - wide_bytes;
  std::string before = saved.state, broken = saved.state;
  before.erase(wide, wide_bytes);
  before[8] = 2;  // the version, behind the magic
  const auto read = restore(before);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_NEAR(made_of(**read, "lampisless")[kWide] / whole[kWide], 1, 0.1);
  const float far = 3;
  std::memcpy(broken.data() + wide, &far, sizeof far);
  EXPECT_EQ(restore(broken).status().code(), Code::kDataLoss);
}

TEST(HybridMoves, OfFewWordsNothingIsSaidOfWhereTheySpread) {
  Parameters parameters = moved_model();
  learn_stems(parameters, 30);
  parameters.hybrid->note_common(parameters);
  const Matrix served = std::move(parameters.hybrid->served_rows(parameters, kMovedWords)).value();
  for (Slot slot = 0; slot < kMovedWords; ++slot)
    EXPECT_TRUE(std::equal(served.row(slot), served.row(slot) + kMovedDim, parameters.input.rows.row(slot)));
}

TEST(HybridMoves, ANewWordOfASlotStartsFromItsSpelling) {
  Parameters parameters = moved_model();
  const std::vector<float> drawn = row_of(parameters, 9);
  parameters.set_word(9, "lampisist");
  EXPECT_EQ(row_of(parameters, 9), drawn) << "nothing is known yet";
  learn_stems(parameters, 30);
  parameters.restart(9, 77);
  parameters.set_word(9, "lampisist");
  const std::vector<float> start = row_of(parameters, 9);
  EXPECT_EQ(place_of_largest(start), 2);
  EXPECT_EQ(parameters.hybrid->met(9), 0);
  visit(parameters, {9}, 1, [](Slot, float*) {});
  EXPECT_LT(distance(row_of(parameters, 9), start), 1e-4) << "its first visit adds nothing of itself";
}

TEST(HybridMoves, RowsThatAreNotFiniteTeachNothing) {
  Parameters parameters = moved_model();
  learn_stems(parameters, 30);
  visit(parameters, {5}, 1'000, [](Slot, float* row) { row[0] = std::nanf(""); });
  for (const float value : made_of(*parameters.hybrid, "boaterist")) EXPECT_TRUE(std::isfinite(value));
}

TEST(HybridMoves, GoOnBitForBitAfterTheyWereRestored) {
  Parameters parameters = moved_model();
  learn_stems(parameters, 31);
  Parameters again = moved_model();
  for (Slot slot = 0; slot < kMovedWords; ++slot)
    std::copy_n(parameters.input.rows.row(slot), kMovedDim, again.input.rows.row(slot));
  {
    const Hybrid::Saved saved = parameters.hybrid->save();
    ASSERT_GT(saved.composed.rows, 0) << "moves wait to be shared";
    again.hybrid = std::move(Hybrid::restore(saved.state, "x", 2 * kMovedWords, saved.rows, saved.duals)).value();
    for (Slot slot = 0; slot < kMovedWords; ++slot) again.hybrid->restore_word(slot, moved_word(slot));
    ASSERT_TRUE(again.hybrid->restore_composed(saved.composed, again).ok());
  }
  EXPECT_TRUE(again.hybrid->by_moves());
  for (Parameters* each : {&parameters, &again}) {
    learn_stems(*each, 7);
    each->hybrid->finish(*each);
  }
  EXPECT_EQ(again.hybrid->save().state, parameters.hybrid->save().state);
  EXPECT_EQ(testing::values_of(again.input.rows), testing::values_of(parameters.input.rows));
  EXPECT_EQ(made_of(*again.hybrid, "boaterist"), made_of(*parameters.hybrid, "boaterist"));
}

TEST(HybridMoves, ATableOfRowsThatAreTooFewIsRefused) {
  Parameters parameters = moved_model();
  learn_stems(parameters, 31);
  const Matrix few = std::move(Matrix::make(3, kMovedDim)).value(),
               narrow = std::move(Matrix::make(kMovedWords, 3)).value();
  for (const Matrix* wrong : {&few, &narrow})
    EXPECT_EQ(parameters.hybrid->restore_composed(wrong->view(), parameters).code(), Code::kDataLoss);
}

TEST(HybridMoves, WhatComesWhileTheyAreSavedIsSharedLater) {
  Parameters parameters = moved_model();
  learn_stems(parameters, 40);
  const auto ngrams = [&] { return testing::values_of(parameters.hybrid->bag().rows()); };
  const auto visit_elsewhere = [&](float by) {
    std::thread([&] { visit(parameters, {3}, 100, [&](Slot, float* row) { push(row, 9, by); }); }).join();
  };
  const auto before = ngrams();
  {
    const Hybrid::Saved saved = parameters.hybrid->save();
    visit_elsewhere(4);
    EXPECT_EQ(ngrams(), before);
  }
  const float alike = made_of(*parameters.hybrid, "boateren")[9];
  visit_elsewhere(0);
  EXPECT_GT(made_of(*parameters.hybrid, "boateren")[9], alike + 1) << "all of the move";
}

TEST(HybridMoves, OneThatIsToBeTaughtByRowsBeginsAnewAndKnowsHowOftenWordsWereMet) {
  Parameters parameters = moved_model();
  learn_stems(parameters, 30);
  parameters.hybrid = std::move(parameters.hybrid->to_be_taught_by_rows()).value();
  EXPECT_FALSE(parameters.hybrid->by_moves());
  EXPECT_FALSE(parameters.hybrid->has_learnt());
  EXPECT_EQ(parameters.hybrid->met(5), 30);
  for (Slot slot = 0; slot < kMovedWords; ++slot) parameters.hybrid->restore_word(slot, moved_word(slot));
  for (int i = 0; i < 3; ++i) parameters.hybrid->finish(parameters);
  EXPECT_EQ(place_of_largest(made_of(*parameters.hybrid, "lampisist")), 2);
}

Chunk long_chunk(int32_t words, uint64_t seed) {
  Random random(seed);
  std::vector<std::vector<Slot>> sentences(1);
  for (int32_t i = 0; i < words; ++i) sentences[0].push_back(testing::draw_slot(random, 0, kMovedWords));
  return testing::chunk_of(sentences);
}

TEST(HybridMoves, AWorkerTrainsOnAllOfALongChunkPartByPart) {
  const Vocabulary vocabulary = testing::equal_words(kMovedWords);
  const SamplingTables tables(vocabulary, 0);
  Parameters hybrid = moved_model();
  Parameters plain = std::move(Parameters::make({.rows = kMovedWords, .dim = kMovedDim})).value();
  const Chunk chunk = long_chunk(5'000, 3);
  std::vector<StepStats> stats;
  for (auto [parameters, model] : {std::pair{&plain, "sgns"}, std::pair{&hybrid, "hybrid"}}) {
    ModelOptions options;
    options.model = model;
    auto worker = std::move(make_model_worker(options, *parameters)).value();
    Random random(3);
    stats.push_back(worker->step_noted(chunk, tables, 0.05f, random, {.fresh = true, .name = 7}));
    const std::vector<ChunkStats> told = worker->told();
    ASSERT_EQ(told.size(), 1);
    EXPECT_EQ(told[0].pairs, stats.back().pairs);
  }
  EXPECT_GT(stats[1].pairs, 0.97 * static_cast<double>(stats[0].pairs)) << "windows end where parts do";
  EXPECT_EQ(stats[1].fresh_pairs, stats[1].pairs);
  EXPECT_EQ(hybrid.hybrid->met_here(), 5'000);
  EXPECT_NEAR(stats[1].loss / static_cast<double>(stats[1].pairs), stats[0].loss / static_cast<double>(stats[0].pairs),
              1);
}

TEST(HybridMoves, SeveralThreadsTrainWhileWordsAreToldAndSpellingsAsked) {
  constexpr int32_t kThreads = 3;
  const Vocabulary vocabulary = testing::equal_words(kMovedWords);
  const SamplingTables tables(vocabulary, 0);
  Parameters parameters = moved_model(kThreads);
  std::vector<std::thread> threads;
  for (int32_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      ModelOptions options;
      options.model = "hybrid";
      options.threads = kThreads;
      auto worker = std::move(make_model_worker(options, parameters)).value();
      Random random(static_cast<uint64_t>(i));
      for (uint64_t k = 0; k < 10; ++k) worker->step(long_chunk(1'000, k), tables, 0.05f, random);
      EXPECT_TRUE(worker->settle().ok());
    });
  for (Slot slot = kMovedWords; slot < kMovedWords + 20; ++slot) {
    const RowLocks::Guard guard(parameters.locks, std::span(&slot, 1), std::span(&slot, 1));
    parameters.grow(std::max<int64_t>(parameters.rows(), slot + 1));
    parameters.restart(slot, static_cast<uint64_t>(slot));
    parameters.set_word(slot, "lampis" + std::to_string(slot));
    EXPECT_TRUE(parameters.hybrid->copy_spellings().ok());
  }
  for (std::thread& thread : threads) thread.join();
  parameters.hybrid->finish(parameters);
  EXPECT_EQ(parameters.hybrid->met_here(), kThreads * 10'000);
  for (const float value : made_of(*parameters.hybrid, "boaterist")) EXPECT_TRUE(std::isfinite(value));
}

}  // namespace
}  // namespace streamvec
