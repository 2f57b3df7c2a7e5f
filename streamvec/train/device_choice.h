// Where a run trains: on the CPU or on the card.
#pragma once

#include <string>

#include "streamvec/core/status.h"
#include "streamvec/train/trainer.h"

namespace streamvec {

// cpu or cuda. An error when a card is asked for that is not there or cannot train this, or when options are for a card
// alone and the run is not on one.
Result<std::string> chosen_device(const TrainOptions& options, const std::string& model);
// kInvalidArgument for options that are for a card alone.
Status check_without_card(const TrainOptions& options);

}  // namespace streamvec
