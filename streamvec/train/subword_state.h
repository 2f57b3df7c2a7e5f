// What the subword model (model/subword_table.h) has beyond tables: the rows of its n-grams. Its raw rows are kept
// under names of their own, because `input` holds the composed vectors that queries read.
#pragma once

#include <string>

#include "streamvec/model/subword_vectors.h"
#include "streamvec/train/model_state.h"

namespace streamvec {

// The same n-grams in the same rows as `other` has, for a model beside it: the values as `saved` has them, by rows, or
// new ones (nullptr).
Status add_subwords_like(const SubwordTable& other, const Matrix* saved, const Vocabulary& vocabulary,
                         Parameters& parameters);

class SubwordState final : public ModelState {
 public:
  Status check_options(const TrainOptions& options) const override;
  Status check_same(const TrainOptions& options, const Checkpoint& existing, const std::string& out) const override;
  Status take_rows(Checkpoint& existing) const override;
  Status begin(const TrainOptions& options, Checkpoint* existing, const Vocabulary& vocabulary,
               Parameters& parameters) const override;
  Result<Matrix> input_rows(Parameters& parameters, int64_t rows) const override;
  Status add_to(CheckpointContent& content, Parameters& parameters) override;
  // Nothing for a generator that is no SubwordVectors with all rows.
  Status add_to(CheckpointContent& content, const Snapshot& snapshot) override;
  Result<std::shared_ptr<const WordGenerator>> spellings(Parameters& parameters,
                                                         const LockWords& lock_words) const override;
  bool is_for_queries(std::string_view name) const override;
  Result<std::shared_ptr<const WordGenerator>> generator(Checkpoint& loaded,
                                                         const std::string& directory) const override;

 private:
  void add_index(CheckpointContent& content, const SubwordIndex& index);

  Matrix composed_;
  std::string index_;
};

}  // namespace streamvec
