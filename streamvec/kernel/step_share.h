// Shorter steps for blocks that name a word again and again.
#pragma once

#include <cstdint>
#include <span>

namespace streamvec {

// A row that a block names more often than this has shorter steps, since it takes as many as it is named: text that
// says one word again and again would throw its rows from side to side, further each time, and all negatives with them.
constexpr int32_t kNamedOften = 4;
// 1, or less for such a block: of its steps' length. `outputs`: the rows of the block by number, `positives` the first
// of them.
float step_share_of(std::span<const int32_t> positives, std::span<const int32_t> outputs);

}  // namespace streamvec
