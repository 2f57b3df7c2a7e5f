// What training tells about itself, as the events and the figures of the service have it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "streamvec/serve/vocabulary_map.h"
#include "streamvec/train/trainer.h"

namespace streamvec {

// docs/SERVING.md has the fields. What is not known is null.
nlohmann::ordered_json to_json(const TrainProgress& progress, double time_s);
// {"model","step","words":[...],"counts":[...],"x":[...],"y":[...],"group":[...]}: columns, in the same order.
nlohmann::ordered_json to_json(const MapFrame& frame);

// What the total of a run has not: how things were when the last report was made. Sources rest now.
void add_last_report(const TrainProgress& last, TrainProgress& total);

}  // namespace streamvec
