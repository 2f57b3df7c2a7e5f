// Messages that are too long to be sent at once (a transport queues so much and no more), in parts. Links deliver what
// one node sends another in order (transport/reliable_link.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/transport/transport.h"

namespace streamvec {

// Each for MessageParts::take(), in this order, with at most so many bytes of the message. REQUIRES: bytes_max > 0.
std::vector<std::string> in_parts(std::string_view message, int64_t bytes_max);

// The other end. Not thread-safe.
class MessageParts {
 public:
  // The message that this part ends; nullopt: there is more to come, or its beginning is forgotten. kInvalidArgument
  // for bytes that in_parts() does not write. Takes no memory for bytes that have not come.
  Result<std::optional<std::string>> take(NodeId from, std::string_view part);
  // What all but these have begun to send.
  void forget_others(const std::set<NodeId>& nodes);
  bool empty() const { return begun_.empty(); }

 private:
  std::map<NodeId, std::string> begun_;
};

}  // namespace streamvec
