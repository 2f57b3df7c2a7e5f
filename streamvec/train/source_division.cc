#include "streamvec/train/source_division.h"

#include "streamvec/train/stream_cluster.h"

namespace streamvec {
namespace {

bool divides_itself(const std::string& source) {
  return source.find("shared=1") != std::string::npos;
}

}  // namespace

Result<std::vector<std::string>> own_sources(const ClusterSettings& cluster, const std::vector<std::string>& sources) {
  if (!cluster.on() || !cluster.divide) return sources;
  const int32_t readers = cluster.ingest > 0 ? cluster.ingest : cluster.workers();
  const int32_t reader = cluster.rank - (cluster.workers() - readers);
  std::vector<std::string> own;
  int32_t dealt = 0, shared = 0;
  for (const std::string& source : sources) {
    const bool every = divides_itself(source);
    if (every || dealt % readers == reader) own.push_back(source);
    (every ? shared : dealt) += 1;
  }
  if (shared == 0 && dealt < readers)
    return error(Code::kInvalidArgument, "--divide deals ", dealt, dealt == 1 ? " source" : " sources", " out to ",
                 readers, " nodes that read; give more sources, or let fewer nodes read for all: --ingest ", dealt);
  return reader >= 0 && reader < readers ? own : sources;
}

Status no_division_of_found_nodes() {
  return error(Code::kInvalidArgument, "--divide is for nodes that are there from the first to the last, and those ",
               "found by --etcd come and go; name each one's own sources, or a broker's with shared=1");
}

}  // namespace streamvec
