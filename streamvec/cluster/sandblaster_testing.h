// A function that nodes of a Sandblaster run minimise in tests, and the same for one that has all of it at hand.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/model/skip_gram_batch.h"
#include "streamvec/optim/lbfgs_testing.h"
#include "streamvec/sync/message.h"

namespace streamvec::testing {

constexpr RowKey kSkipGramRows = 60;  // of both tables
constexpr int64_t kSkipGramDim = 6;

inline void first_row(RowKey row, std::span<float> values) {
  Random random(row + 1);
  for (float& value : values) value = random.uniform() - 0.5f;
}

inline float scale_of_row(RowKey row) {
  return 1.0f + 0.1f * static_cast<float>(row % 7);
}

// Skip-gram over sentences of ten words.
inline SkipGramBatch skip_gram() {
  Random random(5);
  Chunk text;
  for (int32_t word = 0; word < 3'000; ++word) {
    text.slots.push_back(static_cast<Slot>(std::min(random.below(kSkipGramRows / 2), random.below(kSkipGramRows / 2))));
    if (word % 10 == 9) text.sentence_ends.push_back(word + 1);
  }
  std::vector<double> counts(kSkipGramRows / 2, 1.0);
  for (const Slot slot : text.slots) ++counts[static_cast<size_t>(slot)];
  SkipGramBatch::Options options;
  options.pool = 16;
  options.portion_words = 200;
  SkipGramBatch batch(options, std::make_shared<SamplingTables>(counts, 0.0));
  batch.add(text);
  return batch;
}

// The same function of one long vector, in one piece.
inline PlainFunction plain_function(const PortionedObjective& objective) {
  return [&objective](const PlainVector& x, PlainVector& gradient) {
    const auto worker = objective.make_worker();
    std::fill(gradient.begin(), gradient.end(), 0.0);
    PortionValue all;
    std::vector<uint32_t> names;
    for (int64_t portion = 0; portion < objective.portions(); ++portion) {
      worker->begin(portion, names);
      const auto count = static_cast<int64_t>(names.size());
      Matrix rows = std::move(Matrix::make(count, kSkipGramDim)).value(),
             slopes = std::move(Matrix::make(count, kSkipGramDim)).value();
      for (int64_t i = 0; i < count; ++i)
        for (int64_t k = 0; k < kSkipGramDim; ++k)
          rows.row(i)[k] = static_cast<float>(x[names[static_cast<size_t>(i)] * kSkipGramDim + static_cast<size_t>(k)]);
      const PortionValue value = worker->add_gradient(rows.view(), slopes.view());
      all.value += value.value;
      all.weight += value.weight;
      for (int64_t i = 0; i < count; ++i)
        for (int64_t k = 0; k < kSkipGramDim; ++k)
          gradient[names[static_cast<size_t>(i)] * kSkipGramDim + static_cast<size_t>(k)] += double{slopes.row(i)[k]};
    }
    for (double& each : gradient) each /= all.weight;
    return all.value / all.weight;
  };
}

inline PlainVector first_point() {
  PlainVector x;
  std::vector<float> row(kSkipGramDim);
  for (RowKey key = 0; key < kSkipGramRows; ++key) {
    first_row(key, row);
    x.insert(x.end(), row.begin(), row.end());
  }
  return x;
}

inline PlainVector plain_scales() {
  PlainVector scales;
  for (RowKey key = 0; key < kSkipGramRows; ++key) scales.insert(scales.end(), kSkipGramDim, double{scale_of_row(key)});
  return scales;
}

}  // namespace streamvec::testing
