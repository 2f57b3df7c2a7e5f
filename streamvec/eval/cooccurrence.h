// How often words stand near each other, weighted as training weighs them: the counts behind SPPMI.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/eval/sentences.h"
#include "streamvec/vocab/vocabulary.h"

namespace streamvec {

// A symmetric sparse matrix of weights n_ij = n_ji, of which rows keep the columns j >= i. A weight is a whole number
// of 1/window, so that sums are exact and do not depend on their order. 8 bytes a pair.
struct PairCounts {
  int32_t window = 1;
  std::vector<int64_t> begin;   // row i is [begin[i], begin[i + 1])
  std::vector<Slot> column;     // rising within a row
  std::vector<uint32_t> units;  // n_ij * window; stays at 2^32 - 1 when it would pass it

  int32_t size() const { return static_cast<int32_t>(begin.size()) - 1; }
  int64_t pairs() const { return static_cast<int64_t>(column.size()); }
  double weight(int64_t k) const { return static_cast<double>(units[static_cast<size_t>(k)]) / window; }
  // n_i = sum_j n_ij over the whole matrix: the expected number of training pairs with centre i.
  std::vector<double> marginals() const;
};

struct PairCountOptions {
  PairOptions pairs;
  // Most distinct pairs, and most of them that wait in a hash table to be merged. Memory while counting is at most
  // 16 * pairs_max + 36 * buffer_max bytes, 3.4 GB for the defaults; text with fewer pairs takes what it needs.
  int64_t pairs_max = 200'000'000;
  int64_t buffer_max = 6'000'000;
};

// Counts every pair up to `window` words apart after subsampling; a pair at distance d weighs (window - d + 1) / window
// to each of its words. kResourceExhausted when the text has more distinct pairs than pairs_max.
Result<PairCounts> count_pairs(const SentenceStream& stream, const Vocabulary& vocabulary,
                               const PairCountOptions& options);
// The same for two halves of the text, sentences 0, 2, 4 ... and 1, 3, 5 ..., in one pass. Each half has the bounds
// given for one. add() of both is what count_pairs gives.
Result<std::array<PairCounts, 2>> count_pairs_of_halves(const SentenceStream& stream, const Vocabulary& vocabulary,
                                                        const PairCountOptions& options);

// The sum of both. REQUIRES: equal size and window.
PairCounts add(const PairCounts& a, const PairCounts& b);

}  // namespace streamvec
