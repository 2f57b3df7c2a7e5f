// What else of a node goes by the membership that ClusterNode keeps: a ring (ring_node.h).
#pragma once

#include <cstdint>

#include "streamvec/core/status.h"
#include "streamvec/sync/view.h"

namespace streamvec {

// Called by the thread that talks, with its lock held: nothing waits, and nothing calls back.
class Companion {
 public:
  virtual ~Companion() = default;
  virtual void take_view(const View& view) = 0;  // a later one than before, of which this node is
  virtual void fail(const Status& status) = 0;   // this node takes no further part
  // Everybody's text is over and all is told: the cluster may end, and not before then. An error: it has failed by
  // itself, and this node is to take no further part.
  virtual Result<bool> over() const = 0;
  virtual int64_t clock() const = 0;  // rounds so far
};

}  // namespace streamvec
