#include "streamvec/sync/combiner.h"

#include <algorithm>
#include <cmath>

#include "streamvec/kernel/logistic_rows.h"
#include "streamvec/kernel/row_codec.h"
#include "streamvec/kernel/row_ops.h"

namespace streamvec {
namespace {

// to = Adasum(a, to)
void adasum(const float* a, int32_t dim, float* to) {
  const float shared = dot(a, to, dim), a_square = dot(a, a, dim), to_square = dot(to, to, dim);
  // A row that did not move has no direction: the other's change stands.
  const float of_a = a_square > 0 ? 1 - 0.5f * shared / a_square : 1;
  const float of_to = to_square > 0 ? 1 - 0.5f * shared / to_square : 1;
  blend(a, of_a, to, of_to, dim, to);
}

}  // namespace

Result<Combine> parse_combine(std::string_view name) {
  if (name == "sum") return Combine::kSum;
  if (name == "mean") return Combine::kMean;
  if (name == "adasum") return Combine::kAdasum;
  if (name == "damped") return Combine::kDamped;
  return error(Code::kInvalidArgument, "no combiner is called '", name, "'; try damped, adasum, mean or sum");
}

void combine_rows(Combine rule, std::span<float* const> changes, int32_t dim) {
  if (rule == Combine::kAdasum) {
    for (size_t step = 1; step < changes.size(); step *= 2)
      for (size_t i = 0; i + step < changes.size(); i += 2 * step) adasum(changes[i + step], dim, changes[i]);
    return;
  }
  for (size_t i = 1; i < changes.size(); ++i) blend(changes[i], 1, changes[0], 1, dim, changes[0]);
  if (rule == Combine::kMean && changes.size() > 1) {
    const float share = 1 / static_cast<float>(changes.size());
    blend(changes[0], share, changes[0], 0, dim, changes[0]);
  }
}

float damped_share(double pull, int64_t nodes) {
  constexpr float kSlow = 1e-3f;  // from here on down the share is 1 to the last bit of a message
  constexpr int64_t kFew = 16;
  const auto count = static_cast<float>(nodes), once = static_cast<float>(pull);
  if (count * once < kSlow) return 1;
  const float left = std::exp(-once);
  if (nodes > kFew) return (1 - std::exp(-count * once)) / (count * (1 - left));
  float sum = 1;  // of left^i: the same by half as many exponentials, for every row of a push
  for (int64_t i = 1; i < nodes; ++i) sum = sum * left + 1;
  return sum / count;
}

float late_share(double pull) {
  constexpr double kSlow = 0.05;  // rows that hardly moved are corrected in full
  return pull < kSlow ? 1 : std::exp(-static_cast<float>(pull));
}

void add_by_shares(const float* change, RowShares shares, const float* direction, int32_t dim, float* to) {
  add_scaled(change, shares.across, dim, to);
  if (shares.along == shares.across) return;  // most rows: nothing pulls at them yet
  add_scaled(direction, (shares.along - shares.across) * dot(change, direction, dim), dim, to);
}

uint8_t pack_share(float share) {
  return static_cast<uint8_t>(std::clamp(static_cast<int>(share * 256 + 0.5f) - 1, 0, 255));
}

void combine_late(Combine rule, const float* missed, int32_t dim, float* incoming) {
  switch (rule) {
    case Combine::kSum:
    case Combine::kDamped:
      return blend(missed, 1, incoming, 1, dim, incoming);
    case Combine::kMean:
      return blend(missed, 0.5f, incoming, 0.5f, dim, incoming);
    case Combine::kAdasum:
      return adasum(missed, dim, incoming);
  }
}

}  // namespace streamvec
