#include "apps/streamvec/mpi_rank.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace streamvec::cli {
namespace {

struct Names {
  const char *rank, *ranks;
};
constexpr Names kNames[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"PMI_RANK", "PMI_SIZE"}, {"PMIX_RANK", "SLURM_NTASKS"}};

std::optional<int32_t> number(const char* name) {
  const char* text = std::getenv(name);
  int32_t value = 0;
  if (text == nullptr) return std::nullopt;
  const auto [end, fault] = std::from_chars(text, text + std::strlen(text), value);
  return fault == std::errc() && *end == '\0' ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<MpiRank> mpi_rank_of_environment() {
  for (const Names& names : kNames) {
    const std::optional<int32_t> rank = number(names.rank), ranks = number(names.ranks);
    if (rank && ranks && *ranks > 1 && *rank >= 0 && *rank < *ranks) return MpiRank{*rank, *ranks};
  }
  return std::nullopt;
}

}  // namespace streamvec::cli
