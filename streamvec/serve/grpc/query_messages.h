// The calls of the service as gRPC has them (protos/streamvec_query.proto): a table of methods, each from the bytes of
// a request to those of a reply.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/serve/api.h"

namespace streamvec {

// Either the reply, or a search with what makes the reply of its result.
struct RpcAnswer {
  std::string message;
  std::optional<PlannedSearch> search = {};
  std::function<std::string(const ServedModel&, const std::vector<Neighbour>&)> finish = {};
};

struct RpcMethod {
  std::string_view name;  // "/streamvec.v1.Query/Nearest"
  Role role;
  Lane lane;  // kNetwork: ready at once; a stream of events where `ask` is nullptr
  Result<RpcAnswer> (*ask)(const ApiParts& parts, const ServedModel* model, const std::string& message) = nullptr;
  bool needs_model = true;
};

std::span<const RpcMethod> rpc_methods();
const RpcMethod* find_method(std::string_view name);  // nullptr when there is none

// Of Events: which kinds are wanted. kInvalidArgument: no such kind, or no such message.
Result<std::vector<std::string>> wanted_kinds(const std::string& message);
std::string event_message(const BoardEvent& event);

}  // namespace streamvec
