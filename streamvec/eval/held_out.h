// The training objective on text the model did not train on.
#pragma once

#include <cstdint>

#include "streamvec/core/status.h"
#include "streamvec/eval/sentences.h"
#include "streamvec/model/snapshot.h"

namespace streamvec {

struct HeldOutLoss {
  double loss = 0;     // mean per pair (skip-gram) or per centre word (cbow)
  double weight = 0;   // the expected number of pairs (or of centre words with a context) that it is the mean of
  int64_t tokens = 0;  // known words read, before subsampling
};

// The mean of -log sigma(u_o.v_c) - sum_k log sigma(-u_k.v_c) over the text: v input and u output rows, c the centre
// word and o a word of its window. The window is not drawn but averaged over (a pair at distance d counts
// (window - d + 1) / window times); for "cbow" v_c is the mean of the window's input rows and o the centre word,
// averaged over window sizes. Frequent words are subsampled and `negatives` words are drawn for each centre, from
// count^smoothing, by the seed; as in training a drawn word equal to o is passed over.
// A model that knows nothing (zeros) has (1 + negatives) * log 2.
// kFailedPrecondition when the snapshot has no output rows; kInvalidArgument when the text has no pair of known words.
Result<HeldOutLoss> measure_held_out(const Snapshot& snapshot, const SentenceStream& stream,
                                     const PairOptions& options);

}  // namespace streamvec
