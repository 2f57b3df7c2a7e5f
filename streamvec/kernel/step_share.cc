#include "streamvec/kernel/step_share.h"

#include <algorithm>
#include <array>

namespace streamvec {
namespace {

int32_t times_named(int32_t row, std::span<const int32_t> rows) {
  return static_cast<int32_t>(std::count(rows.begin(), rows.end(), row));
}

// Whether a row may be named more than kNamedOften times: always true where one is, seldom otherwise. Every block asks.
bool may_repeat(std::span<const int32_t> rows) {
  constexpr size_t kPlaces = 64;
  std::array<uint8_t, kPlaces> named{};
  bool often = false;
  for (const int32_t row : rows) often |= ++named[static_cast<size_t>(row) % kPlaces] > kNamedOften;
  return often;
}

}  // namespace

float step_share_of(std::span<const int32_t> positives, std::span<const int32_t> outputs) {
  if (!may_repeat(positives)) return 1;
  int32_t most = kNamedOften;
  for (const int32_t row : positives)
    if (times_named(row, positives) > kNamedOften) most = std::max(most, times_named(row, outputs));
  return static_cast<float>(kNamedOften) / static_cast<float>(most);
}

}  // namespace streamvec
