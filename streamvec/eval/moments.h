// The moments of a stream whose vectors can still be had, and which two of them to compare.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/eval/history.h"

namespace streamvec {

// In the history, or the model itself.
struct Moment {
  StreamMoment when;
  std::optional<HistoryEntry> entry;  // none: the model
  bool halves = false;                // of this very moment are there
};

// Those of DIR/history, and the model, of step `model_step` over `model_tokens` tokens, where it has gone on since.
// Entries that cannot be read are passed over, with a line each in `notes`. kFailedPrecondition: fewer than two.
Result<std::vector<Moment>> list_moments(const std::string& directory, int64_t model_step, int64_t model_tokens,
                                         std::vector<std::string>* notes = nullptr);

// The moment nearest to a step or a time as it was typed. kInvalidArgument: neither; `name` is what it was given as.
// REQUIRES: moments is not empty.
Result<size_t> find_moment(const std::vector<Moment>& moments, const std::string& name, const std::string& typed);

// The earliest moment before `to` that had a quarter of its text: vectors of less are not settled, and all of them
// would seem to have moved. One with halves if there is such a one; the last before `to` if none had so much.
size_t first_settled(const std::vector<Moment>& moments, size_t to);

struct MomentRange {
  size_t from = 0, to = 0;
};
// kInvalidArgument unless `from` is before `to`. REQUIRES: both are of `moments`.
Status check_range(const std::vector<Moment>& moments, const MomentRange& range, const std::string& names);

}  // namespace streamvec
