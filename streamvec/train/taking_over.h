// A node that comes to lead when all the text is over and nobody has saved the model: it has to write it, if it leads
// beyond doubt.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "streamvec/cluster/synchronizer.h"
#include "streamvec/core/clock.h"
#include "streamvec/core/status.h"

namespace streamvec {

// Calls `write_if_leading` until it has made this node the one that writes, which it says. etcd may be slow to say once
// more that it leads: kAborted after `within_s`, or when another does.
inline Status take_over(const Synchronizer& node, double within_s,
                        const std::function<Result<bool>()>& write_if_leading) {
  const double begun_s = clock_seconds();
  do {
    STREAMVEC_ASSIGN_OR_RETURN(const bool writes, write_if_leading());
    if (writes) return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  } while (node.leads() && clock_seconds() - begun_s < within_s);
  return error(Code::kAborted, "this node was to lead, and another may by now: nothing is written here");
}

}  // namespace streamvec
