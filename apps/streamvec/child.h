// This program, started once more.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <string>
#include <vector>

#include "streamvec/core/status.h"

namespace streamvec::cli {

// Runs `streamvec WORDS...` to its end and gives what it printed on standard output. Its standard error goes to a file
// whose last line becomes the message when it does not end with 0. When `stop` is set it is sent SIGTERM, and waited
// for. kUnavailable when it cannot be started.
Result<std::string> run_program(const std::vector<std::string>& words, const std::atomic<bool>& stop);

// The cores that this process may run on, rising.
std::vector<int> allowed_cores();
// Cores `share` of `shares` for a process that is started next: equal parts of the allowed ones, none twice. Empty when
// there are fewer cores than shares.
std::vector<int> cores_of_share(const std::vector<int>& allowed, int64_t share, int64_t shares);
// From now on this thread, and what it starts, runs on these cores. An empty list changes nothing.
void run_on(const std::vector<int>& cores);

}  // namespace streamvec::cli
