// Small character models, their words and batches, that tests of them share.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/model/rbsg.h"

namespace streamvec::testing {

using Negatives = RbsgBatch::Negatives;

inline const std::vector<std::string> kSpelledWords{"sing", "singer", "song",   "sang", "sun",
                                                    "son",  "한국",   "한국어", "a",    "naïve"};

inline RbsgOptions small_rbsg(int32_t threads = 1) {
  return {.dim = 11, .hidden = 16, .character_dim = 6, .negatives = 3, .threads = threads, .seed = 5};
}

inline std::unique_ptr<Rbsg> spelled_model(int32_t threads = 1, bool muon = true) {
  RbsgOptions options = small_rbsg(threads);
  options.muon = muon;
  auto made = std::move(Rbsg::make(options)).value();
  for (size_t slot = 0; slot < kSpelledWords.size(); ++slot)
    made->set_word(static_cast<Slot>(slot), kSpelledWords[slot]);
  return made;
}

// Pairs over the words, with repetitions; slot 9 is never trained on.
inline RbsgBatch batch_of_pairs(int32_t pairs, Negatives form, uint64_t seed = 1) {
  Random random(seed);
  RbsgBatch batch;
  batch.form = form;
  const auto draw = [&] { return static_cast<Slot>(random.below(9)); };
  for (int32_t i = 0; i < pairs; ++i) {
    batch.centres.push_back(draw());
    batch.contexts.push_back(draw());
  }
  for (int32_t i = 0; i < (form == Negatives::kPool ? 7 : 3 * pairs); ++i) batch.negatives.push_back(draw());
  return batch;
}

inline std::vector<std::vector<double>> spelled_vectors(Rbsg& rbsg, Rbsg::Side side, int32_t threads = 1) {
  const std::vector<std::string_view> views(kSpelledWords.begin(), kSpelledWords.end());
  Matrix out = std::move(Matrix::make(static_cast<int64_t>(views.size()), rbsg.options().dim)).value();
  EXPECT_TRUE(rbsg.embed(views, side, threads, out.view()).ok());
  std::vector<std::vector<double>> all;
  for (int64_t i = 0; i < out.rows(); ++i) all.emplace_back(out.row(i), out.row(i) + out.cols());
  return all;
}

}  // namespace streamvec::testing
