// A model at one moment, whole and unchanging: what is queried, evaluated, exported and saved.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "streamvec/core/matrix.h"
#include "streamvec/model/word_generator.h"
#include "streamvec/vocab/vocabulary.h"

namespace streamvec {

// Rows go by slot. `output` has no rows when it is not known (imported vectors often come alone).
struct Snapshot {
  std::string model = "sgns";  // the --model that made it
  int64_t step = 0;            // training chunks behind it; 0 for imported vectors
  Vocabulary vocabulary;
  Matrix input;                                    // the word vectors: vocabulary.size() x dim
  Matrix output;                                   // the context vectors, likewise, or empty
  std::shared_ptr<const WordGenerator> generator;  // makes vectors of words outside the vocabulary; nullptr: none does

  int64_t dim() const { return input.cols(); }
};

}  // namespace streamvec
