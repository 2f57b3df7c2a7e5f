// How the learning rate falls over a run.
#pragma once

#include <string_view>

#include "streamvec/core/status.h"

namespace streamvec {

enum class Schedule {
  kLinear,    // to nothing, as word2vec and fastText do; never below a ten-thousandth of the start
  kCosine,    // half a cosine: longer near the start, longer near the end
  kConstant,  // for streams whose end is not known
};

Result<Schedule> parse_schedule(std::string_view name);

// The rate at `fraction` (0 .. 1) of the run; a negative fraction means that the length is unknown: constant.
float scheduled_rate(Schedule schedule, double lr, double fraction);

}  // namespace streamvec
