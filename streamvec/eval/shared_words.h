// The words two snapshots have in common, their vectors ready to be compared, and how much each word changed.
// The inside of drift.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/kernel/top_k.h"
#include "streamvec/model/snapshot.h"

namespace streamvec {

struct SharedWord {
  Slot old_slot = kNoSlot, new_slot = kNoSlot;
  double evidence = 0;  // 1 / (1/n + 1/m) with the counts on both sides: a difference's variance goes with 1/evidence
};

// Rows go by falling evidence and are unit, centred on the mean of the first 5,000, unit again.
struct SharedWords {
  std::vector<SharedWord> words;
  Matrix old_rows, new_rows;
  std::vector<Matrix> other_rows;  // of `others`, in their order

  int64_t size() const { return static_cast<int64_t>(words.size()); }
};

// Words of at least evidence_min whose vectors have a direction, at most words_max; `others` must know them as well.
// kInvalidArgument when the vectors differ in length.
Result<SharedWords> share_words(const Snapshot& old_snapshot, const Snapshot& new_snapshot, double evidence_min,
                                int64_t words_max, std::span<const Snapshot* const> others = {});

// The k nearest rows of each row among the first `candidates`, itself left out; row i's at [i * k]. k as given or less,
// where there are fewer.
struct NeighbourTable {
  int32_t k = 0;
  std::vector<Hit> hits;

  // The first `count` of a row's, or all.
  std::span<const Hit> of(int64_t row, int32_t count) const {
    return std::span(hits).subspan(static_cast<size_t>(row * k), static_cast<size_t>(std::min(k, count)));
  }
};
NeighbourTable find_neighbours(const Matrix& rows, int64_t candidates, int32_t k);

// For every word the standard deviation, over the first k of its neighbours then and now, of how the cosine changed.
// Neighbours in `left_out` (by row; empty: none) do not count, unless fewer than k of a word's 2k were left.
std::vector<double> neighbour_changes(const SharedWords& shared, const NeighbourTable& old_neighbours,
                                      const NeighbourTable& new_neighbours, int32_t k,
                                      const std::vector<bool>& left_out = {});

// How far the halves of a stream agree on what changed. For every word the covariance, over some other words, of how
// the cosine to them changed in one half with how it changed in the other. The halves have no sentence in common, so
// that chance falls out of it (it gives either sign), and what is left is the variance of the change that both saw. A
// large change in one half alone still scatters it: the noise of the other is multiplied. REQUIRES: other_rows are of
// half a then, half b then, half a now, half b now.
//
// Over the first k of a word's neighbours then and now, as above; the root of it, with the covariance's sign: sees
// where the word left and where it came to.
std::vector<double> agreed_neighbour_changes(const SharedWords& shared, const NeighbourTable& old_neighbours,
                                             const NeighbourTable& new_neighbours, int32_t k,
                                             const std::vector<bool>& left_out = {});
// Over the first `anchors` words that are not left out (over all, unless half as many were left): steadier, nobody
// chose them.
std::vector<double> agreed_profile_changes(const SharedWords& shared, int64_t anchors,
                                           const std::vector<bool>& left_out = {});

// The rows that are in both through those in either.
double jaccard(std::span<const Hit> a, std::span<const Hit> b);

}  // namespace streamvec
