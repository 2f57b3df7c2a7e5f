#include "streamvec/train/stream_cursors.h"

#include <utility>
#include <vector>

#include "streamvec/core/json.h"

namespace streamvec {
namespace {

using nlohmann::json;

constexpr const char *kNodeCursors = "nodes", *kNodeName = "node", *kSourceCursors = "sources";

std::string name_of(const ClusterSettings& cluster) {
  return cluster.registry != nullptr ? cluster.nodes[static_cast<size_t>(cluster.rank)] : std::to_string(cluster.rank);
}

json without(json state, const char* name) {
  state.erase(name);
  return state;
}

// All that are named, the writer's too.
std::map<std::string, json> by_name(const json& saved) {
  std::map<std::string, json> nodes;
  if (!saved.is_object()) return nodes;
  const json others = saved.value(kNodeCursors, json::object());
  for (const auto& [name, state] : others.items())
    if (state.is_object()) nodes[name] = state;
  if (const auto writer = saved.find(kNodeName); writer != saved.end() && writer->is_string())
    nodes[writer->get<std::string>()] = without(without(saved, kNodeCursors), kNodeName);
  return nodes;
}

// Sources that one node alone had, whoever that was.
json sources_of_one(const std::map<std::string, json>& nodes) {
  std::map<std::string, std::vector<json>> by_source;
  for (const auto& [name, state] : nodes)
    for (const json& source : state.value(kSourceCursors, json::array()))
      if (source.is_object()) by_source[source.value("name", std::string())].push_back(source);
  json sources = json::array();
  for (const auto& [name, found] : by_source)
    if (found.size() == 1) sources.push_back(found.front());
  return sources;
}

}  // namespace

json named_cursors(const ClusterSettings& cluster, json state) {
  state[kNodeName] = name_of(cluster);
  return state;
}

json cursors_of(const ClusterSettings& cluster, const json& saved) {
  std::map<std::string, json> nodes = by_name(saved);
  if (const auto own = nodes.find(name_of(cluster)); own != nodes.end()) return own->second;
  if (saved.count(kNodeName) == 0) {  // of a run whose nodes had ranks, or of one process
    const auto own = nodes.find(std::to_string(cluster.rank));
    if (cluster.rank == 0) return without(saved, kNodeCursors);
    return own != nodes.end() ? own->second : json();
  }
  json found = without(without(saved, kNodeCursors), kNodeName);
  found[kSourceCursors] = cluster.joins ? json::array() : sources_of_one(nodes);
  for (json& total : found["totals"]) total = 0;  // it has read nothing itself
  return found;
}

void NodeCursors::keep(const ClusterSettings& cluster, const json& saved) {
  if (cluster.registry == nullptr) return;
  for (auto& [name, state] : by_name(saved)) nodes_.try_emplace(name, state);
}

void NodeCursors::tell(const std::string& told) {
  json state = parse_json(told);
  if (!state.is_object() || !state.value(kNodeName, json()).is_string()) return;
  const std::string name = state.at(kNodeName);
  state.erase(kNodeName);
  nodes_[name] = std::move(state);
}

void NodeCursors::add_to(const ClusterSettings& cluster, json& own) const {
  if (cluster.registry != nullptr) own[kNodeName] = name_of(cluster);
  for (const auto& [name, state] : nodes_)
    if (name != name_of(cluster)) own[kNodeCursors][name] = state;
}

}  // namespace streamvec
