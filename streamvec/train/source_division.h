// Sources that all nodes of a cluster name alike, divided among those that read (ClusterSettings::divide): each has one
// reader. They are dealt out in their order, so that every reader has as many as another or one more. Another number of
// readers, or another list, deals them otherwise; where each stood is found by its name (stream_cursors.h).
#pragma once

#include <string>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/train/trainer.h"

namespace streamvec {

// Those of this node; of one that reads none, and where nothing is divided, all. Streams that divide themselves
// (shared=1) are every reader's. kInvalidArgument where a reader would have none.
Result<std::vector<std::string>> own_sources(const ClusterSettings& cluster, const std::vector<std::string>& sources);
// For all nodes to compare: who has another list, or in another order, would read what is another's. "": nothing is
// divided.
std::string division_text(const ClusterSettings& cluster, const std::vector<std::string>& sources);
// Why those that are found by a registry, and come and go, have no sources dealt out.
Status no_division_of_found_nodes();

}  // namespace streamvec
