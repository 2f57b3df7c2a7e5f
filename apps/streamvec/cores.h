// Which cores a process runs on.
#pragma once

#include <cstdint>
#include <vector>

namespace streamvec::cli {

// The cores that this process may run on, rising.
std::vector<int> allowed_cores();
// Cores `share` of `shares` for a process that is started next: equal parts of the allowed ones, none twice. Empty when
// there are fewer cores than shares.
std::vector<int> cores_of_share(const std::vector<int>& allowed, int64_t share, int64_t shares);
// From now on this thread, and what it starts, runs on these cores. An empty list changes nothing.
void run_on(const std::vector<int>& cores);

}  // namespace streamvec::cli
