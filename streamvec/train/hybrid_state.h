// What the hybrid model (model/hybrid.h) has beyond tables: its generator. `input` of a checkpoint holds what queries
// read, words' rows blended with what their spellings say; the rows that are trained are kept under a name of their
// own.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "streamvec/model/hybrid_vectors.h"
#include "streamvec/train/model_state.h"

namespace streamvec {

class HybridState final : public ModelState {
 public:
  Status take_rows(Checkpoint& existing) const override;
  Status begin(const TrainOptions& options, Checkpoint* existing, const Vocabulary& vocabulary,
               Parameters& parameters) const override;
  void finish(Parameters& parameters) const override;
  Result<Matrix> input_rows(Parameters& parameters, int64_t rows) const override;
  Status add_to(CheckpointContent& content, Parameters& parameters) override;
  Result<std::shared_ptr<const WordGenerator>> spellings(Parameters& parameters,
                                                         const LockWords& lock_words) const override;
  bool is_for_queries(std::string_view name) const override;
  Result<std::shared_ptr<const WordGenerator>> generator(Checkpoint& loaded,
                                                         const std::string& directory) const override;

 private:
  Matrix served_;
};

}  // namespace streamvec
