// A vector for a word that a model has never seen, made from its spelling.
#pragma once

#include <span>
#include <string_view>

#include "streamvec/core/status.h"

namespace streamvec {

// Thread-safe.
class WordGenerator {
 public:
  virtual ~WordGenerator() = default;
  // Writes the vector of any spelling, of words that were seen too: what their letters alone say. kInvalidArgument for
  // the empty string, kFailedPrecondition while the model has learnt nothing of spellings. REQUIRES: out has as many
  // values as the model's vectors.
  virtual Status generate(std::string_view word, std::span<float> out) const = 0;
  // What the vectors of all words have in common, seen or not, as far as the model knows; empty where it knows of
  // nothing such. Neighbours are sought without it (eval/neighbours.h).
  virtual std::span<const float> common_part() const { return {}; }
  // Whether it has learnt from case-folded text, so that spellings are better folded before they are given.
  virtual bool folds_case() const = 0;
};

}  // namespace streamvec
