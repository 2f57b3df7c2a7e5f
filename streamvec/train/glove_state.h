// What the glove model (model/glove.h) needs of checkpoints beyond other models: `input` holds the vectors that queries
// read, the sums of words' and contexts' rows, so the rows themselves, biases and AdaGrad's sums have names of their
// own. A stream's cells are in glove.bin.
#pragma once

#include <nlohmann/json.hpp>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/model/parameters.h"
#include "streamvec/train/checkpoint.h"
#include "streamvec/train/trainer.h"

namespace streamvec {

// kInvalidArgument for options that glove cannot be trained with.
Status check_glove(const TrainOptions& options);
// Adds the options that decide what glove computes to the description of a run.
void describe_glove(const TrainOptions& options, nlohmann::json& description);

// Puts the rows of the checkpoint, which is of a glove model, into `parameters`, made for its shape.
Status restore_glove(Checkpoint& existing, Parameters& parameters);
// Makes the parameters ready to be trained as the options say.
void set_glove(const TrainOptions& options, Parameters& parameters);
// Gives them a table of cells, that of `existing` (nullptr: none) where it has one. `half_life` is in the unit of the
// times that cells are counted at.
Status add_cells(const TrainOptions& options, double half_life, const Checkpoint* existing, Parameters& parameters);

// Owns what content of a checkpoint borrows, while it is saved.
class GloveState {
 public:
  // Nothing for parameters of other models.
  Status add_to(CheckpointContent& content, Parameters& parameters);

 private:
  Matrix vectors_;
};

}  // namespace streamvec
