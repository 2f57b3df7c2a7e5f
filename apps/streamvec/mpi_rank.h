// Whether mpirun or Slurm has started this process as one of several.
#pragma once

#include <cstdint>
#include <optional>

namespace streamvec::cli {

struct MpiRank {
  int32_t rank = 0, ranks = 1;
};

// What Open MPI, MPICH and Slurm with PMIx leave in the environment; nothing for one process alone.
std::optional<MpiRank> mpi_rank_of_environment();

}  // namespace streamvec::cli
