// The training pairs of a text as the experiment of 2018 made them: all at once, in memory.
#pragma once

#include <cstdint>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/eval/sentences.h"
#include "streamvec/vocab/vocabulary.h"

namespace streamvec {

struct Pair2018 {
  Slot centre, context;
};

struct PairOptions2018 {
  int32_t window = 5;  // words to each side, each centre draws 1..window
  double sample = 2e-3;
  bool removes_types = true;  // the fault: a frequent word is kept everywhere or nowhere, by one draw
  uint64_t seed = 1;
};

// `vocabulary` must be the one that the sentences' slots are of. 8 bytes a pair.
Result<std::vector<Pair2018>> make_pairs_2018(const SentenceStream& stream, const Vocabulary& vocabulary,
                                              const PairOptions2018& options);

// A copy of the rows as the character model's evaluation of 2018 had them: those of every `batch` neighbours in
// reversed order, so that nearly every word has another one's vector. REQUIRES: batch > 0.
Result<Matrix> reversed_batches(const Matrix& rows, int64_t batch);

}  // namespace streamvec
