#include "streamvec/train/stream_cursors.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "streamvec/core/json.h"
#include "streamvec/source/splits.h"

namespace streamvec {
namespace {

using nlohmann::json;

constexpr const char *kNodeCursors = "nodes", *kNodeName = "node", *kSourceCursors = "sources",
                     *kCameFrom = "came_from", *kWithdrawn = "withdrawn";
constexpr const char* kFirst = "0";      // by its rank
constexpr const char* kOther = "other";  // Intake::Options::keeps_others

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

struct FoundCursors {
  json state;                                    // null: nothing is known
  std::map<std::string, std::string> came_from;  // sources that another node had, by name
};

std::string source_name(const json& source) {
  return source.is_object() ? source.value("name", std::string()) : std::string();
}

// Sources that one node alone had, of nodes that are `free`, and those that it knew of and did not read.
FoundCursors sources_of_one(const std::map<std::string, json>& nodes,
                            const std::function<bool(const std::string&)>& free) {
  std::map<std::string, std::vector<std::pair<std::string, json>>> by_source;
  for (const auto& [node, state] : nodes)
    for (const json& source : state.value(kSourceCursors, json::array()))
      if (source.is_object()) by_source[source_name(source)].emplace_back(node, source);
  FoundCursors found{json::array(), {}};
  for (const auto& [name, had] : by_source) {
    const auto& [node, source] = had.front();
    if (had.size() != 1 || !(free(node) || source.value(kOther, false))) continue;
    found.state.push_back(source);
    found.came_from[name] = node;
  }
  return found;
}

// In the place of what single nodes say of them.
void put_shared(const json& saved, FoundCursors& found) {
  for (const auto& [name, cursor] : shared_cursors(saved)) {
    found.came_from.erase(name);
    json place = {{"name", name}, {"documents", 0}};
    json left = json::array();
    for (const json& source : found.state.value(kSourceCursors, json::array()))
      if (source_name(source) == name)
        place = source;
      else
        left.push_back(source);
    place.erase(kOther);
    place["cursor"] = cursor;
    left.push_back(std::move(place));
    found.state[kSourceCursors] = std::move(left);
  }
}

FoundCursors find_cursors(const ClusterSettings& cluster, const json& saved) {
  std::map<std::string, json> nodes = by_name(saved);
  const bool ranked = saved.count(kNodeName) == 0;  // of a run whose nodes had ranks, or of one process
  if (ranked) nodes[kFirst] = without(saved, kNodeCursors);
  const std::string name = ranked ? std::to_string(cluster.rank) : name_of(cluster);
  // Nodes with ranks that are there read sources of their own, which may be called the same.
  const auto is_free = [&](const std::string& node) {
    if (node == name || cluster.joins) return false;
    if (cluster.divide) return true;  // whoever had it, it is read here alone
    for (int32_t rank = 0; ranked && cluster.on() && rank < static_cast<int32_t>(cluster.nodes.size()); ++rank)
      if (node == std::to_string(rank)) return false;
    return true;
  };
  const auto own = nodes.find(name);
  FoundCursors found = own != nodes.end() && !ranked ? FoundCursors{json::array(), {}} : sources_of_one(nodes, is_free);
  json state = own != nodes.end() ? own->second : without(without(saved, kNodeCursors), kNodeName);
  if (own == nodes.end()) {
    state[kSourceCursors] = json::array();
    for (json& total : state["totals"]) total = 0;  // it has read nothing itself
  } else if (name != name_of(cluster)) {            // its address is new, its rank is not
    for (const json& source : own->second.value(kSourceCursors, json::array()))
      found.came_from[source_name(source)] = name;
  }
  for (json& source : found.state)
    if (found.came_from[source_name(source)] != name || own == nodes.end())
      state[kSourceCursors].push_back(std::move(source));
  FoundCursors all{std::move(state), std::move(found.came_from)};
  put_shared(saved, all);
  return all;
}

}  // namespace

std::vector<std::string> shared_sources(const json& state) {
  std::set<std::string> names;
  for (const json& source : state.is_object() ? state.value(kSourceCursors, json::array()) : json::array())
    if (source.is_object() && source.value("shared", false) && !source.value(kOther, false))
      names.insert(source_name(source));
  return {names.begin(), names.end()};
}

std::map<std::string, std::string> shared_cursors(const json& saved) {
  std::map<std::string, SharedCursor> shared;
  const auto add = [&](const json& state) {
    for (const json& source : state.value(kSourceCursors, json::array()))
      if (const auto cursor = SharedCursor::parse(source.is_object() ? source.value("cursor", std::string()) : "");
          cursor.ok())
        shared[source_name(source)].merge(*cursor);
  };
  if (!saved.is_object()) return {};
  add(saved);
  for (const auto& [node, state] : by_name(saved)) add(state);
  std::map<std::string, std::string> texts;
  for (const auto& [name, cursor] : shared) texts[name] = cursor.text();
  return texts;
}

std::vector<uint64_t> withdrawn_records(const json& saved) {
  std::vector<uint64_t> records;
  for (const auto& [node, state] : by_name(saved))
    for (const json& record : state.value(kWithdrawn, json::array()))
      if (record.is_number_unsigned()) records.push_back(record);
  return records;
}

json cursors_of(const ClusterSettings& cluster, const json& saved) {
  return find_cursors(cluster, saved).state;
}

void NodeCursors::begin(const ClusterSettings& cluster, const json& saved) {
  if (!saved.is_object()) return;
  came_from_ = find_cursors(cluster, saved).came_from;
  keep(saved);
  for (auto& [name, state] : kept_) state.erase(kWithdrawn);  // this run begins without them
}

void NodeCursors::add_came_from(json& state) const {
  for (const json& source : state.value(kSourceCursors, json::array()))
    if (const auto had = came_from_.find(source_name(source)); had != came_from_.end())
      state[kCameFrom][had->first] = had->second;
}

json NodeCursors::named(const ClusterSettings& cluster, json state, const std::vector<uint64_t>& withdrawn) const {
  state[kNodeName] = name_of(cluster);
  if (!withdrawn.empty()) state[kWithdrawn] = withdrawn;
  add_came_from(state);
  return state;
}

void NodeCursors::keep(const json& saved) {
  kept_ = by_name(saved);
  for (const auto& [name, state] : told_) kept_.erase(name);
}

// What the sources of a node came from: only of nodes that have not said themselves in this run where theirs stand.
void NodeCursors::take(json& state) {
  const json came_from = state.value(kCameFrom, json::object());
  state.erase(kCameFrom);
  for (const auto& [source, node] : came_from.items()) {
    const auto kept = node.is_string() ? kept_.find(node) : kept_.end();
    if (kept == kept_.end()) continue;
    json left = json::array();
    for (const json& each : kept->second.value(kSourceCursors, json::array()))
      if (source_name(each) != source) left.push_back(each);
    if (left.empty())
      kept_.erase(kept);
    else
      kept->second[kSourceCursors] = std::move(left);
  }
}

void NodeCursors::tell(const std::string& told) {
  json state = parse_json(told);
  if (!state.is_object() || !state.value(kNodeName, json()).is_string()) return;
  const std::string name = state.at(kNodeName);
  state.erase(kNodeName);
  kept_.erase(name);
  take(state);
  told_[name] = std::move(state);
}

// What this node only keeps and another one reads, or has read, is that one's to tell.
void NodeCursors::leave_to_others(json& own) const {
  const auto has = [](const auto& nodes, const std::string& source) {
    return std::any_of(nodes.begin(), nodes.end(), [&](const auto& node) {
      const json sources = node.second.value(kSourceCursors, json::array());
      return std::any_of(sources.begin(), sources.end(), [&](const json& each) { return source_name(each) == source; });
    });
  };
  json left = json::array();
  for (const json& source : own.value(kSourceCursors, json::array()))
    if (!source.value(kOther, false) || (!has(told_, source_name(source)) && !has(kept_, source_name(source))))
      left.push_back(source);
  own[kSourceCursors] = std::move(left);
}

void NodeCursors::add_to(const ClusterSettings& cluster, json& own) {
  if (cluster.registry != nullptr)
    own = named(cluster, std::move(own));
  else
    add_came_from(own);
  take(own);
  leave_to_others(own);
  for (const auto* nodes : {&told_, &kept_})
    for (const auto& [name, state] : *nodes)
      if (name != name_of(cluster)) own[kNodeCursors][name] = state;
}

}  // namespace streamvec
