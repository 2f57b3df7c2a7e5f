// What the glove model (model/glove.h) needs of checkpoints beyond other models: `input` holds the vectors that queries
// read, the sums of words' and contexts' rows, so the rows themselves, biases and AdaGrad's sums have names of their
// own. A stream's cells are in glove.bin.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "streamvec/train/model_state.h"

namespace streamvec {

// Parameters must have been made with `glove`.
class GloveState final : public ModelState {
 public:
  using ModelState::add_to;
  Status check_options(const TrainOptions& options) const override;
  Status check_same(const TrainOptions& options, const Checkpoint& existing, const std::string& out) const override;
  Status take_rows(Checkpoint& existing) const override;
  Status begin(const TrainOptions& options, Checkpoint* existing, const Vocabulary& vocabulary,
               Parameters& parameters) const override;
  Result<Matrix> input_rows(Parameters& parameters, int64_t rows) const override;
  Status add_to(CheckpointContent& content, Parameters& parameters) override;

 private:
  Matrix vectors_;
};

// Adds the options that decide what glove computes to the description of a run.
void describe_glove(const TrainOptions& options, nlohmann::json& description);

}  // namespace streamvec
