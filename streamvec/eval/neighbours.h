// Which words lie nearest: the exact search over a snapshot's word vectors, by cosine.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/model/snapshot.h"
#include "streamvec/vocab/vocabulary.h"

namespace streamvec {

struct Neighbour {
  Slot slot = kNoSlot;
  float cosine = 0;
};

// A word of a combination: king - man + woman is {king, 1}, {man, -1}, {woman, 1}.
struct WeightedWord {
  std::string word;
  double weight = 1;
};

// The slots named, with rows of length 1; a row of zeros, or with NaN or Inf, becomes zeros.
Result<Matrix> unit_rows(MatrixView<const float> rows, std::span<const Slot> slots);
Result<Matrix> unit_rows(MatrixView<const float> rows);  // all of them

// How vectors are seen when neighbours are sought: as they are, or, where the model knows of a part that all of them
// have in common (WordGenerator::common_part()), as (v - common) C^(-1/4), C being the covariance of the words'
// vectors. The common part says nothing of a word, and as most of a rare or unseen word's vector it would make all such
// words each other's neighbours. Of what is left a few directions are far longer than the others, the more so the less
// rows were trained, and would decide alone. The cosine of two words is of their vectors as they are. Thread-safe once
// made.
class SearchSpace {
 public:
  // kResourceExhausted: no memory.
  static Result<SearchSpace> make(const Snapshot& snapshot);
  // A vector, as the snapshot has them, seen so. REQUIRES: of the snapshot's dimension.
  std::vector<float> own_part(std::span<const float> vector) const;
  // All words' rows seen so, with length 1 or zero: what neighbours are sought among.
  Result<Matrix> search_rows(const Snapshot& snapshot) const;

 private:
  std::vector<float> common_;  // empty: vectors are taken as they are
  Matrix map_;
};

// Borrows the snapshot, which must outlive it, and owns its search_rows(). Thread-safe.
class NeighbourIndex {
 public:
  // Neighbours are sought among the first `limit` slots (after a counting pass the most frequent words); 0: among all.
  // kResourceExhausted when there is no memory for the copy.
  static Result<NeighbourIndex> make(const Snapshot& snapshot, int64_t limit = 0);

  // The k nearest words, nearest first, fewer when there are no more; of equal cosines the lower slot comes first.
  // The word itself is left out. A word that is unknown as written and case-folded has the neighbours of what the model
  // makes of its spelling; kNotFound when it makes nothing (vector_of(), word_vector.h). Where that is the common part
  // alone, all words are as near, and the cosines 0.
  Result<std::vector<Neighbour>> nearest(std::string_view word, int32_t k) const;
  // Nothing is left out. kInvalidArgument when the vector has another dimension or is not finite.
  Result<std::vector<Neighbour>> nearest(std::span<const float> vector, int32_t k) const;
  // Of the weighted sum of the words' own parts with length 1; the words themselves are left out.
  Result<std::vector<Neighbour>> nearest(std::span<const WeightedWord> words, int32_t k) const;
  // SearchSpace's of the snapshot.
  std::vector<float> own_part(std::span<const float> vector) const { return space_.own_part(vector); }
  // Of what is the sum of own parts already, the `excluded` words left out. REQUIRES: of the model's dimension.
  std::vector<Neighbour> nearest_to_sum(std::span<const float> sum, std::span<const Slot> excluded, int32_t k) const;

  Result<double> cosine(std::string_view a, std::string_view b) const;

  const Vocabulary& vocabulary() const { return snapshot_->vocabulary; }

 private:
  NeighbourIndex(const Snapshot& snapshot, SearchSpace space, Matrix rows, int64_t limit)
      : snapshot_(&snapshot), space_(std::move(space)), rows_(std::move(rows)), limit_(limit) {}
  std::vector<Neighbour> search(std::span<const float> vector, std::span<const Slot> excluded, int32_t k) const;

  const Snapshot* snapshot_;
  SearchSpace space_;
  Matrix rows_;
  int64_t limit_;
};

}  // namespace streamvec
