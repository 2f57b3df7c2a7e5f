#include "streamvec/ingest/stream_clock.h"

#include <charconv>
#include <cmath>

namespace streamvec {
namespace {

struct Unit {
  char letter;
  double factor;
  bool seconds;
};
constexpr double kDay = 86'400;
constexpr Unit kUnits[] = {{'k', 1e3, false}, {'M', 1e6, false},     {'G', 1e9, false},
                           {'s', 1, true},    {'m', 60, true},       {'h', 3600, true},
                           {'d', kDay, true}, {'w', 7 * kDay, true}, {'y', 365.25 * kDay, true}};

}  // namespace

Result<HalfLife> HalfLife::parse(std::string_view text) {
  if (text == "never") return HalfLife();
  HalfLife life;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), life.value);
  const std::string_view rest = text.substr(static_cast<size_t>(end - text.data()));
  bool known = failure == std::errc() && rest.empty();
  for (const Unit& unit : kUnits) {
    if (failure != std::errc() || rest.size() != 1 || rest[0] != unit.letter) continue;
    life.value *= unit.factor;
    life.seconds = unit.seconds;
    known = true;
  }
  if (!known || !(life.value > 0) || !std::isfinite(life.value))
    return error(Code::kInvalidArgument, "\"", text.substr(0, 100),
                 "\" is no half-life; try tokens (5000000, 5M), a time (90s, 15m, 12h, 30d, 8w, 2y) or never");
  return life;
}

}  // namespace streamvec
