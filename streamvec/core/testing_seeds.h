// How many seeds simulations try. More by STREAMVEC_SEEDS=100000, others by STREAMVEC_FIRST_SEED; a failure prints its
// seed.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace streamvec {

inline int64_t from_environment(const char* name, int64_t otherwise) {
  const char* wanted = std::getenv(name);
  return wanted == nullptr ? otherwise : std::atoll(wanted);
}

inline int64_t seeds_or(int64_t otherwise) {
  return from_environment("STREAMVEC_SEEDS", otherwise);
}
inline int64_t first_seed() {
  return from_environment("STREAMVEC_FIRST_SEED", 1);
}

}  // namespace streamvec
