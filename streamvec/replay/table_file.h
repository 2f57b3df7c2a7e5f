// A replay table as bytes, for checkpoints. docs/FORMATS.md has the layout.
#pragma once

#include <functional>
#include <string_view>

#include "streamvec/core/status.h"
#include "streamvec/replay/table.h"

namespace streamvec {

// Hands the bytes to `sink`, about a megabyte at a time; the first error of the sink ends it and is returned. No lock
// of the table is needed: it may go on meanwhile.
Status write_replay(const ReplaySnapshot& snapshot, const std::function<Status(std::string_view)>& sink);

// kDataLoss, with the offset, for bytes that are cut short, damaged, impossible or too many. Memory is taken only for
// what the bytes really hold. Slots are not compared with any vocabulary.
Result<ReplaySnapshot> read_replay(std::string_view bytes);

}  // namespace streamvec
