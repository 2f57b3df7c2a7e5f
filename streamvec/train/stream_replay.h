// What a stream's replay memory is to be like, by the options of a run.
#pragma once

#include <string>

#include "streamvec/core/status.h"
#include "streamvec/replay/table.h"
#include "streamvec/train/stream_learner.h"
#include "streamvec/train/trainer.h"

namespace streamvec {

// How chunks are chosen, and what their priority goes by.
struct ReplaySelection {
  ReplaySelector selector;
  ReplayPriority priority;
};
// Of --replay. kInvalidArgument for a name that is none.
Result<ReplaySelection> parse_replay(const std::string& name);

ReplayOptions replay_options(const TrainOptions& options, ReplaySelector selector);
// Of a node that only reads: a short queue on the way to those that train.
ReplayOptions relay_options(const TrainOptions& options);

}  // namespace streamvec
