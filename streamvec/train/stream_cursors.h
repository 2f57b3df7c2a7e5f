// Where the sources of all nodes of a stream's cluster stood, as a checkpoint has it: those of the node that wrote it,
// and under "nodes" those of the others by name. A node's name is its rank or, where nodes are found by etcd and ranks
// go by who came first, its address.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "streamvec/train/trainer.h"

namespace streamvec {

// What this node's intake is to be put to: the node's own sources and, by their names, those that only one node had
// which is not there any more. Not by one that joins others, whose source of that name may be another's that is still
// read.
// Of sources that are shared (source/splits.h) it is how far any node has read each split, whichever node it was.
nlohmann::json cursors_of(const ClusterSettings& cluster, const nlohmann::json& saved);

// The names of those that a node reads of them, by the state of its intake; and where they stood, by name: of all nodes
// the furthest, split by split.
std::vector<std::string> shared_sources(const nlohmann::json& state);
std::map<std::string, std::string> shared_cursors(const nlohmann::json& saved);

// Records that nodes which only read had withdrawn when replay may not have heard of it.
std::vector<uint64_t> withdrawn_records(const nlohmann::json& saved);

// Of a node, and of all where it writes. Not thread-safe.
class NodeCursors {
 public:
  // The run begins from what a checkpoint says, this node's sources with cursors_of() it: those that came from another
  // node are not that one's any more, so that they are found again when they move once more. Of nodes that do not say
  // where theirs stand, what it says is kept.
  void begin(const ClusterSettings& cluster, const nlohmann::json& saved);
  // What this node tells the one that saves: the state of its intake, who it is, and what is on its way of records that
  // it has withdrawn.
  nlohmann::json named(const ClusterSettings& cluster, nlohmann::json state,
                       const std::vector<uint64_t>& withdrawn = {}) const;

  // Of the node that writes. What the checkpoint of a leader that is gone says of nodes that may never say it again.
  void keep(const nlohmann::json& saved);
  void tell(const std::string& told);  // by a node, as text of named()
  // Beside the node's own, which `own` is.
  void add_to(const ClusterSettings& cluster, nlohmann::json& own);

 private:
  void add_came_from(nlohmann::json& state) const;
  void take(nlohmann::json& state);
  void leave_to_others(nlohmann::json& own) const;

  std::map<std::string, std::string> came_from_;       // this node's sources, by name: the node that had each before
  std::map<std::string, nlohmann::json> told_, kept_;  // by name of the node: in this run, and by a checkpoint alone
};

}  // namespace streamvec
