// Sets of small numbers, a bit each, 64 in a word.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace streamvec {

// Calls use(number) for every number in the set, rising.
template <typename Use>
void for_each_bit(std::span<const uint64_t> set, Use&& use) {
  for (size_t at = 0; at < set.size(); ++at)
    for (uint64_t bits = set[at]; bits != 0; bits &= bits - 1)
      use(64 * at + static_cast<size_t>(std::countr_zero(bits)));
}

}  // namespace streamvec
