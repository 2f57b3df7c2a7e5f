// What the rbsg model (model/rbsg.h) has beyond tables: its two encoders with their moments, under names that begin
// with `rbsg.`, and its characters (rbsg.bin). The checkpoint's `input` and `output` are the vocabulary's vectors, made
// by the encoders when it is saved.
#pragma once

#include <string>
#include <vector>

#include "streamvec/model/rbsg_vectors.h"
#include "streamvec/train/model_state.h"

namespace streamvec {

class RbsgState final : public ModelState {
 public:
  Status check_options(const TrainOptions& options) const override;
  Status check_same(const TrainOptions& options, const Checkpoint& existing, const std::string& out) const override;
  Status begin(const TrainOptions& options, Checkpoint* existing, const Vocabulary& vocabulary,
               Parameters& parameters) const override;
  bool has_halves() const override { return false; }  // two more models would treble the work
  Result<Matrix> input_rows(Parameters& parameters, int64_t rows) const override;
  Status add_to(CheckpointContent& content, Parameters& parameters) override;
  using ModelState::add_to;
  Result<std::shared_ptr<const WordGenerator>> spellings(Parameters& parameters,
                                                         const LockWords& lock_words) const override;
  bool is_for_queries(std::string_view name) const override;
  Result<std::shared_ptr<const WordGenerator>> generator(Checkpoint& loaded,
                                                         const std::string& directory) const override;

 private:
  Matrix input_, output_;
  std::vector<Rbsg::Copy> states_;
  std::string index_;
};

}  // namespace streamvec
