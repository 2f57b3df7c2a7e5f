#include "apps/streamvec/cores.h"

#include <sched.h>

namespace streamvec::cli {

std::vector<int> allowed_cores() {
  cpu_set_t set;
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(static_cast<size_t>(core), &set)) cores.push_back(core);
  return cores;
}

std::vector<int> cores_of_share(const std::vector<int>& allowed, int64_t share, int64_t shares) {
  const int64_t each = static_cast<int64_t>(allowed.size()) / shares;
  return {allowed.begin() + share * each, allowed.begin() + (share + 1) * each};
}

void run_on(const std::vector<int>& cores) {
  if (cores.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(static_cast<size_t>(core), &set);
  ::sched_setaffinity(0, sizeof set, &set);  // where it is refused, things are slower and nothing else
}

}  // namespace streamvec::cli
