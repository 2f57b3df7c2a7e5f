// Where the sources of all nodes of a stream's cluster stood, as a checkpoint has it: those of the node that wrote it,
// and under "nodes" those of the others by name. A node's name is its rank or, where nodes are found by etcd and ranks
// go by who came first, its address.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "streamvec/train/trainer.h"

namespace streamvec {

// What a node tells the one that saves: the state of its intake, and who it is.
nlohmann::json named_cursors(const ClusterSettings& cluster, nlohmann::json state);

// What this node's intake is to be put to; null: nothing is known of it. Where nodes are found by etcd and this one was
// not among them, a source is sought by its own name, if only one node had it: not by one that joins others, whose source
// of that name may be another's that is still read.
nlohmann::json cursors_of(const ClusterSettings& cluster, const nlohmann::json& saved);

// Of the node that writes. Not thread-safe.
class NodeCursors {
 public:
  // What a checkpoint says of nodes that may never say it again: of those before this run, or of a leader that is gone.
  void keep(const ClusterSettings& cluster, const nlohmann::json& saved);
  void tell(const std::string& told);  // by a node, as text of named_cursors()
  // Beside the node's own, which `own` is.
  void add_to(const ClusterSettings& cluster, nlohmann::json& own) const;

 private:
  std::map<std::string, nlohmann::json> nodes_;  // by name
};

}  // namespace streamvec
