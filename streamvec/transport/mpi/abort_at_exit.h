// MPI waits for every rank at its end, so with a rank that answers no more it can only be broken off, which ends the
// processes of all ranks at once. That is left to the last moment of the process, when it has said what it has to say.
#pragma once

#include <functional>

namespace streamvec {

// Serves the end of this process, by the thread that makes the calls of MPI: `arranged` is called, then the process
// goes on without that thread. When it exits, what it has printed is flushed, and after `patience_s` the program of all
// ranks ends with the exit code of this process, `code_min` at least; Open MPI's mpirun makes 1 of 0.
[[noreturn]] void abort_at_exit(int code_min, double patience_s, const std::function<void()>& arranged);

}  // namespace streamvec
