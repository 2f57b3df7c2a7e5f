#include "streamvec/model/skip_gram_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

namespace streamvec {
namespace {

constexpr int64_t kBatchWords = 30, kBatchDim = 5;

// Sentences of ten words, some words more frequent than others.
Chunk text_of(int32_t sentences, uint64_t seed) {
  Random random(seed);
  Chunk chunk;
  for (int32_t i = 0; i < sentences; ++i) {
    for (int32_t word = 0; word < 10; ++word)
      chunk.slots.push_back(static_cast<Slot>(std::min(random.below(kBatchWords), random.below(kBatchWords))));
    chunk.sentence_ends.push_back(static_cast<int32_t>(chunk.slots.size()));
  }
  return chunk;
}

std::vector<double> counts_of(const Chunk& chunk) {
  std::vector<double> counts(kBatchWords, 1.0);
  for (const Slot slot : chunk.slots) ++counts[static_cast<size_t>(slot)];
  return counts;
}

std::shared_ptr<const SamplingTables> tables_of(const Chunk& chunk) {
  return std::make_shared<SamplingTables>(counts_of(chunk), 0.0);
}

SkipGramBatch batch_of(const Chunk& text, int64_t portion_words) {
  SkipGramBatch::Options options;
  options.window = 2;
  options.negatives = 3;
  options.pool = 16;
  options.portion_words = portion_words;
  SkipGramBatch batch(options, tables_of(text));
  batch.add(text);
  return batch;
}

Matrix drawn_rows(size_t count) {
  Matrix rows = std::move(Matrix::make(static_cast<int64_t>(count), kBatchDim)).value();
  Random random(3);
  for (size_t i = 0; i < count; ++i)
    for (int64_t k = 0; k < kBatchDim; ++k) rows.row(static_cast<int64_t>(i))[k] = random.uniform() - 0.5f;
  return rows;
}

TEST(SkipGramBatch, CutsTheTextAtSentencesAndKeepsAllOfIt) {
  const SkipGramBatch batch = batch_of(text_of(20, 1), 35);
  EXPECT_EQ(batch.portions(), 5);  // 40 words each
  EXPECT_EQ(batch.words(), 200);
}

TEST(SkipGramBatch, TheGradientIsThatOfTheValue) {
  const SkipGramBatch batch = batch_of(text_of(12, 1), 1'000);
  const auto worker = batch.make_worker();
  std::vector<uint32_t> names;
  worker->begin(0, names);
  ASSERT_EQ(std::set<uint32_t>(names.begin(), names.end()).size(), names.size());
  Matrix rows = drawn_rows(names.size()), gradient = drawn_rows(names.size());
  const Matrix before = std::move(gradient.copy()).value();
  const PortionValue value = worker->add_gradient(rows.view(), gradient.view());
  EXPECT_GT(value.weight, 100);
  for (int64_t i = 0; i < rows.rows(); i += 3)
    for (int64_t k = 0; k < kBatchDim; k += 2) {
      constexpr float kStep = 1e-2f;
      Matrix unused = drawn_rows(names.size());
      const float at = rows.row(i)[k];
      rows.row(i)[k] = at + kStep;
      const double above = worker->add_gradient(rows.view(), unused.view()).value;
      rows.row(i)[k] = at - kStep;
      const double below = worker->add_gradient(rows.view(), unused.view()).value;
      rows.row(i)[k] = at;
      EXPECT_NEAR(gradient.row(i)[k] - before.row(i)[k], (above - below) / (2 * kStep), 0.02);
    }
}

TEST(SkipGramBatch, TheValueIsTheLossOfItsPairsAndTheSharedNegatives) {
  // Rows of zeros: every pair and every negative costs log 2, and a pair is excused from its own word in the pool.
  const SkipGramBatch batch = batch_of(text_of(12, 1), 1'000);
  const auto worker = batch.make_worker();
  std::vector<uint32_t> names;
  worker->begin(0, names);
  Matrix rows = std::move(Matrix::make(static_cast<int64_t>(names.size()), kBatchDim)).value();
  Matrix gradient = std::move(Matrix::make(static_cast<int64_t>(names.size()), kBatchDim)).value();
  const PortionValue value = worker->add_gradient(rows.view(), gradient.view());
  EXPECT_LE(value.value, value.weight * (1 + 3) * std::log(2.0) * 1.0001);
  EXPECT_GT(value.value, value.weight * (1 + 3 * 0.7) * std::log(2.0));
}

TEST(SkipGramBatch, PortionsTogetherWeighEveryWordAsOftenAsItIsToBeDrawn) {
  // At rows of zeros a negative's gradient is half its weight times the input: with inputs of 1 and outputs of 0 in
  // one column, what an output row gets beside its own pairs tells how often it was drawn.
  const Chunk text = text_of(2'000, 1);
  const SkipGramBatch batch = batch_of(text, 100);
  const auto worker = batch.make_worker();
  std::vector<double> pulled(kBatchWords), expected = unigram_probabilities(counts_of(text));
  std::vector<uint32_t> names;
  double pairs = 0;
  for (int64_t portion = 0; portion < batch.portions(); ++portion) {
    worker->begin(portion, names);
    const auto count = static_cast<int64_t>(names.size());
    Matrix rows = std::move(Matrix::make(count, kBatchDim)).value(),
           gradient = std::move(Matrix::make(count, kBatchDim)).value();
    for (int64_t i = 0; i < count; ++i) rows.row(i)[0] = names[static_cast<size_t>(i)] % 2 == 0 ? 1.0f : 0.0f;
    pairs += worker->add_gradient(rows.view(), gradient.view()).weight;
    for (int64_t i = 0; i < count; ++i)
      if (names[static_cast<size_t>(i)] % 2 == 1)
        pulled[names[static_cast<size_t>(i)] / 2] += double{gradient.row(i)[0]};
  }
  const std::vector<double> counts = counts_of(text);
  double total = 0;
  for (const double each : counts) total += each;
  for (size_t word = 0; word < pulled.size(); ++word) {
    const double own = counts[word] / total;  // its share of the pairs, about, which it is excused in
    EXPECT_NEAR(pulled[word] / pairs, -0.5 * own + 0.5 * 3 * expected[word] * (1 - own), 0.01) << word;
  }
}

TEST(SkipGramBatch, IsTheSameFunctionEveryTime) {
  const Chunk text = text_of(40, 1);
  const SkipGramBatch batch = batch_of(text, 100), again = batch_of(text, 100);
  EXPECT_EQ(batch.fingerprint(), again.fingerprint());
  EXPECT_NE(batch.fingerprint(), batch_of(text_of(40, 2), 100).fingerprint());
  const auto worker = batch.make_worker(), other = again.make_worker();
  std::vector<uint32_t> names, other_names;
  for (const int64_t portion : {2, 0, 3}) {
    worker->begin(1, names);  // what was worked on before does not matter
    worker->begin(portion, names);
    other->begin(portion, other_names);
    ASSERT_EQ(names, other_names);
    const Matrix rows = drawn_rows(names.size());
    Matrix gradient = drawn_rows(names.size()), other_gradient = drawn_rows(names.size());
    EXPECT_EQ(worker->add_gradient(rows.view(), gradient.view()).value,
              other->add_gradient(rows.view(), other_gradient.view()).value);
    for (int64_t i = 0; i < rows.rows(); ++i)
      for (int64_t k = 0; k < kBatchDim; ++k) EXPECT_EQ(gradient.row(i)[k], other_gradient.row(i)[k]);
  }
}

}  // namespace
}  // namespace streamvec
