#include "streamvec/train/cluster_start.h"

#include <xxhash.h>

#include <numeric>

#include "streamvec/vocab/sampling.h"

#ifdef STREAMVEC_GRPC
#include "streamvec/transport/grpc/grpc_transport.h"
#endif
#ifdef STREAMVEC_MPI
#include "streamvec/transport/mpi/mpi_transport.h"
#endif

namespace streamvec {
namespace {

// A rank of MPI is its own number; other nodes are numbered from 1.
NodeId node_of(const ClusterSettings& cluster, int32_t rank) {
  return static_cast<NodeId>(cluster.mpi ? rank : rank + 1);
}

Result<Scheme> scheme_of(const ClusterSettings& cluster) {
  Scheme scheme;
  STREAMVEC_ASSIGN_OR_RETURN(scheme.admission, parse_admission(cluster.sync));
  STREAMVEC_ASSIGN_OR_RETURN(scheme.combine, parse_combine(cluster.combine));
  STREAMVEC_ASSIGN_OR_RETURN(scheme.codec, parse_codec(cluster.codec));
  scheme.staleness = cluster.staleness;
  scheme.backups = cluster.backups;
  scheme.group = cluster.group;
  return scheme;
}

#ifdef STREAMVEC_GRPC
Result<std::unique_ptr<Transport>> listen(const ClusterSettings& settings) {
  GrpcTransport::Options options;
  options.self = node_of(settings, settings.rank);
  options.address = settings.nodes[static_cast<size_t>(settings.rank)];
  options.tls = {settings.ca, settings.certificate, settings.key, {}};
  options.token = settings.token;
  STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<GrpcTransport> transport, GrpcTransport::listen(options));
  return std::unique_ptr<Transport>(std::move(transport));
}
#else
Result<std::unique_ptr<Transport>> listen(const ClusterSettings&) {
  return error(Code::kUnimplemented,
               "this build of streamvec has no gRPC, which --nodes needs; install libgrpc++-dev and build again");
}
#endif

#ifdef STREAMVEC_MPI
constexpr double kFarewellSeconds = 600;  // the first rank saves the model meanwhile

Result<std::unique_ptr<Transport>> join_ranks(const ClusterSettings& settings) {
  STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<MpiTransport> mpi, MpiTransport::start({.farewell_s = kFarewellSeconds}));
  if (mpi->ranks() != static_cast<int>(settings.nodes.size()) || mpi->self() != node_of(settings, settings.rank))
    return error(Code::kFailedPrecondition, "the environment says that this is rank ", settings.rank, " of ",
                 settings.nodes.size(), ", MPI that it is rank ", mpi->self(), " of ", mpi->ranks(),
                 "; start the ranks with this MPI's own mpirun, or with srun --mpi=pmix");
  return std::unique_ptr<Transport>(std::move(mpi));
}
#else
Result<std::unique_ptr<Transport>> join_ranks(const ClusterSettings&) {
  return error(
      Code::kUnimplemented,
      "this build of streamvec has no MPI, by which it was started; install libopenmpi-dev and build again, or "
      "give --nodes");
}
#endif

// Of what all nodes must agree on: the words by their slots, and where the rows begin.
uint64_t fingerprint(const TrainOptions& options, const TrainingStart& start) {
  uint64_t hash = mix(options.seed, static_cast<uint64_t>(start.parameters.dim()));
  for (Slot slot = 0; slot < start.vocabulary.size(); ++slot) {
    const std::string_view word = start.vocabulary.word(slot);
    hash = XXH3_64bits_withSeed(word.data(), word.size(), hash);
  }
  for (const Matrix* table : {&start.parameters.input.rows, &start.parameters.output.rows})
    for (int64_t i = 0; i < table->rows(); i += 1 + table->rows() / 64)
      hash = XXH3_64bits_withSeed(table->row(i), sizeof(float) * static_cast<size_t>(table->cols()), hash);
  return hash;
}

// How strongly a trained word, at rate 1, draws each row to where it rests (SyncOptions::pull): by the pairs that it is
// expected to meet, positives and negatives. The factor stands for the curvature of a pair's loss; it was found by
// trial on held-out loss, MTurk and MSR (docs/BENCHMARKS.md, Cluster): less and late answers overshoot, more and nodes
// learn too little from each other.
constexpr double kPullOfPair = 0.005;

std::vector<float> row_pulls(const TrainOptions& options, const std::string& model, const Vocabulary& vocabulary) {
  const Subsampling subsampling(vocabulary, options.sample);
  const std::vector<double> drawn = unigram_probabilities(vocabulary);
  const auto tokens = static_cast<double>(std::max<int64_t>(vocabulary.tokens(), 1));
  const double pairs = model == "cbow" ? 1 : options.window + 1;  // of a centre; windows are drawn
  std::vector<double> share(drawn.size());                        // of the words that are trained on
  for (Slot slot = 0; slot < vocabulary.size(); ++slot)
    share[static_cast<size_t>(slot)] =
        static_cast<double>(vocabulary.count(slot)) / tokens * subsampling.probability(slot);
  const double kept = std::accumulate(share.begin(), share.end(), 0.0);
  std::vector<float> pulls;
  for (size_t slot = 0; slot < share.size(); ++slot) {
    pulls.push_back(static_cast<float>(kPullOfPair * pairs * share[slot] * (1 + options.negatives)));
    pulls.push_back(static_cast<float>(kPullOfPair * pairs * (share[slot] + options.negatives * kept * drawn[slot])));
  }
  return pulls;
}

}  // namespace

Status check_cluster(const TrainOptions& options) {
  const ClusterSettings& cluster = options.cluster;
  if (!cluster.on()) return {};
  if (cluster.rank < 0 || cluster.rank >= static_cast<int32_t>(cluster.nodes.size()))
    return error(Code::kInvalidArgument, "--rank is ", cluster.rank, "; it must be 0 to ", cluster.nodes.size() - 1,
                 ", the place of this node in --nodes");
  if (cluster.servers < 0 || cluster.workers() < 1)
    return error(Code::kInvalidArgument, "--servers is ", cluster.servers, " of ", cluster.nodes.size(),
                 " nodes; at least one has to train");
  if (options.stream.on)
    return error(Code::kUnimplemented,
                 "clusters train on files, not on streams; leave out --stream, --half-life and "
                 "--replay, or --nodes");
  const std::string model = options.model.value_or("sgns");
  if (model != "sgns" && model != "cbow")
    return error(Code::kUnimplemented, "clusters train --model sgns and cbow, not ", model, "; leave out --nodes");
  return scheme_of(cluster).status();
}

Result<std::unique_ptr<ClusterNode>> join_cluster(const TrainOptions& options, TrainingStart& start) {
  const ClusterSettings& settings = options.cluster;
  STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport,
                             settings.mpi ? join_ranks(settings) : listen(settings));
  for (size_t i = 0; i < settings.nodes.size(); ++i)
    if (static_cast<int32_t>(i) != settings.rank)
      transport->add_peer(node_of(settings, static_cast<int32_t>(i)), settings.nodes[i]);

  ClusterOptions cluster;
  cluster.workers.resize(static_cast<size_t>(settings.workers()));
  std::iota(cluster.workers.begin(), cluster.workers.end(), node_of(settings, 0));
  cluster.servers = cluster.workers;
  if (settings.servers > 0) {
    cluster.servers.resize(static_cast<size_t>(settings.servers));
    std::iota(cluster.servers.begin(), cluster.servers.end(), node_of(settings, settings.workers()));
  }
  STREAMVEC_ASSIGN_OR_RETURN(cluster.sync.scheme, scheme_of(settings));
  cluster.sync.dim = start.parameters.dim();
  cluster.sync.key_end = static_cast<RowKey>(2 * start.parameters.rows());
  cluster.sync.change_min = 1e-4f;
  start.row_pulls = row_pulls(options, start.model, start.vocabulary);
  cluster.sync.pull = &start.row_pulls;
  cluster.sync.locks = &start.parameters.locks;
  cluster.words_min = settings.words_min;
  cluster.words_max = std::max<int64_t>(30 * settings.words_min, 300'000);
  cluster.dead_after_s = settings.dead_after_s;
  cluster.threads = start.threads;
  start.parameters.changed = std::make_unique<RowMarks>(int64_t{cluster.sync.key_end});
  cluster.changed = start.parameters.changed.get();
  cluster.fingerprint = fingerprint(options, start);
  cluster.fingerprint_of = std::to_string(start.vocabulary.size()) + " words of " +
                           std::to_string(start.parameters.dim()) + " dimensions, --seed " +
                           std::to_string(options.seed);
  return ClusterNode::start(cluster, std::move(transport),
                            {&start.parameters.input.rows, &start.parameters.output.rows});
}

}  // namespace streamvec
