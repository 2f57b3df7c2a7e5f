// What a trained hybrid model says of words that it has never met.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/model/hybrid.h"
#include "streamvec/model/word_generator.h"

namespace streamvec {

// The file of a checkpoint that has Hybrid::save(), and the names of its tables.
constexpr const char* kHybridFile = "hybrid.bin";
// The rows that are trained; `input` has those that are served.
constexpr const char* kHybridWords = "hybrid.words";
// Taught by moves, in the middle of a run: what rows were made as, by slot.
constexpr const char* kHybridComposed = "hybrid.composed";
constexpr const char* kHybridNgrams = "hybrid.ngrams";  // of the bag
constexpr const char* kHybridDuals = "hybrid.duals";    // likewise, by slot

class HybridVectors final : public WordGenerator {
 public:
  explicit HybridVectors(std::unique_ptr<const Hybrid> hybrid) : hybrid_(std::move(hybrid)), mean_(hybrid_->mean()) {}

  // What the spelling's n-grams make, with the mean of all words in the place of what is not known of it; the mean
  // alone when none of them is known.
  // kFailedPrecondition when training was stopped so early that the generator has learnt nothing.
  Status generate(std::string_view word, std::span<float> out) const override;
  // The mean. With it rare and unseen words are near to each other before all, whatever they mean.
  std::span<const float> common_part() const override { return mean_; }
  bool folds_case() const override { return hybrid_->options().fold_case; }

 private:
  std::unique_ptr<const Hybrid> hybrid_;
  std::vector<float> mean_;
};

}  // namespace streamvec
