// The vector of any word: its row where the vocabulary has it, else what the model makes of its spelling.
#pragma once

#include <string_view>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/model/snapshot.h"
#include "streamvec/vocab/vocabulary.h"

namespace streamvec {

struct WordVector {
  Slot slot = kNoSlot;  // kNoSlot: the word was never seen, its vector is made from its spelling
  std::vector<float> values;

  bool seen() const { return slot != kNoSlot; }
};

// Words are looked up as written, else case-folded (find_word()). kNotFound when the word is unknown and the model
// makes no vectors, or knows nothing of this spelling; kInvalidArgument when a spelling has to be judged and is empty;
// else what WordGenerator::generate() fails with.
Result<WordVector> vector_of(const Snapshot& snapshot, std::string_view word);

}  // namespace streamvec
