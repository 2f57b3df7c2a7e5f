// Small texts, tables and measures that the tests of this folder share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/model/model.h"
#include "streamvec/model/parameters.h"
#include "streamvec/model/window_plan.h"

namespace streamvec::testing {

constexpr OptimizerKind kOptimizers[] = {OptimizerKind::kSgd, OptimizerKind::kAdagrad, OptimizerKind::kAdam};

inline Vocabulary vocabulary_of(const std::vector<int64_t>& counts) {
  Vocabulary vocabulary;
  for (size_t i = 0; i < counts.size(); ++i) vocabulary.add("w" + std::to_string(i), counts[i]);
  return vocabulary;
}

inline Vocabulary equal_words(int32_t words, int64_t count = 100) {
  return vocabulary_of(std::vector<int64_t>(static_cast<size_t>(words), count));
}

// Counts fall from 2,000 to those of rare words.
inline Vocabulary rarer_and_rarer_words(int32_t words) {
  std::vector<int64_t> counts;
  for (int32_t slot = 0; slot < words; ++slot) counts.push_back(2000 / ((slot + 1) * (slot + 1)) + 1);
  return vocabulary_of(counts);
}

inline Chunk chunk_of(const std::vector<std::vector<Slot>>& sentences) {
  Chunk chunk;
  for (const std::vector<Slot>& sentence : sentences) {
    chunk.slots.insert(chunk.slots.end(), sentence.begin(), sentence.end());
    chunk.sentence_ends.push_back(static_cast<int32_t>(chunk.slots.size()));
  }
  return chunk;
}

inline Slot draw_slot(Random& random, int32_t begin, int32_t end) {
  return begin + static_cast<Slot>(random.below(static_cast<uint32_t>(end - begin)));
}

// Sentences of 1 to 15 words, all words alike.
inline Chunk random_chunk(int32_t words, int32_t tokens, uint64_t seed) {
  Random random(seed);
  std::vector<std::vector<Slot>> sentences;
  for (int32_t left = tokens; left > 0;) {
    sentences.emplace_back(std::min(left, draw_slot(random, 1, 16)));
    for (Slot& slot : sentences.back()) slot = draw_slot(random, 0, words);
    left -= static_cast<int32_t>(sentences.back().size());
  }
  return chunk_of(sentences);
}

// Words 0 .. 9 come together in one sentence, 10 .. 19 in another, never mixed.
constexpr int32_t kPlantedWords = 20;
inline Chunk planted_chunk(uint64_t seed, int32_t sentence_count = 30) {
  Random random(seed);
  std::vector<std::vector<Slot>> sentences(static_cast<size_t>(sentence_count), std::vector<Slot>(10));
  for (std::vector<Slot>& sentence : sentences) {
    const Slot first = draw_slot(random, 0, 2) * 10;
    for (Slot& slot : sentence) slot = draw_slot(random, first, first + 10);
  }
  return chunk_of(sentences);
}

inline double cosine(const Matrix& rows, int64_t a, int64_t b) {
  double ab = 0, aa = 0, bb = 0;
  for (int64_t d = 0; d < rows.cols(); ++d) {
    ab += double{rows.row(a)[d]} * rows.row(b)[d];
    aa += double{rows.row(a)[d]} * rows.row(a)[d];
    bb += double{rows.row(b)[d]} * rows.row(b)[d];
  }
  return ab / std::sqrt(aa * bb);
}

// How much more alike two words of one planted class are than two of different ones, on average.
inline double class_gap(const Matrix& rows) {
  double sums[2] = {}, counts[2] = {};
  for (int64_t a = 0; a < kPlantedWords; ++a)
    for (int64_t b = 0; b < a; ++b) {
      sums[a / 10 == b / 10] += cosine(rows, a, b);
      ++counts[a / 10 == b / 10];
    }
  return sums[1] / counts[1] - sums[0] / counts[0];
}

// Both tables uniform in +-size, unlike what training starts with: every slope has something to show.
inline Parameters random_parameters(int64_t rows, int64_t dim, OptimizerKind optimizer = OptimizerKind::kSgd,
                                    uint64_t seed = 1, float size = 0.5f) {
  Parameters parameters = std::move(Parameters::make({rows, 0, dim, optimizer, seed})).value();
  Random random(seed);
  for (Table* table : {&parameters.input, &parameters.output})
    for (int64_t i = 0; i < rows; ++i)
      for (float& value : table->rows.view().row_span(i)) value = (random.uniform() * 2 - 1) * size;
  return parameters;
}

using Rows = std::vector<std::vector<double>>;
inline Rows values_of(const Matrix& matrix) {
  Rows rows;
  for (int64_t i = 0; i < matrix.rows(); ++i) rows.emplace_back(matrix.row(i), matrix.row(i) + matrix.cols());
  return rows;
}

inline void expect_near(const Rows& rows, const Rows& wanted, double error_max) {
  ASSERT_EQ(rows.size(), wanted.size());
  for (size_t i = 0; i < rows.size(); ++i)
    for (size_t d = 0; d < rows[i].size(); ++d) ASSERT_NEAR(rows[i][d], wanted[i][d], error_max) << "row " << i;
}

inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t d = 0; d < a.size(); ++d) sum += a[d] * b[d];
  return sum;
}

inline void add(double factor, const std::vector<double>& from, std::vector<double>& to) {
  for (size_t d = 0; d < to.size(); ++d) to[d] += factor * from[d];
}

inline double minus_log_sigma(double z) {
  return std::max(-z, 0.0) + std::log1p(std::exp(-std::abs(z)));
}
inline double sigma(double z) {
  return 1 / (1 + std::exp(-z));
}

// The loss of a text and its pairs, by plain loops.
struct Totals {
  double loss = 0;
  int64_t pairs = 0;
};

// Every block that a worker with these options and this seed will train on.
inline std::vector<WindowPlan> plans_of(const Chunk& chunk, const SamplingTables& tables, const WindowOptions& options,
                                        uint64_t seed) {
  std::vector<WindowPlan> plans;
  Random random(seed);
  WindowPlanner planner(settled(options));
  planner.begin(chunk, tables, random);
  for (WindowPlan plan; planner.next(plan);) plans.push_back(plan);
  return plans;
}

inline std::unique_ptr<ModelWorker> make_worker(const std::string& model, const std::string& kernel,
                                                const WindowOptions& windows, Parameters& parameters) {
  return std::move(make_model_worker({model, windows, kernel}, parameters)).value();
}

// A text of four words that come round and round, at the usual rate: no row grows out of bounds.
inline void expect_calm(const std::string& model, const std::string& kernel) {
  Parameters parameters = std::move(Parameters::make({.rows = 4, .dim = 20})).value();
  const auto worker = make_worker(model, kernel, {}, parameters);
  const SamplingTables tables(equal_words(4, 1'000), 0);
  std::vector<Slot> round_and_round;
  for (Slot i = 0; i < 4'000; ++i) round_and_round.push_back(i % 4);
  Random random(3);
  for (int pass = 0; pass < 5; ++pass) {
    const StepStats stats = worker->step(chunk_of({round_and_round}), tables, 0.05f, random);
    EXPECT_EQ(stats.refused, 0);
    EXPECT_LT(stats.loss / static_cast<double>(stats.pairs), 20);
  }
}

}  // namespace streamvec::testing
