// How changes that several nodes made to the same row, each without knowing of the others', become one change. It
// decides whether training converges (docs/BENCHMARKS.md): the sum overshoots where all nodes move a row the same way,
// the mean throws their work away where they move it different ways. Adasum goes by the angle between the changes;
// `damped` by how far each node alone has brought the row to rest, which follows from how often the row is trained on
// and is further along one direction than across it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "streamvec/core/status.h"

namespace streamvec {

enum class Combine { kSum, kMean, kAdasum, kDamped };

// "sum", "mean", "adasum", "damped". kInvalidArgument for others, with the list.
Result<Combine> parse_combine(std::string_view name);

// Leaves the combined change in changes[0]; the others are scratch afterwards. Rows are padded (kernel/row_codec.h).
// Adasum (Maleki et al. 2021) of two is a (1 - a.b / 2|a|^2) + b (1 - a.b / 2|b|^2): their sum when they are at right
// angles, their mean when they are equal. More are combined in pairs, the pairs' results in pairs, and so on.
// kDamped adds, as kSum: shares were applied before. REQUIRES: at least one.
void combine_rows(Combine rule, std::span<float* const> changes, int32_t dim);

// kDamped: what is added of each node's change. Training draws a row to where its neighbours want it; a node that was
// alone would have gone 1 - exp(-pull) of the way, all `nodes` together, one after the other, 1 - exp(-nodes * pull):
// so this is 1 for rows that move slowly, and 1 / nodes for those that are at rest again before the others are heard.
float damped_share(double pull, int64_t nodes);
// kDamped: what is left to do of a correction that comes late to a row which was trained on meanwhile, by `pull`.
float late_share(double pull);
// The shares of a row's change: of the part along the direction in which its neighbours pull hardest (table_pull.h),
// and of the rest.
struct RowShares {
  float across = 1, along = 1;
};
// to += change, each part by its share. `direction` is of unit length or zero; rows are padded.
void add_by_shares(const float* change, RowShares shares, const float* direction, int32_t dim, float* to);
// Shares in a message are bytes: 1/256 to 1.
uint8_t pack_share(float share);
inline float unpack_share(uint8_t packed) {
  return (static_cast<float>(packed) + 1) / 256;
}

// The same for a change that comes late: `incoming` was made without knowing of `missed`, which is in the row already.
// Leaves in `incoming` what the row has to be changed by, from the state that the sender knew. `mean` weighs both
// alike.
void combine_late(Combine rule, const float* missed, int32_t dim, float* incoming);

}  // namespace streamvec
