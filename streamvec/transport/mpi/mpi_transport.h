// Frames between the ranks of an MPI program: a fixed set of nodes, whose ids are their ranks. mpirun or Slurm starts
// them, and ends all of them when one dies without a word: what is left after that is the last checkpoint.
#pragma once

#include <cstdint>
#include <memory>

#include "streamvec/core/status.h"
#include "streamvec/transport/transport.h"

namespace streamvec {

// One thread makes every call of MPI, so that any build of it will do.
class MpiTransport : public Transport {
 public:
  struct Options {
    int64_t queue_bytes_max = int64_t{256} << 20;  // for each rank; a frame that does not fit is dropped
    int64_t inbox_bytes_max = int64_t{64} << 20;   // received and not yet taken; past it the others wait
    double farewell_s = 10;                        // how long to wait at the end for others that answer
    double silent_s = 10;                          // and for those from which nothing comes
  };
  // Starts MPI; once in a process (kFailedPrecondition). When MPI reports an error later, receive() gives it as
  // kUnavailable and sends are dropped.
  //
  // The destructor sends what is queued and ends MPI, which takes all ranks: it waits for the others to come to the
  // same point. A rank that was silent for `silent_s` (stopped, its machine gone) or does not come within `farewell_s`
  // would hold everybody for ever: then the exit of this process ends the program of all ranks (abort_at_exit.h). The
  // first of the ranks that are left does so; the others wait for it.
  static Result<std::unique_ptr<MpiTransport>> start(const Options& options);
  static Result<std::unique_ptr<MpiTransport>> start() { return start(Options{}); }

  virtual int ranks() const = 0;
};

}  // namespace streamvec
