// How changes that several nodes made to the same row, each without knowing of the others', become one change. It
// decides whether training converges (docs/BENCHMARKS.md): the sum overshoots where all nodes move a row the same way,
// the mean throws their work away where they move it different ways, Adasum does the right one in each case.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "streamvec/core/status.h"

namespace streamvec {

enum class Combine { kSum, kMean, kAdasum };

// "sum", "mean", "adasum". kInvalidArgument for others, with the list.
Result<Combine> parse_combine(std::string_view name);

// Leaves the combined change in changes[0]; the others are scratch afterwards. Rows are padded (kernel/row_codec.h).
// Adasum (Maleki et al. 2021) of two is a (1 - a.b / 2|a|^2) + b (1 - a.b / 2|b|^2): their sum when they are at right
// angles, their mean when they are equal. More are combined in pairs, the pairs' results in pairs, and so on.
// REQUIRES: at least one.
void combine_rows(Combine rule, std::span<float* const> changes, int32_t dim);

// The same for a change that comes late: `incoming` was made without knowing of `missed`, which is in the row already.
// Leaves in `incoming` what the row has to be changed by, from the state that the sender knew. `mean` weighs both
// alike.
void combine_late(Combine rule, const float* missed, int32_t dim, float* incoming);

}  // namespace streamvec
