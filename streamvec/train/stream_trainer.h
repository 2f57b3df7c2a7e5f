// Training on a stream: the sources are read on threads of their own into replay, and training threads take from it.
// One pass: words are admitted as they become frequent, fade with the half-life, and leave when there is no room.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "streamvec/ingest/intake.h"
#include "streamvec/train/checkpoint.h"
#include "streamvec/train/trainer.h"

namespace streamvec {

// Trains into directory `out`, which `writer` has locked, until every source has ended, or hooks.stop is set.
// As a node of a cluster each reads sources of its own; the first one writes and stops all, the others have no writer.
// `existing` is what the directory held; a stream in it goes on where it was: same sources (by name) at their cursors,
// vocabulary, replay, filters. A model that was no stream gives its vectors and counts, and the stream begins. A source
// that fails is noted and left; only when all have failed that is an error, and what was learnt is saved.
Result<TrainProgress> train_stream(const TrainOptions& options, std::vector<std::unique_ptr<Source>> sources,
                                   const std::vector<std::string>& source_names, std::optional<CheckpointWriter> writer,
                                   const std::string& out, std::optional<Checkpoint> existing, const TrainHooks& hooks);

}  // namespace streamvec
