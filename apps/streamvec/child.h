// This program, started once more.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <string>
#include <vector>

#include "streamvec/core/status.h"

namespace streamvec::cli {

// What the child has as its standard files: descriptors, or one of these.
struct ChildFiles {
  static constexpr int kOurs = -1, kNone = -2;
  int input = kOurs, output = kOurs, complaints = kOurs;
};
// Starts `streamvec WORDS...`, a command that calls stop_on_signals(): a SIGTERM that is sent earlier waits for that.
// It is sent one when the thread that has started it ends, however that comes. The caller waits for the child's end.
// kUnavailable when it cannot be started.
Result<pid_t> start_program(const std::vector<std::string>& words, const ChildFiles& files);

// Runs `streamvec WORDS...` to its end and gives what it printed on standard output. Its standard error goes to a file
// whose last line becomes the message when it does not end with 0. When `stop` is set it is sent SIGTERM, and waited
// for. kUnavailable when it cannot be started.
Result<std::string> run_program(const std::vector<std::string>& words, const std::atomic<bool>& stop);

}  // namespace streamvec::cli
