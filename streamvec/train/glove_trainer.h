// Training GloVe on text that can be read twice: one pass counts co-occurrences, in the memory that the options allow;
// then every epoch is one iteration over all cells.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "streamvec/train/checkpoint.h"
#include "streamvec/train/trainer.h"
#include "streamvec/train/training_start.h"

namespace streamvec {

// Trains what prepare() has begun into directory `out`, which `writer` has locked. `position` is what the directory's
// checkpoint keeps under kGlovePosition (null: nothing): a run that was stopped counts its text again, and goes on
// after the tile where it was, bit for bit with one thread. Text that is not the same any more is trained on from the
// first iteration, with a note.
Result<TrainProgress> train_glove(TrainingStart start, const TrainOptions& options, CheckpointWriter writer,
                                  const std::string& out, const nlohmann::json& position, const TrainHooks& hooks);

constexpr const char* kGlovePosition = "glove";

}  // namespace streamvec
