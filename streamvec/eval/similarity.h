// Word similarity: do the cosines order word pairs as people do?
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/model/snapshot.h"

namespace streamvec {

struct SimilarityPair {
  std::string a, b;
  double score = 0;
};

struct SimilaritySet {
  std::string name;
  std::vector<SimilarityPair> pairs;
};

struct SimilarityResult {
  std::string set;
  double spearman = 0;  // over the covered pairs; NaN when they are fewer than two, or all scores or cosines are equal
  int64_t pairs = 0;
  int64_t covered = 0;  // pairs whose words are both known; the others are left out of the correlation. All of them
                        // when the model makes vectors of spellings; one of which it knows nothing has cosine 0
};

// Reads "word word score" lines: tabs, commas or spaces; blank lines and '#' comments skipped; a first line whose score
// is not a number is a header. kInvalidArgument with path and line when a line has other than three columns or a score
// is no finite number, or when there are no pairs.
Result<SimilaritySet> read_similarity_set(const std::string& path);

// Words are looked up as written, else case-folded. A word whose vector is zero or not finite has cosine 0 with all.
SimilarityResult measure_similarity(const Snapshot& snapshot, const SimilaritySet& set);

// Spearman's rank correlation; equal values share the average of their ranks. NaN where it is not defined.
// REQUIRES: x.size() == y.size().
double spearman(std::span<const double> x, std::span<const double> y);

}  // namespace streamvec
