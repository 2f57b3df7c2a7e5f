// What the subword model (model/subword_table.h) needs of checkpoints beyond other models: its raw rows are kept under
// names of their own, because `input` holds the composed vectors that queries read.
#pragma once

#include <string>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/model/parameters.h"
#include "streamvec/model/subword_vectors.h"
#include "streamvec/text/character_ngrams.h"
#include "streamvec/train/checkpoint.h"
#include "streamvec/train/trainer.h"

namespace streamvec {

// What the options say, and `otherwise` where they are silent.
NgramOptions wanted_ngrams(const TrainOptions& options, NgramOptions otherwise);
// kFailedPrecondition with both values when the options ask for other n-grams than the checkpoint's.
Status check_same_ngrams(const TrainOptions& options, const Checkpoint& existing, const std::string& out);

// Puts the words' own rows in the place of the composed ones.
Status take_own_rows(Checkpoint& existing);
// Gives the parameters their n-grams: those of `existing` (nullptr: none), then those of every word.
Status add_subwords(const TrainOptions& options, Checkpoint* existing, const Vocabulary& vocabulary,
                    Parameters& parameters);
// The same n-grams in the same rows as `other` has, for a model beside it: the values as `saved` has them, by rows, or
// new ones (nullptr).
Status add_subwords_like(const SubwordTable& other, const Matrix* saved, const Vocabulary& vocabulary,
                         Parameters& parameters);

// Owns what content of a checkpoint borrows, while it is saved.
class SubwordState {
 public:
  // Nothing for parameters without n-grams.
  Status add_to(CheckpointContent& content, Parameters& parameters);
  // Likewise for a snapshot whose generator is no SubwordVectors with all rows. The snapshot is borrowed, too.
  void add_to(CheckpointContent& content, const Snapshot& snapshot);

 private:
  void add_index(CheckpointContent& content, const SubwordIndex& index);

  Matrix composed_;
  std::string index_;
};

}  // namespace streamvec
