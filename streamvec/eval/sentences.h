// Text as the measures read it: sentences of slots, streamed, as often as asked, never held.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "streamvec/core/status.h"
#include "streamvec/vocab/vocabulary.h"

namespace streamvec {

using SentenceVisitor = std::function<void(std::span<const Slot>)>;

// Calls the visitor with every sentence in order, the same ones each time it is called; fails as its source does.
// Unknown words are left out of a sentence beforehand, as in training (kNoSlot is skipped too).
using SentenceStream = std::function<Status(const SentenceVisitor&)>;

// How training draws its pairs from text. Give the values the model was trained with.
struct PairOptions {
  int32_t window = 5;  // words to each side, each centre draws 1..window: at distance d a pair weighs
                       // (window - d + 1) / window
  int32_t negatives = 10;
  double sample = 2e-3;     // subsampling threshold of frequent words; 0 keeps all
  double smoothing = 0.75;  // negatives follow count^smoothing
  uint64_t seed = 1;        // of the subsampling and of negatives: one seed, one result
};

// kInvalidArgument with the value when an option is out of range.
Status check(const PairOptions& options);

// Visits every sentence after subsampling by a draw that depends on (seed, sentence number) alone. `number` is the
// sentence's place in the stream, from 0.
Status visit_subsampled(const SentenceStream& stream, const Vocabulary& vocabulary, const PairOptions& options,
                        const std::function<Status(int64_t number, std::span<const Slot>)>& visitor);

}  // namespace streamvec
