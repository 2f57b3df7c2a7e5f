#include "streamvec/train/cluster_settings.h"

#include <algorithm>
#include <string>

#include "streamvec/cluster/staleness_finder.h"
#include "streamvec/train/sandblaster_trainer.h"
#include "streamvec/train/shard_start.h"
#include "streamvec/train/source_division.h"

namespace streamvec {
namespace {

// What four nodes have to say to each other in a run, long or short, to end where one does (docs/BENCHMARKS.md, A
// hundred pushes a run).
constexpr int64_t kPushesOfRun = 100;
// Between two pushes of short runs and of those without an end; of long ones, where more would save next to nothing and
// lose more with a node that dies.
constexpr int64_t kWordsMin = 10'000, kWordsMost = 1'000'000;

Status check_ring_of_encoders(const ClusterSettings& cluster) {
  if (cluster.sync != "bsp" && cluster.sync != "ring" && cluster.sync != "hybrid" && cluster.sync != "auto")
    return error(Code::kInvalidArgument, "--model rbsg has no rows that nodes could own, and --sync ", cluster.sync,
                 " is about owners; try --sync ring");
  if (cluster.servers > 0)
    return error(Code::kInvalidArgument, "--servers is ", cluster.servers, ", and in a ring all nodes train; try ",
                 "--servers 0");
  return {};
}

// What nodes that share a stream cannot do yet.
Status check_stream_cluster(const TrainOptions& options) {
  const ClusterSettings& cluster = options.cluster;
  const std::string model = options.model.value_or("sgns");
  if (model != "sgns" && model != "cbow" && model != "hybrid" && model != "rbsg")
    return error(Code::kUnimplemented, "clusters train --model sgns, cbow, hybrid and rbsg on streams, not ", model,
                 "; try files, or leave out --nodes");
  const bool owns_nothing = cluster.sync == "ring" || cluster.sync == "hybrid" || cluster.sync == "sandblaster";
  if (model == "rbsg") STREAMVEC_RETURN_IF_ERROR(check_ring_of_encoders(cluster));
  if (cluster.shard != "no" || (owns_nothing && model != "rbsg"))
    return error(Code::kUnimplemented, "on streams the rows of a cluster have owners, and ",
                 cluster.shard != "no" ? "--shard " + cluster.shard : "--sync " + cluster.sync,
                 " has none; try --sync bsp");
  if (cluster.ingest >= cluster.workers())
    return error(Code::kInvalidArgument, "--ingest is ", cluster.ingest, " of ", cluster.workers(),
                 " nodes; at least one has to train");
  if (options.vocab_max <= 0)
    return error(Code::kInvalidArgument,
                 "nodes that share a stream keep room for the same words everywhere, and nothing says for how many; "
                 "give --vocab-max, say --vocab-max 200000");
  return scheme_of(cluster, options.dim.value_or(0)).status();
}

}  // namespace

Status check_cluster(const TrainOptions& options) {
  const ClusterSettings& cluster = options.cluster;
  if (cluster.shard != "no" && cluster.shard != "rows" && cluster.shard != "columns")
    return error(Code::kInvalidArgument, "--shard is ", cluster.shard, "; it must be no, rows or columns");
  if (!cluster.on() && cluster.shard != "no")
    return error(Code::kInvalidArgument, "--shard ", cluster.shard,
                 " shares tables out among the nodes of a cluster; give --nodes, or leave it out");
  if (!cluster.on() && cluster.divide)
    return error(Code::kInvalidArgument, "--divide deals sources out to the nodes of a cluster, and there is none; ",
                 "give --nodes, or leave it out");
  if (!cluster.on()) return {};
  if (cluster.divide && cluster.registry != nullptr) return no_division_of_found_nodes();
  if (cluster.rank < 0 || cluster.rank >= static_cast<int32_t>(cluster.nodes.size()))
    return error(Code::kInvalidArgument, "--rank is ", cluster.rank, "; it must be 0 to ", cluster.nodes.size() - 1,
                 ", the place of this node in --nodes");
  if (cluster.servers < 0 || cluster.workers() < 1)
    return error(Code::kInvalidArgument, "--servers is ", cluster.servers, " of ", cluster.nodes.size(),
                 " nodes; at least one has to train");
  const std::string model = options.model.value_or("sgns");
  const bool in_ring = options.stream.on && model == "rbsg";
  if (cluster.joins && (in_ring || is_sharded(options) || cluster.sync == "sandblaster" || cluster.ingest > 0))
    return error(Code::kFailedPrecondition, "the nodes of this job have begun, and ",
                 in_ring              ? "the ring of a stream's --model rbsg takes"
                 : cluster.ingest > 0 ? "--ingest takes"
                                      : "--shard and sandblaster take",
                 " nobody in while it trains; choose another --job, or wait for its end");
  if (options.stream.on) return check_stream_cluster(options);
  if (cluster.divide)
    return error(Code::kInvalidArgument,
                 "--divide deals streams out, and of files every node reads its own share; try --stream");
  if (cluster.ingest != 0)
    return error(Code::kInvalidArgument, "--ingest is ", cluster.ingest,
                 ", and of files every node reads its own share; try --stream");
  if (is_sharded(options)) return check_shards(options);
  if (cluster.sync == "sandblaster") return check_sandblaster(options);
  if (model != "sgns" && model != "cbow" && model != "rbsg" && model != "hybrid")
    return error(Code::kUnimplemented, "clusters train --model sgns, cbow, hybrid and rbsg, not ", model,
                 "; leave out --nodes");
  if (model == "rbsg") STREAMVEC_RETURN_IF_ERROR(check_ring_of_encoders(cluster));
  if (cluster.servers > 0 && (cluster.sync == "ring" || model == "hybrid"))
    return error(Code::kInvalidArgument, "--servers is ", cluster.servers, ", and in a ring all nodes train; try ",
                 "--servers 0");
  return scheme_of(cluster, options.dim.value_or(0)).status();
}

NodeId node_of(const ClusterSettings& cluster, int32_t rank) {
  if (!cluster.ids.empty()) return cluster.ids[static_cast<size_t>(rank)];
  return static_cast<NodeId>(cluster.mpi ? rank : rank + 1);
}

std::vector<NodeId> cluster_nodes(const ClusterSettings& settings, int32_t first_rank, int32_t count) {
  std::vector<NodeId> nodes;
  for (int32_t i = 0; i < count; ++i) nodes.push_back(node_of(settings, first_rank + i));
  return nodes;
}

Result<Scheme> scheme_of(const ClusterSettings& cluster, int64_t dim) {
  Scheme scheme;
  const bool has_ring = cluster.sync == "ring" || cluster.sync == "hybrid";
  STREAMVEC_ASSIGN_OR_RETURN(scheme.admission, parse_admission(has_ring                 ? "bsp"
                                                               : cluster.sync == "auto" ? "ssp"
                                                                                        : cluster.sync));
  STREAMVEC_ASSIGN_OR_RETURN(scheme.combine, parse_combine(cluster.combine));
  STREAMVEC_ASSIGN_OR_RETURN(scheme.codec, parse_codec(cluster.codec, dim));
  scheme.finds_codec = cluster.codec == "auto" && scheme.codec == CodecKind::kFourBit;
  scheme.adaptive = cluster.sync == "auto";
  scheme.staleness = scheme.adaptive ? StalenessFinder::kInStep : cluster.staleness.value_or(scheme.staleness);
  scheme.backups = cluster.backups;
  scheme.group = cluster.group;
  return scheme;
}

PushInterval push_interval(const ClusterSettings& cluster, int64_t words) {
  const bool given = cluster.words_min > 0;
  // Only `damped` knows what nodes that were far apart have to say to each other: the other rules are for small steps,
  // and lose .05 to .4 of loss by long ones (docs/BENCHMARKS.md, Every scheme on one job).
  const int64_t most = cluster.combine == "damped" ? kWordsMost : kWordsMin;
  const int64_t words_min = given ? cluster.words_min : std::clamp(words / kPushesOfRun, kWordsMin, most);
  return {words_min, std::max(45 * kWordsMin, (given ? 45 : 3) * words_min)};
}

}  // namespace streamvec
