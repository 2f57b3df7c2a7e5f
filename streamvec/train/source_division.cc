#include "streamvec/train/source_division.h"

#include <xxhash.h>

#include <cstdio>

#include "streamvec/source/location.h"

namespace streamvec {
namespace {

// A broker's stream; what else has that in its name is a name like any other.
bool divides_itself(const std::string& source) {
  const Result<Location> location = Location::parse(source);
  if (!location.ok() || !(location->scheme == "nats" || location->scheme == "kafka" || location->scheme == "redis"))
    return false;
  const auto shared = location->query.find("shared");
  return shared != location->query.end() && shared->second == "1";
}

}  // namespace

Result<std::vector<std::string>> own_sources(const ClusterSettings& cluster, const std::vector<std::string>& sources) {
  if (!cluster.on() || !cluster.divide) return sources;
  const int32_t readers = cluster.ingest > 0 ? cluster.ingest : cluster.workers();
  if (readers < 1) return error(Code::kInvalidArgument, "--divide deals sources out, and no node reads any");
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

std::string division_text(const ClusterSettings& cluster, const std::vector<std::string>& sources) {
  if (!cluster.divide) return "";
  uint64_t hash = 0;
  for (const std::string& source : sources) hash = XXH3_64bits_withSeed(source.data(), source.size(), hash);
  char text[64];
  std::snprintf(text, sizeof text, "--divide of %zu sources (%08x)", sources.size(), static_cast<unsigned>(hash));
  return text;
}

Status no_division_of_found_nodes() {
  return error(Code::kInvalidArgument, "--divide is for nodes that are there from the first to the last, and those ",
               "found by --etcd come and go; name each one's own sources, or a broker's with shared=1");
}

}  // namespace streamvec
