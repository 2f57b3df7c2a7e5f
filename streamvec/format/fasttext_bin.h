// fastText's own model files (.bin, version 12; 11 is read too): settings, dictionary, the input table (the words' own
// rows, then one per bucket of n-grams) and the output table. Skip-gram and CBOW models pass both ways with equal
// vectors, of words that were seen and of any spelling. Quantised and supervised models are refused.
#pragma once

#include <string>
#include <string_view>

#include "streamvec/core/durable_file.h"
#include "streamvec/core/status.h"
#include "streamvec/model/snapshot.h"

namespace streamvec {

// Whether a file begins as fastText's do.
bool looks_like_fasttext_bin(std::string_view head);

// A model with n-grams becomes a `subword` snapshot with its generator, one without (-maxn 0) `sgns` or `cbow`. The
// output table comes along except from hierarchical softmax, where it is not of words. Errors name the file and a byte
// offset; every count is checked against the file's size before memory is taken for it, and nothing may follow the end.
Result<Snapshot> read_fasttext_bin(const std::string& path);

// Writes any snapshot: one of the subword model with its n-grams, others as words without any. Context vectors that are
// not known are written as zeros. kInvalidArgument: a word holds NUL, a row is not finite, or the n-grams are of jamo.
// The tables have all buckets: 1.6 GB for 2,000,000 of dim 200.
Status write_fasttext_bin(const Snapshot& snapshot, FileWriter& file);

}  // namespace streamvec
