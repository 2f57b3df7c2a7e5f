#include "streamvec/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace streamvec {

Result<Schedule> parse_schedule(std::string_view name) {
  if (name == "linear") return Schedule::kLinear;
  if (name == "cosine") return Schedule::kCosine;
  if (name == "constant") return Schedule::kConstant;
  return error(Code::kInvalidArgument, "no schedule is called '", name, "'; try linear, cosine or constant");
}

float scheduled_rate(Schedule schedule, double lr, double fraction) {
  constexpr double kFloor = 1e-4;
  if (fraction < 0 || schedule == Schedule::kConstant) return static_cast<float>(lr);
  fraction = std::min(fraction, 1.0);  // past the end a cosine would rise again
  const double share = schedule == Schedule::kLinear ? 1 - fraction : (1 + std::cos(std::numbers::pi * fraction)) / 2;
  return static_cast<float>(lr * std::max(share, kFloor));
}

}  // namespace streamvec
