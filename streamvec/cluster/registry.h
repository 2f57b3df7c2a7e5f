// Where the node that leads writes down who takes part, for those who come later (etcd_membership.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/transport/transport.h"

namespace streamvec {

// Thread-safe.
class Registry {
 public:
  struct Member {
    NodeId node = 0;
    std::string address;
    bool worker = true, server = true;
  };
  virtual ~Registry() = default;
  // Does not wait: it is written as soon as that is possible, the newest only.
  virtual void publish(uint32_t epoch, std::vector<Member> members) = 0;
  // kAborted: another node has written there that it leads.
  virtual Status status() const = 0;
};

}  // namespace streamvec
